//! Matrices of `nalgebra-sparse` and `nalgebra` (feature `nalgebra-sparse`).
//!
//! ```
//! use gustav::interop::nalgebra_sparse::{csr_matrix, csr_view};
//! use nalgebra_sparse::{CooMatrix, CsrMatrix, na::DMatrix};
//!
//! let mut triplets = CooMatrix::new(2, 2);
//! triplets.push(0, 1, 2.0);
//! triplets.push(1, 0, 3.0);
//! let a = CsrMatrix::from(&triplets);
//! let b = DMatrix::from_row_slice(2, 2, &[1.0, 2.0, 3.0, 4.0]);
//!
//! let view = csr_view(&a)?; // in place
//! let c = gustav::spmm(view, &b)?;
//! assert_eq!(c.data(), [6.0, 8.0, 3.0, 6.0]);
//! let square: CsrMatrix<f64> = csr_matrix(gustav::spgemm(view, view)?)?;
//! assert_eq!(square, &a * &a);
//! # Ok::<(), gustav::Error>(())
//! ```
//!
//! A [`DMatrix`](::nalgebra_sparse::na::DMatrix) is column-major: a plan for it says so by
//! `layouts`.

use ::nalgebra_sparse::na::{Dim, IsContiguous, Matrix, RawStorage, RawStorageMut};
use ::nalgebra_sparse::{CscMatrix, CsrMatrix};
use gustav_core::{
    CscView, Csr, CsrView, DenseView, DenseViewMut, Error, Index, Layout, Result, Scalar,
};

use super::Indices;
use crate::{DenseOperand, DenseResult, IntoOperand};

/// `matrix` in place. Its indices are validated.
///
/// # Errors
/// What [`CsrView::new`] finds wrong.
pub fn csr_view<T: Scalar>(matrix: &CsrMatrix<T>) -> Result<CsrView<'_, T, u64, u64>> {
    let (offsets, indices, values) = matrix.csr_data();
    let (offsets, indices) = (Indices::read(offsets)?, Indices::read(indices)?);
    CsrView::new(matrix.nrows(), matrix.ncols(), offsets, indices, values)
}

/// `matrix` in place: [`CscView::transpose`] is its transpose in CSR. Its indices are validated.
///
/// # Errors
/// As [`csr_view`].
pub fn csc_view<T: Scalar>(matrix: &CscMatrix<T>) -> Result<CscView<'_, T, u64, u64>> {
    let (offsets, indices, values) = matrix.csc_data();
    let (offsets, indices) = (Indices::read(offsets)?, Indices::read(indices)?);
    CscView::new(matrix.nrows(), matrix.ncols(), offsets, indices, values)
}

/// `matrix` as a matrix of `nalgebra-sparse`, with its indices converted to `usize`. Values that
/// gustav allocated are copied, as those of `nalgebra-sparse` are a `Vec`.
///
/// # Errors
/// [`Error::Argument`] for rows that are not sorted or repeat a column, which [`Csr::canonicalize`]
/// puts right; [`Error::OutOfMemory`] for a copy of a pattern that others hold.
pub fn csr_matrix<T: Scalar, I: Index, O: Index>(matrix: Csr<T, I, O>) -> Result<CsrMatrix<T>> {
    let (nrows, ncols) = (matrix.nrows(), matrix.ncols());
    let (offsets, indices, values) = matrix.into_parts()?;
    let offsets = offsets.iter().map(|o| o.to_usize()).collect();
    let indices = indices.iter().map(|i| i.to_usize()).collect();
    let made = CsrMatrix::try_from_csr_data(nrows, ncols, offsets, indices, values.into_vec());
    made.map_err(|e| Error::Argument {
        name: "matrix for nalgebra-sparse",
        found: e.to_string(),
        expected: "sorted columns in every row, none twice; see Csr::canonicalize".into(),
    })
}

/// `matrix` in place, column-major.
///
/// # Errors
/// [`Error::Length`] if it has fewer elements than its shape says.
pub fn dense_view<T: Scalar, R: Dim, C: Dim, S: RawStorage<T, R, C> + IsContiguous>(
    matrix: &Matrix<T, R, C, S>,
) -> Result<DenseView<'_, T>> {
    let (nrows, ncols) = matrix.shape();
    DenseView::new(nrows, ncols, Layout::ColumnMajor, nrows, matrix.as_slice())
}

/// `matrix` in place, column-major, to be written.
///
/// # Errors
/// As [`dense_view`].
pub fn dense_view_mut<T: Scalar, R: Dim, C: Dim, S: RawStorageMut<T, R, C> + IsContiguous>(
    matrix: &mut Matrix<T, R, C, S>,
) -> Result<DenseViewMut<'_, T>> {
    let (nrows, ncols) = matrix.shape();
    DenseViewMut::new(nrows, ncols, Layout::ColumnMajor, nrows, matrix.as_mut_slice())
}

impl<'v, T: Scalar, R: Dim, C: Dim, S: RawStorage<T, R, C> + IsContiguous>
    IntoOperand<DenseOperand<'v, T>> for &'v Matrix<T, R, C, S>
{
    fn into_operand(self) -> Result<DenseOperand<'v, T>> {
        dense_view(self).map(DenseOperand::Host)
    }
}

impl<'v, T: Scalar, R: Dim, C: Dim, S: RawStorageMut<T, R, C> + IsContiguous>
    IntoOperand<DenseResult<'v, T>> for &'v mut Matrix<T, R, C, S>
{
    fn into_operand(self) -> Result<DenseResult<'v, T>> {
        dense_view_mut(self).map(DenseResult::Host)
    }
}
