//! The operands of one execution, as passed to the host side of kernels.

use gustav_core::{DType, Extremum, IndexType, Layout, Semiring};

/// Device addresses and sizes. B and C are row-major, except for algorithms that support any
/// layout.
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
    /// Bits of α and β in the type of sums; with an extremum, β is the value of empty rows.
    pub alpha: u64,
    pub beta: u64,
    pub dtype: DType,
    /// Type that C is stored in: the values' own, or that of sums.
    pub dtype_c: DType,
    pub index_type: IndexType,
    pub offset_type: IndexType,
    pub semiring: Semiring,
    /// Operations of the epilogue as bits, and the address of its bias.
    pub steps: u8,
    pub bias: u64,
    /// Max or min of the products of a row in place of their sum.
    pub extremum: Option<Extremum>,
    /// Type and address of the winners, if requested, and positions in A of the nonzeros of op(A),
    /// null if they are the same.
    pub winner: Option<IndexType>,
    pub winners: u64,
    pub permutation: u64,
    /// Whether winners are read: there is one for each element of B, and a nonzero contributes only
    /// in columns where it is the winner.
    pub filtered: bool,
}

/// Products of a batch, and the distances in values from the arrays of one product to those of the
/// next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    pub count: usize,
    /// 0 if all products have the same values of A.
    pub values: usize,
    pub b: usize,
    pub c: usize,
}

impl Batch {
    /// A single product.
    pub(crate) const ONE: Batch = Batch { count: 1, values: 0, b: 0, c: 0 };
}

/// The bit of `Operands::steps` that means an extremum.
pub(crate) const EXTREMUM: u8 = 8;
