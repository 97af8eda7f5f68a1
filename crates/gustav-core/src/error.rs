//! The one error type of the workspace.

use std::path::PathBuf;

use crate::{DType, IndexType};

/// Result with gustav's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong, with where it happened and what would work.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Operands whose shapes do not fit together.
    #[error("{op}: expected {expected}, found {found}")]
    Shape {
        /// The requested operation.
        op: &'static str,
        /// The required shape or relation.
        expected: String,
        /// What was passed.
        found: String,
    },
    /// A column (or row) index outside the matrix.
    #[error("row {row}, entry {position}: index {value} is out of range (must be below {bound})")]
    Index {
        /// Row of the entry (major index of the format).
        row: usize,
        /// Position of the entry in the index array.
        position: usize,
        /// The index that was found.
        value: u64,
        /// The first index that is too large.
        bound: usize,
    },
    /// Row offsets that do not describe a matrix.
    #[error("row offsets at row {row}: {reason} (found {found}, expected {expected})")]
    Offsets {
        /// Row whose offset is wrong.
        row: usize,
        /// The offset found.
        found: u64,
        /// The offset expected.
        expected: String,
        /// The violated rule.
        reason: &'static str,
    },
    /// An array of the wrong length.
    #[error("{what}: expected {expected} elements, found {found}")]
    Length {
        /// The array.
        what: &'static str,
        /// The required length.
        expected: usize,
        /// The given length.
        found: usize,
    },
    /// Text that does not follow the format.
    #[error("{}line {line}, column {column}: expected {expected}, found {found}", prefix(.path))]
    Parse {
        /// The file, when there is one.
        path: Option<PathBuf>,
        /// Line, counted from 1.
        line: u64,
        /// Byte within the line, counted from 1.
        column: u64,
        /// What the format requires there.
        expected: String,
        /// What the file has there.
        found: String,
    },
    /// A binary or compressed file that is damaged or of an unsupported kind.
    #[error("{}{format}: {reason}", prefix(.path))]
    Format {
        /// The file, when there is one.
        path: Option<PathBuf>,
        /// The format it was read as.
        format: &'static str,
        /// What is wrong and how to mend it.
        reason: String,
    },
    /// A size that the index type cannot hold.
    #[error("{what}: {need} does not fit in {index_type}{}", wider_index(*.index_type))]
    Overflow {
        /// What was counted.
        what: &'static str,
        /// The number to be stored.
        need: u128,
        /// The type that cannot hold it.
        index_type: IndexType,
    },
    /// A value that the scalar type cannot hold exactly.
    #[error("{what}: {value} cannot be held in {dtype} without loss{}", wider(.value, *.dtype))]
    Value {
        /// Where the value is.
        what: String,
        /// The value as text.
        value: String,
        /// The requested scalar type.
        dtype: DType,
    },
    /// A request that is well formed but not implemented for this algorithm or backend.
    #[error("{backend} does not support {problem}: {reason}; nearest that works: {nearest}")]
    Unsupported {
        /// The request.
        problem: String,
        /// Backend or algorithm that refuses.
        backend: String,
        /// The reason.
        reason: String,
        /// The nearest thing that works.
        nearest: String,
    },
    /// An argument outside its range.
    #[error("{name}: {found} is not valid, expected {expected}")]
    Argument {
        /// Name of the argument.
        name: &'static str,
        /// What was passed.
        found: String,
        /// What would be valid.
        expected: String,
    },
    /// A plan used with a matrix whose pattern it was not made for.
    #[error("the plan was made for {expected}, but the matrix is {found}; make a new plan")]
    Pattern {
        /// The pattern that the plan belongs to.
        expected: String,
        /// The pattern that was given.
        found: String,
    },
    /// An allocation that failed.
    #[error("out of memory: {needed} bytes needed for {what}{}", free(.available))]
    OutOfMemory {
        /// What the memory was for.
        what: &'static str,
        /// Bytes requested.
        needed: u128,
        /// Bytes available, if known.
        available: Option<u64>,
    },
    /// No such device, or its software is missing.
    #[error("no device: {reason}")]
    NoDevice {
        /// What is missing, in one line.
        reason: String,
    },
    /// An error of a device's driver or compiler.
    #[error("{action} failed: {reason}")]
    Device {
        /// What was being done.
        action: &'static str,
        /// The message of the driver or compiler.
        reason: String,
    },
    /// Work that the caller stopped.
    #[error("{what} was stopped after {done} of {of} parts")]
    Cancelled {
        /// What was being done.
        what: &'static str,
        /// Parts that were done.
        done: usize,
        /// Parts in all.
        of: usize,
    },
    /// Another error, with the file or the line that it arose in.
    #[error("{context}: {error}")]
    At {
        /// The file or line.
        context: String,
        /// What went wrong there; see [`Error::kind`].
        error: Box<Error>,
    },
    /// What the ranks of a distributed product were given differs.
    #[error("rank {rank} has {what} {found}, where rank {other} has {expected}")]
    RanksDiffer {
        /// What differs.
        what: String,
        /// The rank that differs from most.
        rank: usize,
        /// What it was given.
        found: String,
        /// The first rank that agrees with most.
        other: usize,
        /// What that one was given.
        expected: String,
    },
    /// Another rank could not do its part of a distributed product.
    #[error("rank {rank}: {reason}")]
    OtherRank {
        /// The rank that failed.
        rank: usize,
        /// Its error.
        reason: String,
    },
    /// A message between ranks failed.
    #[error("rank {rank}: {action}{} failed: {reason}", with_peer(.peer))]
    Communication {
        /// The rank that saw it.
        rank: usize,
        /// The rank at the other end, where there is one.
        peer: Option<usize>,
        /// What was being done.
        action: &'static str,
        /// The communication library's own words.
        reason: String,
    },
    /// There is no MPI, or not one that can be used.
    #[error("no MPI: {reason}")]
    NoMpi {
        /// What was looked for, and what would help.
        reason: String,
    },
    /// An error of the operating system when reading or writing a file.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// The system's own error.
        source: std::io::Error,
    },
}

impl Error {
    /// Names the file in an error caused by its contents: sets the path of [`Error::Parse`] and
    /// [`Error::Format`] if there is none yet, and wraps sizes and values that do not fit and
    /// failed allocations in [`Error::At`]. Other errors are returned unchanged.
    #[must_use]
    pub fn in_file(mut self, file: &std::path::Path) -> Self {
        match &mut self {
            Error::Parse { path, .. } | Error::Format { path, .. } => {
                path.get_or_insert_with(|| file.to_path_buf());
                self
            }
            Error::Overflow { .. }
            | Error::Value { .. }
            | Error::OutOfMemory { .. }
            | Error::At { .. } => self.at(file.display().to_string()),
            _ => self,
        }
    }

    /// The error, with where it arose in front of its text.
    #[must_use]
    pub fn at(self, context: impl Into<String>) -> Self {
        Error::At { context: context.into(), error: Box::new(self) }
    }

    /// The error without the context of [`Error::At`].
    pub fn kind(&self) -> &Error {
        match self {
            Error::At { error, .. } => error.kind(),
            other => other,
        }
    }
}

fn prefix(path: &Option<PathBuf>) -> String {
    path.as_ref().map(|p| format!("{}: ", p.display())).unwrap_or_default()
}

fn with_peer(peer: &Option<usize>) -> String {
    peer.map(|peer| format!(" (rank {peer})")).unwrap_or_default()
}

/// A hint at a wider index type than `index_type`, if there is one.
fn wider_index(index_type: IndexType) -> &'static str {
    match index_type {
        IndexType::U32 => "; use u64",
        IndexType::U64 => "; no index type holds it",
    }
}

/// A hint at a type that would hold `value`, if there is one.
fn wider(value: &str, dtype: DType) -> &'static str {
    let float = matches!(dtype, DType::F16 | DType::Bf16 | DType::F32);
    // A number that parses as infinite is too large, unless it is spelled so; integers are not
    // rounded.
    let number = value.trim_start_matches(['+', '-']);
    let held = |x: f64| match number.bytes().filter(u8::is_ascii_digit).count() {
        0 => true,
        digits if digits == number.len() && !float => {
            value.parse::<i128>().is_ok_and(|i| i == x as i128)
        }
        _ => x.is_finite(),
    };
    match (value.parse::<i64>(), value.parse::<f64>()) {
        (Ok(i), _) if float && i.unsigned_abs() <= 1 << 53 => "; use f64",
        (Ok(_), _) if dtype != DType::I64 => "; use i64",
        (Err(_), Ok(x)) if dtype != DType::F64 && held(x) => "; use f64",
        _ => "; no type here does",
    }
}

fn free(available: &Option<u64>) -> String {
    available.map(|a| format!(", {a} available")).unwrap_or_default()
}
