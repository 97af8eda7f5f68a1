//! The battery for the gradients of attention.

use gustav_core::{
    DenseView, DenseViewMut, HeadValues, Index, PatternView, Result, Scalar, ScoreOptions,
};

use super::operands::{Choice, cases};
use crate::battery::Settings;
use crate::battery::matrices::Named;
use crate::battery::report::{Report, attempt, wrong};
use crate::battery::values::poison;
use crate::oracle;

/// The gradients of one product to compute, given that of O. All matrices are row-major; their
/// shapes say where heads are.
#[derive(Debug)]
pub struct AttentionGradientsCase<'a, T: Scalar, I: Index, O: Index> {
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
    /// O.
    pub o: DenseView<'a, T>,
    /// The logarithms of the sums of exponentials, `[head · rows + row]`.
    pub lse: &'a [T::Accum],
    /// The gradient with respect to O.
    pub of_o: DenseView<'a, T>,
    /// How scores are made of inner products.
    pub scores: ScoreOptions<T::Accum>,
    /// What is added to scores.
    pub bias: Option<(&'a [T], HeadValues)>,
    /// The gradient with respect to Q, to be overwritten; its padding must stay as it is, as that
    /// of the others.
    pub of_q: DenseViewMut<'a, T>,
    /// With respect to K.
    pub of_k: DenseViewMut<'a, T>,
    /// With respect to V.
    pub of_v: DenseViewMut<'a, T>,
    /// With respect to the bias; the sum over heads where they share one.
    pub of_bias: Option<(&'a mut [T], HeadValues)>,
}

/// Runs `kernel` on the cases that `settings` select; columns, layouts, transposition and scalings
/// have no meaning here.
///
/// # Panics
/// With the list of failed cases: wrong values, errors, panics, padding written.
pub fn check_attention_gradients<T: Scalar, I: Index, O: Index>(
    settings: &Settings,
    mut kernel: impl FnMut(AttentionGradientsCase<'_, T, I, O>) -> Result<()>,
) {
    let mut report = Report::default();
    for (matrix, choice) in cases::<T, I, O>(settings) {
        let failure = run(&choice, &matrix, &mut kernel);
        report.case(|| choice.describe(matrix.name), failure);
    }
    report.finish(&format!("gradients of attention {} {}/{}", T::DTYPE, I::TYPE, O::TYPE));
}

/// What went wrong, if anything.
fn run<T: Scalar, I: Index, O: Index>(
    choice: &Choice,
    matrix: &Named<T, I, O>,
    kernel: &mut impl FnMut(AttentionGradientsCase<'_, T, I, O>) -> Result<()>,
) -> Option<String> {
    let pattern = matrix.csr.pattern().view();
    let (m, n) = (pattern.nrows(), pattern.ncols());
    let operands = choice.operands::<T, I, O>(pattern);
    let product = match choice.reference(pattern, &operands) {
        Ok(product) => product,
        Err(error) => return Some(format!("the battery's own operands: {error}")),
    };
    let before = match product.compute() {
        Ok(before) => before,
        Err(error) => return Some(format!("the reference: {error}")),
    };
    let (d, e) = (choice.columns, choice.value_columns);
    let o = choice.given::<T>(3, m, e, &before.o);
    let lse: Vec<_> = before.lse.iter().map(|v| T::Accum::from_f64(*v)).collect();
    let of_o = choice.seeded::<T>(4, m, e);
    let mut of_q = choice.result::<T>(5, m, d);
    let mut of_k = choice.result::<T>(6, n, d);
    let mut of_v = choice.result::<T>(7, n, e);
    let nonzeros = choice.extra.map_or(0, |order| order.len(choice.heads, pattern.nnz()));
    let mut of_bias = vec![poison(); nonzeros];
    let outcome = attempt(|| {
        kernel(AttentionGradientsCase {
            name: matrix.name,
            pattern,
            heads: choice.heads,
            columns: d,
            value_columns: e,
            q: product.q,
            k: product.k,
            v: product.v,
            o: o.view()?,
            lse: &lse,
            of_o: of_o.view()?,
            scores: product.scores,
            bias: product.bias,
            of_q: of_q.view_mut()?,
            of_k: of_k.view_mut()?,
            of_v: of_v.view_mut()?,
            of_bias: choice.extra.map(|order| (&mut of_bias[..], order)),
        })
    });
    let verify = || {
        let (o, of_o) = (o.view()?, of_o.view()?);
        let reference = oracle::AttentionGradients { product, o, lse: &lse, of_o };
        reference.verify(&oracle::FoundGradients {
            of_q: of_q.view()?,
            of_k: of_k.view()?,
            of_v: of_v.view()?,
            of_bias: choice.extra.map(|order| (&of_bias[..], order)),
        })
    };
    let results = [&of_q, &of_k, &of_v];
    let outside = || results.into_iter().find_map(|result| result.written_outside());
    outcome.err().or_else(|| wrong(verify())).or_else(outside)
}
