//! The battery for dense × dense at the nonzeros of a pattern.

use gustav_core::{Csr, DenseView, Index, Layout, PatternView, Result, Scalar, Semiring};

use super::covering::combinations;
use super::matrices::{Named, matrices};
use super::report::{Report, attempt, wrong};
use super::storage::Storage;
use super::values::{poison, scaling, values};
use super::{DEPTHS, Extent, Scaling, Settings};
use crate::oracle;

/// One product to compute: `values[p] = α·⟨X[row p], Y[column p]⟩·factors[p] + β·values[p]`.
#[derive(Debug)]
pub struct SddmmCase<'a, T: Scalar, I: Index, O: Index> {
    /// The matrix's name in the battery.
    pub name: &'a str,
    /// Where values are computed.
    pub pattern: PatternView<'a, I, O>,
    /// X; its padding is poisoned.
    pub x: DenseView<'a, T>,
    /// Y; its padding is poisoned.
    pub y: DenseView<'a, T>,
    /// α.
    pub alpha: T::Accum,
    /// β; the values are poisoned when it is zero.
    pub beta: T::Accum,
    /// A finite factor of every nonzero.
    pub factors: Option<&'a [T]>,
    /// The values, to be overwritten.
    pub values: &'a mut [T],
}

/// The choices of one case.
struct Choice {
    depth: usize,
    layouts: (Layout, Layout),
    padded: bool,
    factors: bool,
    scaling: Scaling,
}

/// Runs `kernel` on the cases that `settings` select; its columns and transposition have no meaning
/// here.
///
/// # Panics
/// With the list of failed cases: wrong values, errors, panics.
pub fn check_sddmm<T: Scalar, I: Index, O: Index>(
    settings: &Settings,
    mut kernel: impl FnMut(SddmmCase<'_, T, I, O>) -> Result<()>,
) {
    let matrices: Vec<_> =
        matrices::<T, I, O>().into_iter().filter(|m| settings.takes(&m.traits)).collect();
    let (layouts, scalings) = (&settings.layouts, &settings.scalings);
    let sizes = [matrices.len(), DEPTHS.len(), layouts.len(), 2, 2, scalings.len()];
    let mut report = Report::default();
    for row in settings.taken(combinations(&sizes, Extent::Covering)) {
        let choice = Choice {
            depth: DEPTHS[row[1]],
            layouts: layouts[row[2]],
            padded: row[3] == 1 && settings.padded,
            factors: row[4] == 1,
            scaling: scalings[row[5]],
        };
        let matrix = &matrices[row[0]];
        let failure = choice.run(matrix, &mut kernel);
        report.case(|| choice.describe(matrix.name), failure);
    }
    report.finish(&format!("sddmm {} {}/{}", T::DTYPE, I::TYPE, O::TYPE));
}

impl Choice {
    fn describe(&self, name: &str) -> String {
        let Choice { depth, layouts: (x, y), padded, factors, scaling } = self;
        let padded = if *padded { " padded" } else { "" };
        let factors = if *factors { ", factors" } else { "" };
        format!("{name}, d = {depth}, X {x}{padded}, Y {y}{padded}, {scaling:?}{factors}")
    }

    /// What went wrong, if anything.
    fn run<T: Scalar, I: Index, O: Index>(
        &self,
        matrix: &Named<T, I, O>,
        kernel: &mut impl FnMut(SddmmCase<'_, T, I, O>) -> Result<()>,
    ) -> Option<String> {
        let a: &Csr<T, I, O> = &matrix.csr;
        let (m, n, d) = (a.nrows(), a.ncols(), self.depth);
        let (alpha, beta) = scaling::<T::Accum>(Semiring::PlusTimes, self.scaling);
        let x = Storage::new(m, d, self.layouts.0, self.padded);
        let y = Storage::new(n, d, self.layouts.1, self.padded);
        let mut elements = values::<T>(m * d, 1);
        if !matrix.traits.finite {
            // NaN, infinities and what overflows come from the matrix.
            let special = a.values().as_slice().iter().copied().cycle();
            elements.iter_mut().zip(special).step_by(7).for_each(|(to, from)| *to = from);
        }
        let x_data = x.fill(poison(), &elements);
        let y_data = y.fill(poison(), &values(n * d, 2));
        let zero = beta == Semiring::PlusTimes.zero();
        let before = if zero { vec![poison(); a.nnz()] } else { values(a.nnz(), 3) };
        // Of factors that are not finite the reference says nothing.
        let finite = if matrix.traits.finite { Vec::new() } else { values(a.nnz(), 4) };
        let of_matrix = if matrix.traits.finite { a.values().as_slice() } else { &finite[..] };
        let factors = self.factors.then_some(of_matrix);
        let mut found = before.clone();
        let pattern = a.pattern().view();
        let outcome = attempt(|| {
            let (x, y) = (x.view(&x_data)?, y.view(&y_data)?);
            let (name, values) = (matrix.name, &mut found[..]);
            kernel(SddmmCase { name, pattern, x, y, alpha, beta, factors, values })
        });
        let verify = || {
            let (x, y) = (x.view(&x_data)?, y.view(&y_data)?);
            let before = Some(&before[..]);
            oracle::Sddmm { pattern, x, y, alpha, beta, factors, before }.verify(&found)
        };
        outcome.err().or_else(|| wrong(verify()))
    }
}
