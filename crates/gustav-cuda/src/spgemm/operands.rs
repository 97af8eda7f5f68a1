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

/// The arrays of a sparse matrix, as kernels are told of them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrays {
    pub offsets: u64,
    pub indices: u64,
    pub values: u64,
}

impl From<Sparse> for Arrays {
    fn from(m: Sparse) -> Self {
        Arrays { offsets: m.offsets, indices: m.indices, values: m.values }
    }
}

/// `Matrices` of `kernels/spgemm/operands.cuh`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Matrices {
    pub a: Arrays,
    pub b: Arrays,
    pub c: Arrays,
}

impl Matrices {
    /// A and B, with a C that has no arrays yet.
    pub(crate) fn of(o: &Operands) -> Self {
        Matrices { a: o.a.into(), b: o.b.into(), c: Arrays::default() }
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
