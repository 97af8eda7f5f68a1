//! Standard output, standard error, and checks of output files.

use std::io::{IsTerminal, Write};
use std::path::Path;

use clap::Args;
use gustav::DType;
use gustav::io::Format;
use serde::Serialize;

use crate::failure::{Failure, Result, printable};

/// A number in JSON; NaN and the infinities, which JSON lacks, as the strings `NaN`, `inf` and
/// `-inf`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub f64);

impl Serialize for Number {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            serializer.serialize_f64(self.0)
        } else {
            serializer.serialize_str(&self.0.to_string())
        }
    }
}

/// Options for printing the result.
#[derive(Args, Clone, Copy, Debug)]
pub struct Printing {
    /// Print one JSON object instead of text (keys: docs/json.md)
    #[arg(long)]
    pub json: bool,
    /// Print only errors, and JSON with --json
    #[arg(long, short)]
    pub quiet: bool,
}

/// Prints the result on standard output: `report` as one JSON object with `--json`, otherwise
/// `text`, unless quiet.
///
/// # Errors
/// When standard output cannot be written; see [`Failure::ClosedPipe`].
pub fn print(printing: Printing, report: &impl Serialize, text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if printing.json {
        let json = serde_json::to_string_pretty(report)
            .map_err(|e| Failure::Request(format!("cannot write the result as JSON: {e}")))?;
        writeln!(out, "{json}")?;
    } else if !printing.quiet {
        out.write_all(printable(text).as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

/// `part` as a JSON value.
///
/// # Errors
/// When it cannot be represented in JSON.
pub fn value(part: &impl Serialize) -> Result<serde_json::Value> {
    serde_json::to_value(part)
        .map_err(|e| Failure::Request(format!("cannot write the result as JSON: {e}")))
}

/// Prints a note on standard error, unless quiet.
pub fn note(printing: Printing, text: &str) {
    if !printing.quiet {
        // Failing to print a note is not an error.
        let _ = writeln!(std::io::stderr(), "note: {}", printable(text));
    }
}

/// A spinner with `message` on standard error, if that is a terminal.
pub fn spinner(printing: Printing, message: &'static str) -> indicatif::ProgressBar {
    if printing.quiet || !std::io::stderr().is_terminal() {
        return indicatif::ProgressBar::hidden();
    }
    let bar = indicatif::ProgressBar::new_spinner().with_message(message);
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    bar
}

/// A progress bar with `message` on standard error, if that is a terminal; drawn from the second
/// part on.
pub fn bar(printing: Printing, message: &'static str) -> indicatif::ProgressBar {
    if printing.quiet || !std::io::stderr().is_terminal() {
        return indicatif::ProgressBar::hidden();
    }
    let style = indicatif::ProgressStyle::with_template("{msg} {wide_bar} {pos} of {len}, {eta}");
    let bar = indicatif::ProgressBar::no_length().with_message(message);
    style.map_or_else(|_| bar.clone(), |style| bar.clone().with_style(style))
}

fn refused(path: &Path, source: std::io::Error) -> Failure {
    Failure::Library(gustav::Error::Io { path: path.into(), action: "write", source })
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The content of a matrix file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A dense matrix.
    Dense,
    /// A sparse matrix with its values.
    Sparse,
    /// Whatever the format can hold: all of a matrix, or its positions.
    Any,
}

/// The format of a matrix file by its name, which must be able to hold `content` of type `dtype`.
/// Called before the work, so that a wrong name fails early.
///
/// # Errors
/// When the name has no known format or an unsuitable one, and when the file cannot be written.
pub fn check(path: &Path, content: Content, dtype: DType) -> Result<Format> {
    let (format, _) = gustav::io::format_of_name(path)?;
    let refusal = match (format, content) {
        (Format::Npy, Content::Sparse) => {
            "is named as a dense matrix and is to be a sparse one, use .mtx or .npz"
        }
        (Format::Npz | Format::Smtx, Content::Dense) => {
            "is named as a sparse matrix and is to be a dense one, use .npy or .mtx"
        }
        (Format::Smtx, Content::Sparse) => {
            "would hold positions without values, use .mtx or .npz (gustav convert --pattern \
             writes positions)"
        }
        (Format::Npy | Format::Npz, _) if dtype == DType::Bf16 => {
            "cannot hold bf16, which NumPy does not have, use .mtx, or --dtype f32, which holds \
             every bf16"
        }
        _ => return writable(path).map(|()| format),
    };
    Err(Failure::Request(format!("output: {} {refusal}", path.display())))
}

/// Fails if the name of a picture does not end in `kind`, or it cannot be written.
///
/// # Errors
/// As [`writable`], and for another ending.
pub fn check_picture(path: &Path, kind: &str) -> Result<()> {
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case(kind)) {
        return writable(path);
    }
    let path = path.display();
    Err(Failure::Request(format!("{kind}: {path} is no name of such a picture, end it in .{kind}")))
}

/// Fails if a file of this name cannot be written. Called before the work, to fail early.
///
/// # Errors
/// [`gustav::Error::Io`] with the system's reason.
pub fn writable(path: &Path) -> Result<()> {
    let refuse = |source| refused(path, source);
    if path.is_dir() {
        return Err(refuse(std::io::ErrorKind::IsADirectory.into()));
    }
    if path.exists() && !path.is_file() {
        // A device or a pipe is written in place.
        return std::fs::OpenOptions::new().write(true).open(path).map(drop).map_err(refuse);
    }
    if path.metadata().is_ok_and(|m| m.permissions().readonly()) {
        return Err(refuse(std::io::ErrorKind::PermissionDenied.into()));
    }
    tempfile::tempfile_in(folder(path)).map(drop).map_err(refuse)
}
