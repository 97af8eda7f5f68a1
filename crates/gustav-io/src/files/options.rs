//! What a caller may say about reading and writing.

use super::format::{Compression, Format};
use super::header::Symmetry;

/// Values for files that hold a pattern only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Values {
    /// Every entry is 1.
    #[default]
    Ones,
    /// Seeded random values: uniform in [-1, 1), for integer types in 1..=9. The value of an
    /// entry depends on the seed and on its position in the file alone.
    Random(u64),
}

/// Hears how far reading has come. The library never prints; a command line draws a bar.
pub trait Progress: Sync {
    /// Reading begins; `total` is the size of the file in bytes.
    fn start(&self, total: u64);
    /// `bytes` more of the file have been read; may be called from several threads.
    fn advance(&self, bytes: u64);
}

/// How to read.
#[derive(Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// Values for files that hold a pattern only.
    pub values: Values,
    /// Hears how far reading has come.
    pub progress: Option<&'a dyn Progress>,
}

impl ReadOptions<'_> {
    pub(crate) fn advance(&self, bytes: usize) {
        if let Some(progress) = self.progress {
            progress.advance(bytes as u64);
        }
    }
}

/// The arrays of a sparse matrix in a `.npz` file, by the names of SciPy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Storage {
    /// Row offsets, column indices, values.
    #[default]
    Csr,
    /// Column offsets, row indices, values.
    Csc,
    /// Row indices, column indices, values.
    Coo,
}

impl Storage {
    /// The name as SciPy writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Storage::Csr => "csr",
            Storage::Csc => "csc",
            Storage::Coo => "coo",
        }
    }
}

/// How to write.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// The format; told by the file's name when not given.
    pub format: Option<Format>,
    /// The compression; told by the file's name when not given.
    pub compression: Option<Compression>,
    /// Write the pattern only and drop the values. `.smtx` holds no values, so other values
    /// than ones are refused there without it.
    pub pattern_only: bool,
    /// Write half of a matrix that has this symmetry, which is checked; Matrix Market alone.
    pub symmetry: Symmetry,
    /// The arrays of a sparse matrix in `.npz`.
    pub storage: Storage,
}
