//! Softmax of values over the rows of a pattern, and its gradient.

use gustav_core::{
    DType, Error, HeadValues, Index, IndexSlice, PatternView, Result, Scalar, parallel, validate,
};

use super::expected::{Expected, Overflow};
use super::exponentials::{Rounding, Row, Score, UNKNOWN};
use super::operand::Numbers;
use super::verdict::Verdict;

// Rows that one task compares.
const ROWS: usize = 64;

/// The softmax of values over every row of a pattern, for every head, to check a result or its
/// gradient against.
///
/// In a verdict, the row of head h and row i is h·rows + i.
#[derive(Clone, Copy, Debug)]
pub struct Softmax<'a, I: Index, O: Index> {
    /// The pattern.
    pub pattern: PatternView<'a, I, O>,
    /// Heads.
    pub heads: usize,
    /// Where values are.
    pub order: HeadValues,
}

impl<I: Index, O: Index> Softmax<'_, I, O> {
    /// Compares `found` with the softmax of `values`.
    ///
    /// # Errors
    /// [`Error::Length`] when values are missing, [`Error::Argument`] when several heads share
    /// them.
    pub fn verify<T: Scalar>(&self, values: &[T], found: &[T]) -> Result<Verdict> {
        let reference = self.reference::<T>(&[("values", values), ("softmax", found)])?;
        let (values, found) = (Numbers::of(values), Numbers::of(found));
        Ok(reference.verify(|positions, expected| {
            let scores: Vec<_> = positions.iter().map(|at| Score::exact(values.get(*at))).collect();
            reference.softmax(&scores, expected);
            found
        }))
    }

    /// Compares `found` with the gradient with respect to the values, given the softmax `weights`
    /// and the gradient `of_weights` with respect to it.
    ///
    /// # Errors
    /// As [`Softmax::verify`].
    pub fn verify_gradient<T: Scalar>(
        &self,
        weights: &[T],
        of_weights: &[T],
        found: &[T],
    ) -> Result<Verdict> {
        let all = [("weights", weights), ("gradient", of_weights), ("result", found)];
        let reference = self.reference::<T>(&all)?;
        let (weights, of_weights) = (Numbers::of(weights), Numbers::of(of_weights));
        let found = Numbers::of(found);
        Ok(reference.verify(|positions, expected| {
            let of = |numbers: Numbers<'_>| -> Vec<f64> {
                positions.iter().map(|at| numbers.get(*at)).collect()
            };
            reference.gradient(&of(weights), &of(of_weights), expected);
            found
        }))
    }

    fn reference<T: Scalar>(&self, values: &[(&'static str, &[T])]) -> Result<Reference<'_>> {
        let Softmax { pattern, heads, order } = self;
        if *order == HeadValues::Shared && *heads != 1 {
            return Err(Error::Argument {
                name: "order",
                found: format!("values that {heads} heads share"),
                expected: "values of every head".into(),
            });
        }
        for (name, values) in values {
            validate::length(name, order.len(*heads, pattern.nnz()), values.len())?;
        }
        Ok(Reference {
            dtype: T::DTYPE,
            rows: pattern.nrows(),
            heads: *heads,
            offsets: IndexSlice::new(pattern.offsets()),
            indices: IndexSlice::new(pattern.indices()),
            strides: order.strides(*heads, pattern.nnz()),
            rounding: Rounding::of_sums(T::DTYPE),
        })
    }
}

/// A [`Softmax`] without its types.
struct Reference<'a> {
    dtype: DType,
    rows: usize,
    heads: usize,
    offsets: IndexSlice<'a>,
    indices: IndexSlice<'a>,
    strides: (usize, usize),
    rounding: Rounding,
}

impl Reference<'_> {
    /// Compares rows: `row` is given the places of a row's values, fills what is expected there,
    /// and returns what was found.
    fn verify<'f>(
        &self,
        row: impl Fn(&[usize], &mut Vec<Expected>) -> Numbers<'f> + Sync,
    ) -> Verdict {
        let rows = self.rows * self.heads;
        let parts = parallel::map(rows.div_ceil(ROWS), |part| {
            let (mut positions, mut expected) = (Vec::new(), Vec::new());
            let mut verdict = Verdict::empty();
            for of_head in part * ROWS..rows.min((part + 1) * ROWS) {
                let (head, i) = (of_head / self.rows, of_head % self.rows);
                let range = self.offsets.get(i)..self.offsets.get(i + 1);
                positions.clear();
                positions
                    .extend(range.clone().map(|at| head * self.strides.0 + at * self.strides.1));
                expected.clear();
                let found = row(&positions, &mut expected);
                for ((at, place), expected) in range.zip(&positions).zip(&expected) {
                    let column = self.indices.get(at);
                    verdict.element(
                        self.dtype,
                        of_head,
                        column,
                        expected,
                        found.get::<f64>(*place),
                    );
                }
            }
            verdict
        });
        parts.into_iter().fold(Verdict::empty(), Verdict::and)
    }

    /// (pⱼ(1 + δⱼ)) / (1 + Δ), |Δ| ≤ D, is off by pⱼ(|δⱼ| + D) / (1 − D), and is at most 1.
    fn softmax(&self, scores: &[Score], expected: &mut Vec<Expected>) {
        let Rounding { unit, tiny, .. } = self.rounding;
        match Row::new(scores, self.rounding) {
            Row::Zeros => expected.resize(scores.len(), Expected::exact(0.0)),
            Row::Nan => expected.resize(scores.len(), Expected::exact(f64::NAN)),
            Row::Unsure => expected.resize(scores.len(), UNKNOWN),
            Row::Softmax(softmax) => {
                let off = softmax.off;
                expected.extend(softmax.weights.iter().zip(&softmax.slack).map(|(p, slack)| {
                    let relative = (slack + off * p) / (1.0 - off);
                    let bound = if off < 1.0 { relative.min(1.0) } else { 1.0 };
                    let bound = bound + 3.0 * unit * (p + bound) + 3.0 * tiny;
                    Expected::stored(self.dtype, *p, bound, Overflow::Impossible)
                }));
            }
        }
    }

    /// y(g − Σ y g): the sum of n products, a subtraction, a product.
    fn gradient(&self, weights: &[f64], of_weights: &[f64], expected: &mut Vec<Expected>) {
        let Rounding { unit, tiny, .. } = self.rounding;
        let n = weights.len() as f64;
        let mean = self.rounding.inner(weights, of_weights);
        let of_mean = (n + 1.0) * unit * mean.magnitude + n * tiny;
        expected.extend(weights.iter().zip(of_weights).map(|(y, g)| {
            let value = y * (g - mean.value);
            let change = g.abs() + mean.value.abs() + of_mean;
            if self.rounding.overflows(mean.finite.max(y.abs().max(1.0) * change)) {
                return UNKNOWN;
            }
            if !value.is_finite() {
                return Expected::exact(value);
            }
            let bound = y.abs() * (of_mean + 2.0 * unit * change) + tiny;
            Expected::stored(self.dtype, value, bound, Overflow::Impossible)
        }));
    }
}
