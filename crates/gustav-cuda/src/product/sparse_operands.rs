//! The operands of one execution of an SpGEMM, as passed to algorithms.

use gustav_core::{DType, IndexType, Problem};

pub(crate) use crate::matrix::Sparse;

parameter_block! {
    /// The arrays of a sparse matrix that kernels read.
    pub(crate) struct Matrix {
        pub offsets: *const Offset,
        pub indices: *const Index,
        pub values: *const Value,
    }

    /// The arrays of a sparse matrix that kernels write.
    pub(crate) struct Output {
        pub offsets: *mut Offset,
        pub indices: *mut Index,
        pub values: *mut Out,
    }
}

impl From<Sparse> for Matrix {
    fn from(m: Sparse) -> Self {
        Matrix { offsets: m.offsets, indices: m.indices, values: m.values }
    }
}

impl From<Sparse> for Output {
    fn from(m: Sparse) -> Self {
        Output { offsets: m.offsets, indices: m.indices, values: m.values }
    }
}

/// op(A), B and α.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands {
    pub a: Sparse,
    pub b: Sparse,
    /// Bits of α in the type of sums.
    pub alpha: u64,
    pub dtype: DType,
    pub index_type: IndexType,
    pub offset_type: IndexType,
}

impl Operands {
    /// The operands of `problem` with these arrays.
    pub(crate) fn new(problem: &Problem, a: Sparse, b: Sparse, alpha: u64) -> Self {
        Operands {
            a,
            b,
            alpha,
            dtype: problem.dtype,
            index_type: problem.index_type,
            offset_type: problem.offset_type,
        }
    }
}
