//! A sparse matrix on the device, as passed to kernels.

use gustav_core::{Index, Scalar};

use super::DeviceCsr;

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
        Sparse {
            rows: m.nrows(),
            cols: m.ncols(),
            nnz: m.nnz(),
            offsets: m.offsets().address(),
            indices: m.indices().address(),
            values: m.values().address(),
        }
    }
}
