//! Sources of operands: a file, or `gen:` and the description of a generated matrix.

use std::fmt::Display;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;

use gustav::io::{Field, Generator, Header, Progress, ReadOptions};
use gustav::{Csr, DType, Index, Pattern, Scalar};
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::Printing;
use crate::failure::Result;

/// A file, or a generated matrix.
#[derive(Clone, Debug)]
pub enum Source {
    /// A matrix file.
    File(PathBuf),
    /// A generated matrix, with the text that describes it.
    Generated(Generator),
}

impl FromStr for Source {
    type Err = gustav::Error;
    fn from_str(s: &str) -> gustav::Result<Self> {
        match s.strip_prefix("gen:") {
            Some(description) => description.parse().map(Source::Generated),
            None if s.parse::<Generator>().is_ok() && !Path::new(s).exists() => {
                Err(gustav::Error::Argument {
                    name: "file",
                    found: s.into(),
                    expected: format!("an existing file, or gen:{s} for the generated matrix"),
                })
            }
            None => Ok(Source::File(s.into())),
        }
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::File(path) => path.display().fmt(f),
            Source::Generated(generator) => write!(f, "gen:{generator}"),
        }
    }
}

impl Source {
    /// The type that holds its values exactly: i64 for integers, f64 for others.
    ///
    /// # Errors
    /// For files that cannot be read or hold no matrix.
    pub fn exact_dtype(&self) -> Result<DType> {
        Ok(match self.header()?.map(|header| header.field) {
            Some(Field::Integer) => DType::I64,
            Some(Field::Real | Field::Pattern) | None => DType::F64,
        })
    }

    /// The header of a file.
    ///
    /// # Errors
    /// For files that cannot be read or hold no matrix.
    pub fn header(&self) -> Result<Option<Header>> {
        Ok(match self {
            Source::File(path) => Some(gustav::io::read_header(path)?),
            Source::Generated(_) => None,
        })
    }

    /// The matrix, read or generated with `seed`.
    ///
    /// # Errors
    /// For files that cannot be read or hold no matrix, and sizes that do not fit.
    pub fn read<T: Scalar, I: Index, O: Index>(
        &self,
        seed: u64,
        printing: Printing,
    ) -> Result<Csr<T, I, O>> {
        match self {
            Source::File(path) => {
                let bar = Bar::new(printing, "reading");
                let options = ReadOptions { progress: Some(&bar), ..ReadOptions::default() };
                Ok(gustav::io::read_csr(path, &options)?)
            }
            Source::Generated(generator) => Ok(generator.build(seed)?),
        }
    }

    /// The pattern of [`Source::read`], with values of type `T` in a file; of a generated matrix no values are made.
    ///
    /// # Errors
    /// As [`Source::read`].
    pub fn pattern<T: Scalar, I: Index, O: Index>(
        &self,
        seed: u64,
        printing: Printing,
    ) -> Result<Pattern<I, O>> {
        match self {
            Source::File(_) => Ok(self.read::<T, I, O>(seed, printing)?.pattern().clone()),
            Source::Generated(generator) => {
                let (rows, _) = generator.shape()?;
                Ok(generator.pattern_of_rows(0..rows, seed)?)
            }
        }
    }
}

/// A progress bar on standard error, when that is a terminal.
pub struct Bar {
    shown: bool,
    doing: &'static str,
    bar: OnceLock<ProgressBar>,
}

impl Bar {
    /// A progress bar that appears when reading begins; `doing` is its label.
    pub fn new(printing: Printing, doing: &'static str) -> Self {
        let shown = !printing.quiet && std::io::stderr().is_terminal();
        Bar { shown, doing, bar: OnceLock::new() }
    }
}

impl Progress for Bar {
    fn start(&self, total: u64) {
        if self.shown {
            let style =
                ProgressStyle::with_template("{msg} {bar:40} {bytes}/{total_bytes}, {eta} left");
            let bar = ProgressBar::new(total).with_message(self.doing);
            if let Ok(style) = style {
                bar.set_style(style);
            }
            // For a second file, the first bar is reused.
            let _ = self.bar.set(bar);
        }
    }

    fn advance(&self, bytes: u64) {
        if let Some(bar) = self.bar.get() {
            bar.inc(bytes);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
