//! The operands of one execution, as a kernel's host side sees them.

use gustav_core::{DType, Extremum, IndexType, Layout, Semiring};

/// Addresses on the device, and what they hold. B and C are row-major, but for the algorithms that
/// take any layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands {
    pub offsets: u64,
    pub indices: u64,
    pub values: u64,
    pub rows: usize,
    /// Columns of op(A), rows of B.
    pub inner: usize,
    pub nnz: usize,
    pub b: u64,
    pub ldb: usize,
    pub c: u64,
    pub ldc: usize,
    /// Layouts of B and C in the caller's arrays.
    pub layouts: (Layout, Layout),
    pub columns: usize,
    pub batch: Batch,
    /// Bits of α and β in the type of sums; with an extremum, in place of β the value of empty rows.
    pub alpha: u64,
    pub beta: u64,
    pub dtype: DType,
    /// Type that C is stored in: the values' own, or that of sums.
    pub dtype_c: DType,
    pub index_type: IndexType,
    pub offset_type: IndexType,
    pub semiring: Semiring,
    /// Steps of the epilogue, as bits, and the address of its bias.
    pub steps: u8,
    pub bias: u64,
    /// Which product of a row is taken in place of the sum.
    pub extremum: Option<Extremum>,
    /// Type and address of the winners, where they are asked for, and positions in A of the nonzeros of op(A), null
    /// where they are the same.
    pub winner: Option<IndexType>,
    pub winners: u64,
    pub permutation: u64,
    /// Whether winners are read: a nonzero counts in the columns alone that it won, one for each element of B.
    pub filtered: bool,
}

/// Products on one pattern at once, and values from the arrays of one to those of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    pub count: usize,
    /// 0 when all have the same values of A.
    pub values: usize,
    pub b: usize,
    pub c: usize,
}

impl Batch {
    /// One product alone.
    pub(crate) const ONE: Batch = Batch { count: 1, values: 0, b: 0, c: 0 };
}

/// The bit in `Operands::steps` of extrema.
pub(crate) const EXTREMUM: u8 = 8;
