//! The battery for the softmax of values over the rows of a pattern, and its gradient.

use gustav_core::{DType, HeadValues, Index, PatternView, Result, Scalar};

use super::Settings;
use super::covering::combinations;
use super::matrices::{Named, matrices};
use super::report::{Report, attempt, wrong};
use super::values::{poison, values};
use crate::oracle;

/// One softmax to compute.
#[derive(Debug)]
pub struct SoftmaxCase<'a, T: Scalar, I: Index, O: Index> {
    /// The matrix's name in the battery.
    pub name: &'a str,
    /// The pattern.
    pub pattern: PatternView<'a, I, O>,
    /// Heads.
    pub heads: usize,
    /// Where values are.
    pub order: HeadValues,
    /// The values.
    pub values: &'a [T],
    /// The result, to be overwritten.
    pub out: &'a mut [T],
}

/// The gradient of one softmax to compute.
#[derive(Debug)]
pub struct SoftmaxGradientCase<'a, T: Scalar, I: Index, O: Index> {
    /// The matrix's name in the battery.
    pub name: &'a str,
    /// The pattern.
    pub pattern: PatternView<'a, I, O>,
    /// Heads.
    pub heads: usize,
    /// Where values are.
    pub order: HeadValues,
    /// The softmax.
    pub weights: &'a [T],
    /// The gradient with respect to it.
    pub of_weights: &'a [T],
    /// The gradient with respect to the values, to be overwritten.
    pub out: &'a mut [T],
}

/// Heads, and where their values are.
const ORDERS: [(usize, HeadValues); 5] = [
    (1, HeadValues::Shared),
    (1, HeadValues::HeadMajor),
    (3, HeadValues::HeadMajor),
    (1, HeadValues::NonzeroMajor),
    (3, HeadValues::NonzeroMajor),
];

/// The values of a case.
#[derive(Clone, Copy, Debug)]
enum Numbers {
    /// Those of the matrix.
    Own,
    /// Their exponentials overflow.
    Huge,
    /// −∞ among them, rows of −∞ alone, +∞ and NaN.
    Special,
}

/// A case without its kernel.
struct Choice {
    heads: usize,
    order: HeadValues,
    numbers: Numbers,
}

fn cases<T: Scalar, I: Index, O: Index>(
    settings: &Settings,
) -> impl Iterator<Item = (Named<T, I, O>, Choice)> {
    let takes = |m: &Named<T, I, O>| settings.takes(&m.traits);
    let matrices: Vec<_> = matrices::<T, I, O>().into_iter().filter(takes).collect();
    let kinds = if settings.nonfinite { 3 } else { 2 };
    combinations(&[matrices.len(), ORDERS.len(), kinds], settings.extent).into_iter().map(
        move |row| {
            let (heads, order) = ORDERS[row[1]];
            let numbers = [Numbers::Own, Numbers::Huge, Numbers::Special][row[2]];
            (matrices[row[0]].clone(), Choice { heads, order, numbers })
        },
    )
}

/// Runs `kernel` on the softmaxes that `settings` select.
///
/// # Panics
/// With the list of failed cases: wrong values, errors, panics.
pub fn check_softmax<T: Scalar, I: Index, O: Index>(
    settings: &Settings,
    mut kernel: impl FnMut(SoftmaxCase<'_, T, I, O>) -> Result<()>,
) {
    let mut report = Report::default();
    for (matrix, choice) in cases::<T, I, O>(settings) {
        let pattern = matrix.csr.pattern().view();
        let (heads, order) = (choice.heads, choice.order);
        let values = choice.values(&matrix);
        let mut found = vec![poison(); values.len()];
        let outcome = attempt(|| {
            let (name, values, out) = (matrix.name, &values[..], &mut found[..]);
            kernel(SoftmaxCase { name, pattern, heads, order, values, out })
        });
        let verify = || oracle::Softmax { pattern, heads, order }.verify(&values, &found);
        let failure = outcome.err().or_else(|| wrong(verify()));
        report.case(|| choice.describe(matrix.name), failure);
    }
    report.finish(&format!("softmax {} {}/{}", T::DTYPE, I::TYPE, O::TYPE));
}

/// Runs `kernel` on the gradients of softmaxes that `settings` select.
///
/// # Panics
/// As [`check_softmax`].
pub fn check_softmax_gradient<T: Scalar, I: Index, O: Index>(
    settings: &Settings,
    mut kernel: impl FnMut(SoftmaxGradientCase<'_, T, I, O>) -> Result<()>,
) {
    let mut report = Report::default();
    for (matrix, choice) in cases::<T, I, O>(settings) {
        let pattern = matrix.csr.pattern().view();
        let (heads, order) = (choice.heads, choice.order);
        // Any numbers have a gradient; those of a softmax add up to 1 or 0 in a row.
        let weights = choice.values(&matrix);
        let of_weights = values::<T>(weights.len(), 9);
        let mut found = vec![poison(); weights.len()];
        let outcome = attempt(|| {
            let (name, out) = (matrix.name, &mut found[..]);
            let (weights, of_weights) = (&weights[..], &of_weights[..]);
            kernel(SoftmaxGradientCase { name, pattern, heads, order, weights, of_weights, out })
        });
        let verify = || {
            let reference = oracle::Softmax { pattern, heads, order };
            reference.verify_gradient(&weights, &of_weights, &found)
        };
        let failure = outcome.err().or_else(|| wrong(verify()));
        report.case(|| choice.describe(matrix.name), failure);
    }
    report.finish(&format!("gradient of softmax {} {}/{}", T::DTYPE, I::TYPE, O::TYPE));
}

impl Choice {
    fn describe(&self, name: &str) -> String {
        let Choice { heads, order, numbers } = self;
        format!("{name}, {heads} heads, {order:?}, {numbers:?} values")
    }

    fn values<T: Scalar, I: Index, O: Index>(&self, matrix: &Named<T, I, O>) -> Vec<T> {
        let (a, Choice { heads, order, .. }) = (&matrix.csr, self);
        let len = order.len(*heads, a.nnz());
        let mut all = values::<T>(len, 6);
        let (of_head, of_nonzero) = order.strides(*heads, a.nnz());
        let huge = if T::DTYPE == DType::F64 { 4096.0 } else { 512.0 };
        let pattern = a.pattern().view();
        for (row, head) in (0..a.nrows()).flat_map(|i| (0..*heads).map(move |h| (i, h))) {
            for (k, at) in pattern.row_range(row).enumerate() {
                let to = &mut all[head * of_head + at * of_nonzero];
                *to = match (self.numbers, row % 7, k) {
                    (Numbers::Own, ..) => a.values()[at],
                    (Numbers::Huge, ..) => T::from_f64(to.to_f64() * huge),
                    (_, 2, _) | (_, 4, 1..) => T::from_f64(f64::NEG_INFINITY),
                    (_, 5, 2) => T::from_f64(f64::INFINITY),
                    (_, 6, 1) => T::from_f64(f64::NAN),
                    _ => continue,
                };
            }
        }
        all
    }
}
