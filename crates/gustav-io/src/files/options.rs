//! Options of reading and writing.

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

/// Receives progress reports. The library never prints.
pub trait Progress: Sync {
    /// Reading begins; `total` is the size of the file in bytes.
    fn start(&self, total: u64);
    /// `bytes` more of the file have been read; may be called from several threads.
    fn advance(&self, bytes: u64);
}

/// Options of reading.
#[derive(Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// Values for files that hold a pattern only.
    pub values: Values,
    /// Receives progress reports.
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

/// Options of writing.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// The format; by default from the file's extension.
    pub format: Option<Format>,
    /// The compression; by default from the file's extension.
    pub compression: Option<Compression>,
    /// Writes the pattern only, without values. `.smtx` holds no values: without this option it
    /// accepts only matrices of ones.
    pub pattern_only: bool,
    /// Writes only half of a matrix with this symmetry, which is checked; only for Matrix Market.
    pub symmetry: Symmetry,
    /// The arrays of a sparse matrix in `.npz`.
    pub storage: Storage,
}
