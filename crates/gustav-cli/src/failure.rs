//! How a command ends: exit status 0 done, 1 a check failed, 2 error, 130 stopped by Ctrl-C.

use std::borrow::Cow;
use std::io::{ErrorKind, Write};

use gustav::{Error, IndexType};

const FAILED: u8 = 1;
/// The exit status of an error.
pub const ERROR: u8 = 2;
const INTERRUPTED: u8 = 130;

/// How a command ended when nothing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything that was asked for was done.
    Done,
    /// A check or a comparison failed.
    Failed,
}

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The reader of the output went away: not an error.
    ClosedPipe,
    /// The library's error.
    Library(Error),
    /// A request that makes no sense, in words.
    Request(String),
    /// Standard output could not be written.
    Output(std::io::Error),
    /// Ctrl-C, between two executions.
    Interrupted,
}

/// What a verb returns.
pub type Result<T = Outcome> = std::result::Result<T, Failure>;

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Failure::Library(e)
    }
}

/// Only writing to standard output gives bare input-output errors.
impl From<std::io::Error> for Failure {
    fn from(e: std::io::Error) -> Self {
        if e.kind() == ErrorKind::BrokenPipe { Failure::ClosedPipe } else { Failure::Output(e) }
    }
}

/// Whether it is about a size that 64 bits hold.
fn fits_u64(e: &Error) -> bool {
    matches!(e.kind(), Error::Overflow { index_type: IndexType::U32, .. })
}

impl Failure {
    /// The message for standard error, with the option that helps where there is one.
    fn message(&self) -> Option<String> {
        match self {
            Failure::ClosedPipe => None,
            Failure::Library(e) if fits_u64(e) => Some(format!("{e} (pass --index u64)")),
            Failure::Library(e) => Some(e.to_string()),
            Failure::Request(words) => Some(words.clone()),
            Failure::Output(e) => Some(format!("cannot write to standard output: {e}")),
            Failure::Interrupted => Some("interrupted".into()),
        }
    }

    /// The exit status: what shells give a process that an interrupt ended, where one did.
    fn status(&self) -> u8 {
        match self {
            Failure::ClosedPipe => 0,
            Failure::Interrupted => INTERRUPTED,
            Failure::Library(e) if matches!(e.kind(), Error::Cancelled { .. }) => INTERRUPTED,
            _ => 2,
        }
    }
}

/// `text` with control characters, but for line ends, written out: a file's name must not steer
/// the terminal.
pub fn printable(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && c != '\n';
    if !text.contains(steers) {
        return text.into();
    }
    let shown = |c: char| if steers(c) { c.escape_default().collect() } else { c.to_string() };
    text.chars().map(shown).collect::<String>().into()
}

/// The exit status of a command, after printing why on standard error.
pub fn finish(result: Result) -> u8 {
    match result {
        Ok(Outcome::Done) => 0,
        Ok(Outcome::Failed) => FAILED,
        Err(failure) => {
            if let Some(message) = failure.message() {
                // Nothing is left to be told when standard error is gone too.
                let _ = writeln!(std::io::stderr(), "gustav: {}", printable(&message));
            }
            failure.status()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_written_out() {
        assert_eq!(printable("a\u{1b}[31m\tb\n"), "a\\u{1b}[31m\\tb\n");
        assert!(matches!(printable("Ärger.mtx\n"), Cow::Borrowed(_)));
    }
}
