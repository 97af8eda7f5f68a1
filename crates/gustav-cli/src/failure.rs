//! Outcomes of commands and their exit statuses: 0 done, 1 a check failed, 2 error, 130 stopped by
//! Ctrl-C.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{ErrorKind, Write};

use gustav::{Error, IndexType};

const FAILED: u8 = 1;
/// The exit status of an error.
pub const ERROR: u8 = 2;
const INTERRUPTED: u8 = 130;

/// The outcome of a command without errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Success.
    Done,
    /// A check or a comparison failed.
    Failed,
}

/// The error of a command.
#[derive(Debug)]
pub enum Failure {
    /// The reader of the output has closed the pipe: not an error.
    ClosedPipe,
    /// An error of the library.
    Library(Error),
    /// An invalid request, as text.
    Request(String),
    /// Writing to standard output failed.
    Output(std::io::Error),
    /// Ctrl-C, between two executions.
    Interrupted,
    /// An error of a job that another of its ranks reports.
    Reported,
}

/// The result of a verb.
pub type Result<T = Outcome> = std::result::Result<T, Failure>;

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Failure::Library(e)
    }
}

/// Only writing to standard output returns plain I/O errors; the library has its own type.
impl From<std::io::Error> for Failure {
    fn from(e: std::io::Error) -> Self {
        if e.kind() == ErrorKind::BrokenPipe { Failure::ClosedPipe } else { Failure::Output(e) }
    }
}

/// Whether the error is a size that would fit in 64 bits.
fn fits_u64(e: &Error) -> bool {
    matches!(e.kind(), Error::Overflow { index_type: IndexType::U32, .. })
}

/// For other ranks of a job.
impl Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message().as_deref().unwrap_or("it stopped"))
    }
}

impl Failure {
    /// Prints the message, if any, on standard error.
    pub fn report(&self) {
        if let Some(message) = self.message() {
            // If writing to standard error fails as well, nothing can be reported.
            let _ = writeln!(std::io::stderr(), "gustav: {}", printable(&message));
        }
    }

    /// The message for standard error, with the option that helps, if there is one.
    fn message(&self) -> Option<String> {
        match self {
            Failure::ClosedPipe | Failure::Reported => None,
            Failure::Library(e) if fits_u64(e) => Some(format!("{e} (pass --index u64)")),
            Failure::Library(e) => Some(e.to_string()),
            Failure::Request(words) => Some(words.clone()),
            Failure::Output(e) => Some(format!("cannot write to standard output: {e}")),
            Failure::Interrupted => Some("interrupted".into()),
        }
    }

    /// The exit status; after an interrupt, that of shells for a process that SIGINT ended.
    fn status(&self) -> u8 {
        match self {
            Failure::ClosedPipe => 0,
            Failure::Interrupted => INTERRUPTED,
            Failure::Library(e) if matches!(e.kind(), Error::Cancelled { .. }) => INTERRUPTED,
            _ => 2,
        }
    }
}

/// `text` with control characters except line ends escaped, as the name of a file must not control
/// the terminal.
pub fn printable(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && c != '\n';
    if !text.contains(steers) {
        return text.into();
    }
    let shown = |c: char| if steers(c) { c.escape_default().collect() } else { c.to_string() };
    text.chars().map(shown).collect::<String>().into()
}

/// Prints the error, if any, on standard error and returns the exit status.
pub fn finish(result: Result) -> u8 {
    match result {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::Failed) => FAILED,
        Err(failure) => {
            failure.report();
            failure.status()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\u{1b}[31m\tb\n"), "a\\u{1b}[31m\\tb\n");
        assert!(matches!(printable("Ärger.mtx\n"), Cow::Borrowed(_)));
    }
}
