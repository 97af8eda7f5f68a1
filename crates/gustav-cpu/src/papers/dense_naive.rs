//! `dense-naive` (Chen et al. 2025, §4.1.1): the triple loop over dense operands, the study's
//! reference for correctness. The dense product becomes CSR in the paper's three steps (§3.3), so
//! sums of exactly zero are not stored. Operands are multiplied with all their zeros: an infinity
//! or NaN in A or B is multiplied by them, as in the paper.

use gustav_core::{Arith, Csr, CsrView, Dense, Error, Layout, Problem, Result, Scalar};
use gustav_plan::Algorithm;

// Bytes of the three dense matrices together.
const MEMORY_CAP: u128 = 2 << 30;

pub(crate) fn supports(problem: &Problem) -> Result<()> {
    super::supports(problem)?;
    let (m, k, n) = (problem.rows as u128, problem.cols as u128, problem.columns as u128);
    let bytes = (m * k + k * n + m * n) * problem.dtype.bytes() as u128;
    if bytes <= MEMORY_CAP {
        return Ok(());
    }
    Err(Error::Unsupported {
        problem: problem.to_string(),
        backend: Algorithm::DenseNaive.name().into(),
        reason: format!("its dense matrices need {bytes} bytes, more than {MEMORY_CAP}"),
        nearest: Algorithm::Gustavson.name().into(),
    })
}

/// C = α·A·B without its zeros, rows sorted.
///
/// # Errors
/// [`Error::OutOfMemory`], and [`Error::Overflow`] when the entries of C outnumber the offset
/// type.
pub(super) fn multiply<T: Scalar>(
    a: CsrView<'_, T>,
    alpha: T::Accum,
    b: CsrView<'_, T>,
) -> Result<Csr<T>> {
    let (m, k, n) = (a.nrows(), a.ncols(), b.ncols());
    let a = a.to_dense(Layout::RowMajor)?;
    let b = b.to_dense(Layout::RowMajor)?;
    let (a, b) = (a.view(), b.view());
    let mut c = Dense::<T>::zeros(m, n, Layout::RowMajor)?;
    let mut view = c.view_mut();
    for i in 0..m {
        for j in 0..n {
            let mut sum = T::Accum::zero();
            for l in 0..k {
                sum = sum.plus(a.get(i, l).to_accum().times(b.get(l, j).to_accum()));
            }
            view.set(i, j, T::from_accum(alpha.times(sum)));
        }
    }
    Csr::from_dense(c.view())
}
