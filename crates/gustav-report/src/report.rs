//! A report of records: a page of tables and figures, and each of them as a file.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use gustav_core::{Error, Result};
use gustav_io::write_bytes as write;

use crate::analysis::Platform;
use crate::draw::Figure;
use crate::figures::Chapter;
use crate::page::Page;
use crate::table::Table;
use crate::{Counters, Record, TuneReport, draw, figures, tables};

/// Tables and figures of records.
#[derive(Clone, Debug)]
pub struct Report {
    about: String,
    tables: Vec<Table>,
    chapters: Vec<Chapter>,
    absent: Vec<(&'static str, &'static str)>,
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
    /// The report of `records`, of any number of suites, machines and devices, and of what
    /// tuning and hardware counters said.
    ///
    /// # Errors
    /// [`Error::Argument`] when there are none.
    pub fn of(records: &[Record], tunings: &[TuneReport], counters: &[Counters]) -> Result<Self> {
        if records.is_empty() {
            return Err(Error::Argument {
                name: "records",
                found: "none".into(),
                expected: "files with at least one line, as gustav bench writes them".into(),
            });
        }
        let platforms = Platform::all(records);
        let (chapters, absent) = figures::all(&platforms, tunings, counters);
        let mut suites: Vec<_> = records.iter().map(|r| r.suite.as_str()).collect();
        suites.sort_unstable();
        suites.dedup();
        let names: Vec<_> = platforms.iter().map(|s| s.name.as_str()).collect();
        let about = format!(
            "{} records of suite {} on {}. How they were measured: bench/METHODOLOGY.md.",
            records.len(),
            suites.join(", "),
            names.join("; ")
        );
        Ok(Report { about, tables: tables::all(&platforms), chapters, absent })
    }

    /// Families of figures that the records do not fill, with what each needs.
    pub fn absent(&self) -> &[(&'static str, &'static str)] {
        &self.absent
    }

    fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.chapters.iter().flat_map(|chapter| &chapter.figures)
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
        for table in &self.tables {
            write(folder.join(format!("{}.csv", table.id)), table.csv().as_bytes())?;
        }
        for figure in self.figures() {
            let file = |ending: &str| folder.join(format!("{}.{ending}", figure.id));
            write(file("svg"), draw::svg_file(figure)?.as_bytes())?;
            write(file("png"), &draw::png(figure)?)?;
        }
        let html = Page {
            about: self.about.clone(),
            tables: &self.tables,
            chapters: &self.chapters,
            absent: &self.absent,
            folder: &name,
        };
        write(page, html.html()?.as_bytes())?;
        Ok(Written {
            page: page.into(),
            folder,
            tables: self.tables.len(),
            figures: self.figures().count(),
            absent: self.absent.clone(),
        })
    }
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
mod tests;
