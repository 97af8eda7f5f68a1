//! The battery for sparse × vector.

use gustav_core::{CsrView, Index, Result, Scalar, Semiring, StaticSemiring};

use super::Settings;
use super::covering::combinations;
use super::matrices::matrices;
use super::report::{Report, attempt, wrong};
use super::values::{poison, scaling, values};
use crate::oracle;

/// One product to compute: y = scale(α, op(A)·x) ⊕ scale(β, y).
#[derive(Debug)]
pub struct SpmvCase<'a, T: Scalar, I: Index, O: Index> {
    /// The matrix's name in the battery.
    pub name: &'a str,
    /// A as stored.
    pub a: CsrView<'a, T, I, O>,
    /// Whether op(A) is Aᵀ.
    pub transpose_a: bool,
    /// x.
    pub x: &'a [T],
    /// α.
    pub alpha: T::Accum,
    /// β; y is poisoned when it is the semiring's zero.
    pub beta: T::Accum,
    /// y, to be overwritten.
    pub y: &'a mut [T],
}

/// Runs `kernel` on the cases that `settings` select, in semiring `S`.
///
/// # Panics
/// With the list of failed cases: wrong elements, errors, panics.
pub fn check_spmv<T, I, O, S>(
    settings: &Settings,
    kernel: impl FnMut(SpmvCase<'_, T, I, O>) -> Result<()>,
) where
    T: Scalar,
    I: Index,
    O: Index,
    S: StaticSemiring<T::Accum>,
{
    check_spmv_over(S::KIND, settings, kernel);
}

/// [`check_spmv`] over a semiring that is known at run time.
///
/// # Panics
/// As there.
pub fn check_spmv_over<T: Scalar, I: Index, O: Index>(
    semiring: Semiring,
    settings: &Settings,
    mut kernel: impl FnMut(SpmvCase<'_, T, I, O>) -> Result<()>,
) {
    let matrices: Vec<_> =
        matrices::<T, I, O>().into_iter().filter(|m| settings.takes(&m.traits)).collect();
    let factors = [matrices.len(), settings.transpose_a.len(), settings.scalings.len()];
    let mut report = Report::default();
    // The three factors are few enough to be crossed in full.
    for row in settings.taken(combinations(&factors, super::Extent::Full)) {
        let matrix = &matrices[row[0]];
        let transpose_a = settings.transpose_a[row[1]];
        let choice = settings.scalings[row[2]];
        let (alpha, beta) = scaling::<T::Accum>(semiring, choice);
        let a = matrix.csr.view();
        let (rows, inner) =
            if transpose_a { (a.ncols(), a.nrows()) } else { (a.nrows(), a.ncols()) };
        let x = values::<T>(inner, 1);
        let before = if beta == semiring.zero() { vec![poison(); rows] } else { values(rows, 2) };
        let mut y = before.clone();
        let name = matrix.name;
        let case = SpmvCase { name, a, transpose_a, x: &x, alpha, beta, y: &mut y };
        let failure = match attempt(|| kernel(case)) {
            Err(failure) => Some(failure),
            Ok(()) => {
                let before = Some(&before[..]);
                wrong(oracle::spmv(semiring, a, transpose_a, &x, alpha, beta, before, &y))
            }
        };
        let transposed = if transpose_a { " transposed" } else { "" };
        report.case(|| format!("{name}{transposed}, {choice:?}"), failure);
    }
    report.finish(&format!("spmv {semiring} {} {}/{}", T::DTYPE, I::TYPE, O::TYPE));
}
