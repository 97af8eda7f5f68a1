//! Standard output, standard error, and the files a command writes.

use std::io::{IsTerminal, Write};
use std::path::Path;

use serde::Serialize;

use crate::args::Telling;
use crate::failure::{Failure, Result};

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

/// Tells the result on standard output: `report` as one JSON object where that was asked for,
/// otherwise `text`, unless quiet.
///
/// # Errors
/// When standard output cannot be written; see [`Failure::ClosedPipe`].
pub fn tell(telling: Telling, report: &impl Serialize, text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if telling.json {
        let json = serde_json::to_string_pretty(report)
            .map_err(|e| Failure::Request(format!("cannot write the result as JSON: {e}")))?;
        writeln!(out, "{json}")?;
    } else if !telling.quiet {
        out.write_all(text.as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

/// `part` as a part of a JSON object.
///
/// # Errors
/// When it cannot be expressed in JSON.
pub fn value(part: &impl Serialize) -> Result<serde_json::Value> {
    serde_json::to_value(part)
        .map_err(|e| Failure::Request(format!("cannot write the result as JSON: {e}")))
}

/// A remark on standard error, unless quiet.
pub fn note(telling: Telling, text: &str) {
    if !telling.quiet {
        // A remark that nobody can read is no reason to stop.
        let _ = writeln!(std::io::stderr(), "note: {text}");
    }
}

/// A spinner with `message` on standard error while something takes its time; nothing unless
/// that is a terminal.
pub fn spinner(telling: Telling, message: &'static str) -> indicatif::ProgressBar {
    if telling.quiet || !std::io::stderr().is_terminal() {
        return indicatif::ProgressBar::hidden();
    }
    let bar = indicatif::ProgressBar::new_spinner().with_message(message);
    bar.enable_steady_tick(std::time::Duration::from_millis(100));
    bar
}

fn refused(path: &Path, source: std::io::Error) -> Failure {
    Failure::Library(gustav::Error::Io { path: path.into(), action: "write", source })
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Fails when a file of this name cannot be written, before minutes of work are spent.
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
    tempfile::tempfile_in(folder(path)).map(drop).map_err(refuse)
}
