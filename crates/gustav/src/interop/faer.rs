//! Matrices of `faer` (feature `faer`), sparse ones with indices in `usize`, `u32` or `u64`.
//!
//! ```
//! use faer::sparse::{SparseColMat, Triplet};
//! use faer::{Mat, mat};
//! use gustav::{Device, Layout, interop::faer::csc_view};
//!
//! // 2 at (0, 1), 3 at (1, 0), in CSC.
//! let entries = [Triplet::new(0, 1, 2.0), Triplet::new(1, 0, 3.0)];
//! let a = SparseColMat::<usize, f64>::try_new_from_triplets(2, 2, &entries).expect("in range");
//! let b = mat![[1.0, 2.0], [3.0, 4.0]];
//! let mut c = Mat::zeros(2, 2);
//!
//! let at = csc_view(a.as_ref())?.transpose(); // in place: Aᵀ in CSR
//! let columns = Layout::ColumnMajor;
//! let request = at.pattern().spmm(2).transpose(true).layouts(columns, columns);
//! let mut plan = request.plan(&Device::cpu())?;
//! plan.execute(at, &b, &mut c, ())?; // B and C in place
//! assert_eq!(c, mat![[6.0, 8.0], [3.0, 6.0]]);
//! # Ok::<(), gustav::Error>(())
//! ```

use ::faer::sparse::{SparseColMatRef, SparseRowMatRef};
use ::faer::{Index, Mat, MatMut, MatRef};
use gustav_core::{CscView, CsrView, DenseView, DenseViewMut, Error, Layout, Result, Scalar};

use super::{Indices, strides};
use crate::{DenseOperand, DenseResult, IntoOperand};

const COPY: &str = "`to_owned()`";

/// `matrix` in place. Its indices are validated.
///
/// # Errors
/// [`Error::Argument`] for a matrix whose rows do not follow one another without gaps; what
/// [`CsrView::new`] finds wrong.
pub fn csr_view<'a, T: Scalar, I: Index + Indices>(
    matrix: SparseRowMatRef<'a, I, T>,
) -> Result<CsrView<'a, T, <I as Indices>::Index, <I as Indices>::Index>> {
    let (nrows, ncols, offsets, lengths, indices) = matrix.symbolic().parts();
    let (indices, values) = stored(offsets, lengths, indices, matrix.val())?;
    CsrView::new(nrows, ncols, I::read(offsets)?, I::read(indices)?, values)
}

/// `matrix` in place: [`CscView::transpose`] is its transpose in CSR. Its indices are validated.
///
/// # Errors
/// As [`csr_view`].
pub fn csc_view<'a, T: Scalar, I: Index + Indices>(
    matrix: SparseColMatRef<'a, I, T>,
) -> Result<CscView<'a, T, <I as Indices>::Index, <I as Indices>::Index>> {
    let (nrows, ncols, offsets, lengths, indices) = matrix.symbolic().parts();
    let (indices, values) = stored(offsets, lengths, indices, matrix.val())?;
    CscView::new(nrows, ncols, I::read(offsets)?, I::read(indices)?, values)
}

/// The indices and values that the offsets count: `faer`'s arrays may be longer.
fn stored<'a, T, I: Index>(
    offsets: &[I],
    lengths: Option<&[I]>,
    indices: &'a [I],
    values: &'a [T],
) -> Result<(&'a [I], &'a [T])> {
    if lengths.is_some() {
        return Err(Error::Argument {
            name: "faer matrix",
            found: "one in uncompressed form".into(),
            expected: "compressed form, without counts of nonzeros; a matrix made of its triplets \
                       has it"
                .into(),
        });
    }
    let nnz = offsets.last().map_or(0, |last| last.zx());
    Ok((&indices[..nnz.min(indices.len())], &values[..nnz.min(values.len())]))
}

/// `matrix` in place: row-major or column-major, with any distance between its rows or columns.
///
/// # Errors
/// [`Error::Argument`] with the strides when they are others: both above 1, negative, or 0.
pub fn dense_view<T: Scalar>(matrix: MatRef<'_, T>) -> Result<DenseView<'_, T>> {
    let (nrows, ncols) = matrix.shape();
    let (layout, ld) = layout([nrows, ncols], [matrix.row_stride(), matrix.col_stride()])?;
    // SAFETY: the matrix borrows its elements, which are at these strides in one allocation.
    unsafe { DenseView::from_raw_parts(nrows, ncols, layout, ld, matrix.as_ptr()) }
}

/// `matrix` in place, to be written; see [`dense_view`].
///
/// # Errors
/// As [`dense_view`].
pub fn dense_view_mut<T: Scalar>(matrix: MatMut<'_, T>) -> Result<DenseViewMut<'_, T>> {
    let (nrows, ncols) = matrix.shape();
    let (layout, ld) = layout([nrows, ncols], [matrix.row_stride(), matrix.col_stride()])?;
    // SAFETY: the matrix, which ends here, borrows its elements exclusively; they are at these
    // strides in one allocation, and no two are at one position.
    unsafe { DenseViewMut::from_raw_parts(nrows, ncols, layout, ld, matrix.as_ptr_mut()) }
}

fn layout(shape: [usize; 2], of: [isize; 2]) -> Result<(Layout, usize)> {
    strides::layout("faer matrix", shape, of, Layout::ColumnMajor, COPY)
}

impl<'v, T: Scalar> IntoOperand<DenseOperand<'v, T>> for MatRef<'v, T> {
    fn into_operand(self) -> Result<DenseOperand<'v, T>> {
        dense_view(self).map(DenseOperand::Host)
    }
}

impl<'v, T: Scalar> IntoOperand<DenseOperand<'v, T>> for &'v Mat<T> {
    fn into_operand(self) -> Result<DenseOperand<'v, T>> {
        self.as_ref().into_operand()
    }
}

impl<'v, T: Scalar> IntoOperand<DenseResult<'v, T>> for MatMut<'v, T> {
    fn into_operand(self) -> Result<DenseResult<'v, T>> {
        dense_view_mut(self).map(DenseResult::Host)
    }
}

impl<'v, T: Scalar> IntoOperand<DenseResult<'v, T>> for &'v mut Mat<T> {
    fn into_operand(self) -> Result<DenseResult<'v, T>> {
        self.as_mut().into_operand()
    }
}
