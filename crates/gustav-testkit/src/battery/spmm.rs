//! The battery for sparse × dense.

use gustav_core::{
    Csr, CsrView, DenseView, DenseViewMut, Index, Layout, Result, Scalar, Semiring, StaticSemiring,
};

use super::covering::combinations;
use super::matrices::matrices;
use super::report::{Report, attempt, written_outside, wrong};
use super::storage::Storage;
use super::values::{poison, scaling, sentinel, values};
use super::{Scaling, Settings};
use crate::oracle;

/// One product to compute: C = scale(α, op(A)·B) ⊕ scale(β, C).
#[derive(Debug)]
pub struct SpmmCase<'a, T: Scalar, I: Index, O: Index> {
    /// The matrix's name in the battery.
    pub name: &'a str,
    /// A as stored.
    pub a: CsrView<'a, T, I, O>,
    /// Whether op(A) is Aᵀ.
    pub transpose_a: bool,
    /// B; its padding is poisoned.
    pub b: DenseView<'a, T>,
    /// α.
    pub alpha: T::Accum,
    /// β; C is poisoned when it is the semiring's zero.
    pub beta: T::Accum,
    /// C, to be overwritten; its padding must stay as it is.
    pub c: DenseViewMut<'a, T>,
}

/// The choices of one case.
struct Choice {
    transpose_a: bool,
    columns: usize,
    layouts: (Layout, Layout),
    padded: (bool, bool),
    scaling: Scaling,
}

/// Runs `kernel` on the cases that `settings` select, in semiring `S`.
///
/// # Panics
/// With the list of failed cases: wrong elements, errors, panics, padding written.
pub fn check_spmm<T, I, O, S>(
    settings: &Settings,
    kernel: impl FnMut(SpmmCase<'_, T, I, O>) -> Result<()>,
) where
    T: Scalar,
    I: Index,
    O: Index,
    S: StaticSemiring<T::Accum>,
{
    check_spmm_over(S::KIND, settings, kernel);
}

/// [`check_spmm`] over a semiring that is known at run time.
///
/// # Panics
/// As there.
pub fn check_spmm_over<T: Scalar, I: Index, O: Index>(
    semiring: Semiring,
    settings: &Settings,
    mut kernel: impl FnMut(SpmmCase<'_, T, I, O>) -> Result<()>,
) {
    let matrices: Vec<_> =
        matrices::<T, I, O>().into_iter().filter(|m| settings.takes(&m.traits)).collect();
    let paddings = if settings.padded { 2 } else { 1 };
    let factors = [
        matrices.len(),
        settings.columns.len(),
        settings.layouts.len(),
        paddings,
        paddings,
        settings.transpose_a.len(),
        settings.scalings.len(),
    ];
    let mut report = Report::default();
    for row in settings.taken(combinations(&factors, settings.extent)) {
        let matrix = &matrices[row[0]];
        let choice = Choice {
            columns: settings.columns[row[1]],
            layouts: settings.layouts[row[2]],
            padded: (row[3] == 1, row[4] == 1),
            transpose_a: settings.transpose_a[row[5]],
            scaling: settings.scalings[row[6]],
        };
        let failure = choice.run(semiring, matrix.name, &matrix.csr, &mut kernel);
        report.case(|| choice.describe(matrix.name), failure);
    }
    report.finish(&format!("spmm {semiring} {} {}/{}", T::DTYPE, I::TYPE, O::TYPE));
}

impl Choice {
    fn describe(&self, name: &str) -> String {
        let padded = |p| if p { " padded" } else { "" };
        format!(
            "{name}{}, n = {}, B {}{}, C {}{}, {:?}",
            if self.transpose_a { " transposed" } else { "" },
            self.columns,
            self.layouts.0,
            padded(self.padded.0),
            self.layouts.1,
            padded(self.padded.1),
            self.scaling
        )
    }

    /// What went wrong, if anything.
    fn run<T: Scalar, I: Index, O: Index>(
        &self,
        semiring: Semiring,
        name: &str,
        a: &Csr<T, I, O>,
        kernel: &mut impl FnMut(SpmmCase<'_, T, I, O>) -> Result<()>,
    ) -> Option<String> {
        let (rows, inner) =
            if self.transpose_a { (a.ncols(), a.nrows()) } else { (a.nrows(), a.ncols()) };
        let (alpha, beta) = scaling::<T::Accum>(semiring, self.scaling);
        let n = self.columns;
        let b = Storage::new(inner, n, self.layouts.0, self.padded.0);
        let c = Storage::new(rows, n, self.layouts.1, self.padded.1);
        let b_data = b.fill(poison(), &values(inner * n, 1));
        let start =
            if beta == semiring.zero() { vec![poison(); rows * n] } else { values(rows * n, 2) };
        let before = c.fill(sentinel(), &start);
        let mut found = before.clone();
        let outcome = attempt(|| {
            kernel(SpmmCase {
                name,
                a: a.view(),
                transpose_a: self.transpose_a,
                b: b.view(&b_data)?,
                alpha,
                beta,
                c: DenseViewMut::new(rows, n, c.layout, c.ld, &mut found)?,
            })
        });
        if let Err(failure) = outcome {
            return Some(failure);
        }
        let verify = || {
            let reference = oracle::Spmm {
                semiring,
                a: a.view(),
                transpose_a: self.transpose_a,
                b: b.view(&b_data)?,
                alpha,
                beta,
                before: Some(c.view(&before)?),
                mean: false,
            };
            reference.verify(c.view(&found)?)
        };
        wrong(verify()).or_else(|| written_outside(&found, |k| c.holds(k), sentinel()))
    }
}
