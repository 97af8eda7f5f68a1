//! A report of records: a page of tables and figures, and each of them as a file.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use gustav_core::{Error, Result};
use gustav_io::write_bytes as write;

use crate::analysis::Platform;
use crate::draw::Figure;
use crate::figures::Chapter;
use crate::page::Page;
use crate::parts::{Part, arranged};
use crate::table::Table;
use crate::{
    Counters, FeatureTimes, RankRecords, Record, Regret, TuneReport, draw, figures, tables,
};

/// Tables and figures of records.
#[derive(Clone, Debug)]
pub struct Report {
    about: Vec<String>,
    glance: Option<Chapter>,
    parts: Vec<Part>,
    absent: Vec<(&'static str, &'static str)>,
}

/// What a report draws beside records; empty lists leave their figures out.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Reports of tuning, as `gustav tune --json` writes them.
    pub tunings: Vec<TuneReport>,
    /// Hardware counters.
    pub counters: Vec<Counters>,
    /// Products over ranks.
    pub ranks: RankRecords,
    /// What choices lose.
    pub regrets: Vec<Regret>,
    /// How long features take.
    pub features: FeatureTimes,
}

/// The files of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The page.
    pub page: PathBuf,
    /// The folder of tables as CSV and figures as SVG and PNG.
    pub folder: PathBuf,
    /// Number of tables.
    pub tables: usize,
    /// Number of figures.
    pub figures: usize,
    /// Families of figures that the records do not fill, with what each needs.
    pub absent: Vec<(&'static str, &'static str)>,
}

impl Report {
    /// The report of `records`, of any number of suites, machines and devices, and of what stands beside them.
    ///
    /// # Errors
    /// [`Error::Argument`] when there are none.
    pub fn of(records: &[Record], beside: &Beside) -> Result<Self> {
        if records.is_empty() {
            return Err(Error::Argument {
                name: "records",
                found: "none".into(),
                expected: "files with at least one line, as gustav bench writes them".into(),
            });
        }
        let platforms = Platform::all(records);
        let (mut chapters, absent) = figures::all(&platforms, beside);
        let glance = chapters.extract_if(.., |chapter| chapter.name == figures::GLANCE).next();
        let mut about: Vec<_> = platforms.iter().map(measured).collect();
        about.push("How it was measured: bench/METHODOLOGY.md.".into());
        let mut tables = tables::all(&platforms);
        tables.extend(tables::of_tunings(&beside.tunings));
        tables.extend(tables::of_features(&beside.features));
        tables.extend(tables::of_ranks(&beside.ranks));
        Ok(Report { about, glance, parts: arranged(tables, chapters), absent })
    }

    /// Families of figures that the records do not fill, with what each needs.
    pub fn absent(&self) -> &[(&'static str, &'static str)] {
        &self.absent
    }

    fn figures(&self) -> impl Iterator<Item = &Figure> {
        let chapters = self.parts.iter().flat_map(|part| &part.chapters);
        self.glance.iter().chain(chapters).flat_map(|chapter| &chapter.figures)
    }

    fn tables(&self) -> impl Iterator<Item = &Table> {
        self.parts.iter().flat_map(|part| &part.tables)
    }

    /// Writes the page, and its tables and figures into the folder `NAME-files` next to it. Each
    /// file appears whole or not at all, the page last.
    ///
    /// # Errors
    /// [`Error::Io`] naming the file, [`Error::Format`] when a figure cannot be drawn.
    pub fn write(&self, page: &Path) -> Result<Written> {
        let stem = page.file_stem().unwrap_or(OsStr::new("report")).to_string_lossy();
        let name = format!("{stem}-files");
        let folder = page.with_file_name(&name);
        std::fs::create_dir_all(&folder).map_err(|source| Error::Io {
            path: folder.clone(),
            action: "make the folder",
            source,
        })?;
        for table in self.tables() {
            write(folder.join(format!("{}.csv", table.id)), table.csv().as_bytes())?;
        }
        for figure in self.figures() {
            let file = |ending: &str| folder.join(format!("{}.{ending}", figure.id));
            write(file("svg"), draw::svg_file(figure)?.as_bytes())?;
            write(file("png"), &draw::png(figure)?)?;
        }
        let html = Page {
            about: &self.about,
            glance: self.glance.as_ref(),
            parts: &self.parts,
            absent: &self.absent,
            folder: &name,
        };
        write(page, html.html()?.as_bytes())?;
        Ok(Written {
            page: page.into(),
            folder,
            tables: self.tables().count(),
            figures: self.figures().count(),
            absent: self.absent.clone(),
        })
    }
}

/// What was measured on a platform, in a sentence.
fn measured(platform: &Platform) -> String {
    let all = || platform.records.iter().chain(&platform.programs);
    let names = |words: Vec<String>| {
        let words: BTreeSet<_> = words.into_iter().collect();
        words.into_iter().collect::<Vec<_>>().join(", ")
    };
    let operations = names(all().map(|r| r.case.operation.clone()).collect());
    let suites = names(all().map(|r| r.suite.clone()).collect());
    let count = |unseen: bool| {
        let own = all().filter(|r| r.unseen == unseen).map(|r| r.case.matrix.as_str());
        own.collect::<BTreeSet<_>>().len()
    };
    let unseen = match count(true) {
        0 => String::new(),
        n => format!("{n} matrices that no rule was fitted to and "),
    };
    format!(
        "{}: {operations}, on {unseen}{} others ({} records; suites {suites}).",
        platform.name,
        count(false),
        all().count(),
    )
}

/// The speed-ups of every product, a picture for every platform of `records`, as SVG files.
///
/// # Errors
/// [`Error::Format`] when one cannot be drawn.
pub fn pictures(records: &[Record]) -> Result<Vec<String>> {
    figures::overview(&Platform::all(records)).iter().map(draw::svg_file).collect()
}

/// What `records` say, as text: the tables of the report.
pub fn summary(records: &[Record]) -> String {
    let tables = tables::all(&Platform::all(records));
    let mut text = String::new();
    if !tables.iter().any(|table| table.id == "summary") {
        text += "No ratios: no peer took part\n\n";
    }
    tables.iter().fold(text, |text, table| text + &table.text() + "\n")
}

#[cfg(test)]
pub(crate) mod tests;
