//! The operands of one execution, as an algorithm's host side sees them.

use gustav_core::{DType, Index, IndexType, Problem, Scalar};

use crate::{DeviceCsr, DevicePattern};

/// Shape and arrays of a sparse matrix on the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sparse {
    pub rows: usize,
    pub cols: usize,
    pub nnz: usize,
    pub offsets: u64,
    pub indices: u64,
    pub values: u64,
}

impl Sparse {
    /// The arrays of `m`.
    pub(crate) fn of<T: Scalar, I: Index, O: Index>(m: &DeviceCsr<T, I, O>) -> Self {
        Sparse { values: m.values().address(), ..Self::of_pattern(m.pattern()) }
    }

    /// The arrays of `m`, without values.
    pub(crate) fn of_pattern<I: Index, O: Index>(m: &DevicePattern<I, O>) -> Self {
        Sparse {
            rows: m.nrows(),
            cols: m.ncols(),
            nnz: m.nnz(),
            offsets: m.offsets().address(),
            indices: m.indices().address(),
            values: 0,
        }
    }
}

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
