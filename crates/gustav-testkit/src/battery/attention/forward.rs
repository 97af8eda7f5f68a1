//! The battery for attention.

use gustav_core::{
    DenseView, DenseViewMut, HeadValues, Index, PatternView, Result, Scalar, ScoreOptions,
};

use super::operands::{Choice, cases};
use crate::battery::Settings;
use crate::battery::matrices::Named;
use crate::battery::report::{Report, attempt, wrong};
use crate::battery::values::poison;

/// One product to compute: O = softmax(leaky(scale·Q·Kᵀ + bias))·V over the rows of a pattern. All
/// matrices are row-major; their shapes say where heads are.
#[derive(Debug)]
pub struct AttentionCase<'a, T: Scalar, I: Index, O: Index> {
    /// The matrix's name in the battery.
    pub name: &'a str,
    /// The pattern.
    pub pattern: PatternView<'a, I, O>,
    /// Heads.
    pub heads: usize,
    /// Columns of Q and K of a head.
    pub columns: usize,
    /// Columns of V and O of a head.
    pub value_columns: usize,
    /// Q; its padding is poisoned, as that of the others.
    pub q: DenseView<'a, T>,
    /// K.
    pub k: DenseView<'a, T>,
    /// V.
    pub v: DenseView<'a, T>,
    /// How scores are made of inner products.
    pub scores: ScoreOptions<T::Accum>,
    /// What is added to scores.
    pub bias: Option<(&'a [T], HeadValues)>,
    /// O, to be overwritten; its padding must stay as it is.
    pub o: DenseViewMut<'a, T>,
    /// Where the logarithms of the sums of exponentials go, `[head · rows + row]`.
    pub lse: Option<&'a mut [T::Accum]>,
}

/// Runs `kernel` on the cases that `settings` select; columns, layouts, transposition and scalings
/// have no meaning here.
///
/// # Panics
/// With the list of failed cases: wrong values, errors, panics, padding written.
pub fn check_attention<T: Scalar, I: Index, O: Index>(
    settings: &Settings,
    mut kernel: impl FnMut(AttentionCase<'_, T, I, O>) -> Result<()>,
) {
    let mut report = Report::default();
    for (matrix, choice) in cases::<T, I, O>(settings) {
        let failure = run(&choice, &matrix, &mut kernel);
        report.case(|| choice.describe(matrix.name), failure);
    }
    report.finish(&format!("attention {} {}/{}", T::DTYPE, I::TYPE, O::TYPE));
}

/// What went wrong, if anything.
fn run<T: Scalar, I: Index, O: Index>(
    choice: &Choice,
    matrix: &Named<T, I, O>,
    kernel: &mut impl FnMut(AttentionCase<'_, T, I, O>) -> Result<()>,
) -> Option<String> {
    let pattern = matrix.csr.pattern().view();
    let operands = choice.operands::<T, I, O>(pattern);
    let mut o = choice.result::<T>(3, pattern.nrows(), choice.value_columns);
    // Every other case keeps them.
    let mut lse = vec![poison(); pattern.nrows() * choice.heads];
    let keeps = choice.extra.is_some();
    let outcome = attempt(|| {
        kernel(AttentionCase {
            name: matrix.name,
            pattern,
            heads: choice.heads,
            columns: choice.columns,
            value_columns: choice.value_columns,
            q: operands.q.view()?,
            k: operands.k.view()?,
            v: operands.v.view()?,
            scores: operands.scores,
            bias: operands.bias(),
            o: o.view_mut()?,
            lse: keeps.then_some(&mut lse[..]),
        })
    });
    let verify =
        || choice.reference(pattern, &operands)?.verify(o.view()?, keeps.then_some(&lse[..]));
    outcome.err().or_else(|| wrong(verify())).or_else(|| o.written_outside())
}
