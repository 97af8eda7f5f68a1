//! Matrices of `sprs` (feature `sprs`), with indices in `usize`, `u32`, `u64`, `i32` or `i64`.
//!
//! ```
//! use gustav::interop::sprs::{csr_matrix, csr_view};
//! use sprs::{CsMat, TriMat};
//!
//! let mut triplets = TriMat::new((2, 2));
//! triplets.add_triplet(0, 1, 2.0);
//! triplets.add_triplet(1, 0, 3.0);
//! let a: CsMat<f64> = triplets.to_csr();
//!
//! let view = csr_view(a.view())?; // in place
//! let c: CsMat<f64> = csr_matrix(gustav::spgemm(view, view)?)?;
//! assert_eq!(c, &a * &a);
//! # Ok::<(), gustav::Error>(())
//! ```

use ::sprs::{CsMatI, CsMatViewI, SpIndex};
use gustav_core::{CscView, Csr, CsrView, Error, Result, Scalar};

use super::Indices;

/// The arrays of a matrix in compressed form.
type Arrays<'a, T, I, O> = (&'a [O], &'a [I], &'a [T]);

/// `matrix`, in CSR, in place. Its indices are validated.
///
/// # Errors
/// [`Error::Argument`] for a matrix in CSC, see [`csc_view`], for a slice of the rows of another
/// matrix, and for negative indices; what [`CsrView::new`] finds wrong.
pub fn csr_view<'a, T: Scalar, I: SpIndex + Indices, O: SpIndex + Indices>(
    matrix: CsMatViewI<'a, T, I, O>,
) -> Result<CsrView<'a, T, I::Index, O::Index>> {
    let (nrows, ncols) = matrix.shape();
    if matrix.is_csc() {
        return Err(storage("CSC", "CSR, or csc_view for this one"));
    }
    let (offsets, indices, values) = arrays(matrix)?;
    CsrView::new(nrows, ncols, offsets, indices, values)
}

/// `matrix`, in CSC, in place: [`CscView::transpose`] is its transpose in CSR. Its indices are
/// validated.
///
/// # Errors
/// As [`csr_view`], and [`Error::Argument`] for a matrix in CSR.
pub fn csc_view<'a, T: Scalar, I: SpIndex + Indices, O: SpIndex + Indices>(
    matrix: CsMatViewI<'a, T, I, O>,
) -> Result<CscView<'a, T, I::Index, O::Index>> {
    let (nrows, ncols) = matrix.shape();
    if matrix.is_csr() {
        return Err(storage("CSR", "CSC, or csr_view for this one"));
    }
    let (offsets, indices, values) = arrays(matrix)?;
    CscView::new(nrows, ncols, offsets, indices, values)
}

/// `matrix` as a matrix of `sprs` in CSR. Index arrays of another type are converted; arrays that
/// gustav allocated are copied, as those of `sprs` are `Vec`s.
///
/// # Errors
/// [`Error::Argument`] for rows that are not sorted or repeat a column, which
/// [`Csr::canonicalize`] puts right, and for indices that do not fit; [`Error::OutOfMemory`] for a
/// copy of a pattern that others hold.
pub fn csr_matrix<T: Scalar, I: SpIndex + Indices, O: SpIndex + Indices>(
    matrix: Csr<T, I::Index, O::Index>,
) -> Result<CsMatI<T, I, O>> {
    let shape = (matrix.nrows(), matrix.ncols());
    let (offsets, indices, values) = matrix.into_parts()?;
    let (offsets, indices) = (O::write(offsets.into_vec())?, I::write(indices.into_vec())?);
    CsMatI::try_new(shape, offsets, indices, values.into_vec()).map_err(|(.., e)| Error::Argument {
        name: "matrix for sprs",
        found: e.to_string(),
        expected: "sorted columns in every row, none twice; see Csr::canonicalize".into(),
    })
}

fn storage(found: &str, expected: &str) -> Error {
    Error::Argument { name: "sprs matrix", found: found.into(), expected: expected.into() }
}

fn arrays<'a, T, I: SpIndex + Indices, O: SpIndex + Indices>(
    matrix: CsMatViewI<'a, T, I, O>,
) -> Result<Arrays<'a, T, I::Index, O::Index>> {
    let (offsets, indices, values) = matrix.into_raw_storage();
    if let Some(first) = offsets.first().filter(|first| **first != O::zero()) {
        return Err(Error::Argument {
            name: "sprs matrix",
            found: format!("a slice of another matrix, whose offsets begin at {first:?}"),
            expected: "a matrix of its own, made of proper_indptr(), indices() and data()".into(),
        });
    }
    Ok((O::read(offsets)?, I::read(indices)?, values))
}
