//! Files of comma-separated values with a line of names.

use std::path::Path;

use gustav_core::{Error, Result};

/// The lines of a file.
pub(crate) struct Csv {
    /// What it holds, and what writes it, for messages.
    format: &'static str,
    writer: &'static str,
    head: Vec<String>,
    lines: Vec<Vec<String>>,
}

/// A line of a file.
#[derive(Clone, Copy)]
pub(crate) struct Line<'c> {
    csv: &'c Csv,
    /// Its number, without the names.
    number: usize,
}

/// The text of a file.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn text(path: &Path) -> Result<String> {
    let io = |source| Error::Io { path: path.into(), action: "read", source };
    std::fs::read_to_string(path).map_err(io)
}

impl Csv {
    /// The lines of `text`, which holds a `format` that `writer` writes.
    pub fn parse(text: &str, format: &'static str, writer: &'static str) -> Self {
        let mut lines = text.lines();
        let head = cells(lines.next().unwrap_or_default());
        Csv { format, writer, head, lines: lines.map(cells).collect() }
    }

    /// Whether there is a column of this name.
    pub fn has(&self, name: &str) -> bool {
        self.head.iter().any(|cell| cell == name)
    }

    /// The position of the column of this name.
    ///
    /// # Errors
    /// [`Error::Format`] where there is none.
    pub fn column(&self, name: &str) -> Result<usize> {
        self.head.iter().position(|cell| cell == name).ok_or_else(|| Error::Format {
            path: None,
            format: self.format,
            reason: format!("there is no column {name}; {} writes one", self.writer),
        })
    }

    /// The lines after the names.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        (0..self.lines.len()).map(|number| Line { csv: self, number })
    }
}

impl<'c> Line<'c> {
    /// The text in a column; empty where the line is too short.
    pub fn word(self, column: usize) -> &'c str {
        self.csv.lines[self.number].get(column).map_or("", String::as_str)
    }

    /// Whether the line has the column, without anything in it.
    pub fn is_blank(self, column: usize) -> bool {
        self.csv.lines[self.number].get(column).is_some_and(|cell| cell.trim().is_empty())
    }

    /// The number in a column.
    ///
    /// # Errors
    /// [`Error::Parse`].
    pub fn number(self, column: usize) -> Result<f64> {
        self.word(column).parse().map_err(|_| Error::Parse {
            path: None,
            line: self.number as u64 + 2,
            column: 1,
            expected: format!("a number as {}", self.csv.head[column]),
            found: self.word(column).to_owned(),
        })
    }
}

/// The cells of a line; those with commas are quoted.
fn cells(line: &str) -> Vec<String> {
    let (mut found, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => found.push(String::new()),
            c => found.iter_mut().last().into_iter().for_each(|cell| cell.push(c)),
        }
    }
    found
}
