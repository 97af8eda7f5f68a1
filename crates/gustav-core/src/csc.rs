//! CSC: column offsets, row indices, values. CSC of A is CSR of Aᵀ.

use crate::{Buffer, Csr, CsrView, Index, Result, Scalar};

/// A sparse matrix in compressed sparse column form, owned.
///
/// Stored as the CSR arrays of its transpose, with the same invariants.
#[derive(Clone, Debug, PartialEq)]
pub struct Csc<T, I = u32, O = u32>(Csr<T, I, O>)
where
    T: Scalar,
    I: Index,
    O: Index;

/// A sparse matrix in CSC form over borrowed arrays.
#[derive(Clone, Copy, Debug)]
pub struct CscView<'a, T, I = u32, O = u32>(CsrView<'a, T, I, O>)
where
    T: Scalar,
    I: Index,
    O: Index;

impl<T: Scalar, I: Index, O: Index> Csc<T, I, O> {
    /// An `nrows` × `ncols` matrix from column offsets, row indices and values, checked.
    ///
    /// # Errors
    /// As [`Csr::new`], with "row" meaning the column of the CSC matrix.
    pub fn new(
        nrows: usize,
        ncols: usize,
        offsets: impl Into<Buffer<O>>,
        indices: impl Into<Buffer<I>>,
        values: impl Into<Buffer<T>>,
    ) -> Result<Self> {
        Csr::new(ncols, nrows, offsets, indices, values).map(Csc)
    }

    /// The matrix whose transpose is `csr`, without a copy.
    pub fn from_transpose(csr: Csr<T, I, O>) -> Self {
        Csc(csr)
    }

    /// The transpose in CSR form, without a copy.
    pub fn into_transpose(self) -> Csr<T, I, O> {
        self.0
    }

    /// The matrix as a view.
    pub fn view(&self) -> CscView<'_, T, I, O> {
        CscView(self.0.view())
    }
}

impl<'a, T: Scalar, I: Index, O: Index> CscView<'a, T, I, O> {
    /// An `nrows` × `ncols` matrix over borrowed arrays, checked.
    ///
    /// # Errors
    /// As [`Csr::new`], with "row" meaning the column of the CSC matrix.
    pub fn new(
        nrows: usize,
        ncols: usize,
        offsets: &'a [O],
        indices: &'a [I],
        values: &'a [T],
    ) -> Result<Self> {
        CsrView::new(ncols, nrows, offsets, indices, values).map(CscView)
    }

    /// The transpose in CSR form, without a copy.
    pub fn transpose(&self) -> CsrView<'a, T, I, O> {
        self.0
    }

    /// Number of rows.
    pub fn nrows(&self) -> usize {
        self.0.ncols()
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.0.nrows()
    }

    /// Number of stored entries.
    pub fn nnz(&self) -> usize {
        self.0.nnz()
    }

    /// The matrix in CSR form.
    ///
    /// # Errors
    /// As [`CsrView::transpose`].
    pub fn to_csr(&self) -> Result<Csr<T, I, O>> {
        self.0.transpose()
    }
}
