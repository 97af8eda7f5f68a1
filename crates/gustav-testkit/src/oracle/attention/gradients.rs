//! The gradients of attention against their reference.
//!
//! p = exp(s − lse), t = ⟨dO, v⟩ − ⟨dO, O⟩, ds = p t leak, the gradient of what s = leaky(…) is made
//! of; dQ = Σ scale·ds·k, dK = Σ scale·ds·q, dV = Σ p dO, and that of the bias is ds. O and lse are
//! operands: what they are off by is in the result, not in its error.
//!
//! p is off by p(exp η − 1) with η = eₛ + 3u|s − lse| + 2u|lse| + EXPONENTIAL·u (lse times log₂e
//! where exponentials are powers of two); inner products of e columns by (e + 1)u Σ|…|; p t by Δ =
//! |Δp|(|t| + |Δt|) + p|Δt| and its own rounding, ds by |leak|Δ, |Δleak| of what p t may be, and its
//! rounding where the slope is not 1; a sum of n terms by what its terms are off and (n + 3)u Σ|terms|.

use gustav_core::{DenseView, HeadValues, Index, IndexSlice, Result, Scalar, parallel, validate};

use super::{Attention, Heads, LeakyScore, OfNonzeros, Operands, copies};
use crate::oracle::expected::{Expected, Overflow};
use crate::oracle::exponentials::{EXPONENTIAL, Rounding, Score, UNKNOWN};
use crate::oracle::operand::Numbers;
use crate::oracle::verdict::Verdict;

// Rows that one task compares.
const ROWS: usize = 16;

/// The operands of the gradients of an [`Attention`], to check results against.
///
/// In a verdict, the row of head h and row i is h·rows + i; that of a bias, which has no row, is
/// its nonzero, and its head the column.
#[derive(Clone, Copy, Debug)]
pub struct AttentionGradients<'a, T: Scalar, I: Index, O: Index> {
    /// The product.
    pub product: Attention<'a, T, I, O>,
    /// O.
    pub o: DenseView<'a, T>,
    /// The logarithm of the sum of exponentials, `[head · rows + row]`.
    pub lse: &'a [T::Accum],
    /// The gradient with respect to O.
    pub of_o: DenseView<'a, T>,
}

/// Gradients to be checked.
#[derive(Clone, Copy, Debug)]
pub struct FoundGradients<'a, T: Scalar> {
    /// With respect to Q.
    pub of_q: DenseView<'a, T>,
    /// With respect to K.
    pub of_k: DenseView<'a, T>,
    /// With respect to V.
    pub of_v: DenseView<'a, T>,
    /// With respect to the bias; the sum over heads where they share one.
    pub of_bias: Option<(&'a [T], HeadValues)>,
}

impl<T: Scalar, I: Index, O: Index> AttentionGradients<'_, T, I, O> {
    /// Compares `found` with the reference.
    ///
    /// # Errors
    /// [`Error::Shape`](gustav_core::Error::Shape) when a matrix does not fit,
    /// [`Error::Length`](gustav_core::Error::Length) when values are missing, and as
    /// [`PatternView::transpose`](gustav_core::PatternView::transpose).
    pub fn verify(&self, found: &FoundGradients<'_, T>) -> Result<Verdict> {
        let Attention { pattern, heads, columns, value_columns, q, k, v, .. } = self.product;
        let of_operands = copies([q, k, v])?;
        let others = copies([self.o, self.of_o, found.of_q, found.of_k, found.of_v])?;
        let (m, n) = ((heads, pattern.nrows()), (heads, pattern.ncols()));
        let of = |name, matrix, copy, (count, rows): (usize, usize), columns: usize| {
            Heads::new(name, matrix, copy, (count, rows, columns))
        };
        validate::length("lse", heads * pattern.nrows(), self.lse.len())?;
        let transposed = pattern.transpose()?;
        let bias = |bias| OfNonzeros::new("the gradient of the bias", bias, heads, pattern.nnz());
        let shared = found.of_bias.is_some_and(|(_, order)| order == HeadValues::Shared);
        let mut reference = Reference {
            op: self.product.operands(&of_operands)?,
            lse: Numbers::of(self.lse),
            of_o: of("the gradient of O", self.of_o, &others[1], m, value_columns)?,
            columns: pattern.ncols(),
            by_columns: [
                IndexSlice::new(transposed.pattern().offsets()),
                IndexSlice::new(transposed.pattern().indices()),
                IndexSlice::new(transposed.permutation()),
            ],
            deltas: Vec::new(),
        };
        let o = of("O", self.o, &others[0], m, value_columns)?;
        reference.deltas = reference.deltas(o);
        let of_q = of("the gradient of Q", found.of_q, &others[2], m, columns)?;
        let of_k = of("the gradient of K", found.of_k, &others[3], n, columns)?;
        let of_v = of("the gradient of V", found.of_v, &others[4], n, value_columns)?;
        let of_bias = found.of_bias.map(bias).transpose()?;
        let mut verdict = reference.by_rows(of_q).and(reference.by_columns(of_k, of_v));
        if let Some(of_bias) = of_bias {
            verdict = verdict.and(reference.of_bias(of_bias, shared));
        }
        Ok(verdict)
    }
}

/// An [`AttentionGradients`] without its types.
struct Reference<'a> {
    op: Operands<'a>,
    lse: Numbers<'a>,
    of_o: Heads<'a>,
    columns: usize,
    /// Row offsets and column indices of the transposed pattern, and where its nonzeros are in the
    /// pattern.
    by_columns: [IndexSlice<'a>; 3],
    /// ⟨dO, O⟩ of every head and row.
    deltas: Vec<Score>,
}

/// p and ds of a nonzero with what they may be off by.
struct Slope {
    weight: f64,
    of_weight: f64,
    slope: f64,
    of_slope: f64,
    unsure: bool,
}

/// Sums of multiples of rows.
struct Sums {
    values: Vec<f64>,
    magnitudes: Vec<f64>,
    /// What terms are off by.
    errors: Vec<f64>,
    /// Sums of the rows alone, which underflow multiplies.
    plain: Vec<f64>,
    unsure: bool,
}

impl Sums {
    fn new(columns: usize) -> Self {
        let zeros = || vec![0.0; columns];
        let (values, magnitudes, errors, plain) = (zeros(), zeros(), zeros(), zeros());
        Sums { values, magnitudes, errors, plain, unsure: false }
    }

    fn clear(&mut self) {
        for sums in [&mut self.values, &mut self.magnitudes, &mut self.errors, &mut self.plain] {
            sums.fill(0.0);
        }
        self.unsure = false;
    }

    /// Adds `factor`, off by `error`, times a row.
    fn add(&mut self, factor: f64, error: f64, row: &[f64]) {
        for (c, x) in row.iter().enumerate() {
            self.values[c] += factor * x;
            self.magnitudes[c] += (factor.abs() + error) * x.abs();
            self.errors[c] += error * x.abs();
            self.plain[c] += x.abs();
        }
    }

    /// The sum of `terms` in a column times `scale`.
    fn expected(&self, op: &Operands<'_>, column: usize, scale: f64, terms: usize) -> Expected {
        let Rounding { unit, tiny, .. } = op.rounding;
        let (n, value) = (terms as f64, scale * self.values[column]);
        if value.is_nan() {
            return Expected::exact(value);
        }
        let magnitude = self.magnitudes[column] * scale.abs().max(1.0);
        if self.unsure || op.rounding.overflows(magnitude) {
            return UNKNOWN;
        }
        let sum = self.errors[column] + (n + 3.0) * unit * self.magnitudes[column];
        let underflow = tiny * (n + scale.abs() * (n + self.plain[column]));
        let bound = scale.abs() * sum + underflow;
        Expected::stored(op.dtype, value, bound, Overflow::Impossible)
    }
}

/// The rows of a nonzero.
#[derive(Default)]
struct Rows {
    q: Vec<f64>,
    k: Vec<f64>,
    v: Vec<f64>,
    of_o: Vec<f64>,
}

impl Reference<'_> {
    fn inner(&self, x: &[f64], y: &[f64]) -> Score {
        let Rounding { unit, tiny, .. } = self.op.rounding;
        let (inner, depth) = (self.op.rounding.inner(x, y), x.len() as f64);
        let error = (depth + 1.0) * unit * inner.magnitude + depth * tiny;
        Score { value: inner.value, error, unsure: self.op.rounding.overflows(inner.finite) }
    }

    fn deltas(&self, o: Heads<'_>) -> Vec<Score> {
        let (mut x, mut y) = (Vec::new(), Vec::new());
        let rows = self.op.rows;
        let of = |of_head: usize| {
            self.of_o.row(of_head / rows, of_head % rows, &mut x);
            o.row(of_head / rows, of_head % rows, &mut y);
            self.inner(&x, &y)
        };
        (0..rows * self.op.heads).map(of).collect()
    }

    /// p and ds of nonzero `at` of row `i` of a head, whose rows are given.
    fn slope(&self, head: usize, i: usize, at: usize, rows: &Rows) -> Slope {
        let Rounding { unit, tiny, .. } = self.op.rounding;
        let of_head = head * self.op.rows + i;
        let LeakyScore { score, leak, of_leak } = self.op.score(head, at, &rows.q, &rows.k);
        let lse: f64 = self.lse.get(of_head);
        let (change, delta) = (self.inner(&rows.of_o, &rows.v), self.deltas[of_head]);
        let t = change.value - delta.value;
        let of_t = change.error + delta.error;
        let of_t = of_t + unit * (t.abs() + of_t);
        if lse == f64::NEG_INFINITY {
            let unsure = change.unsure || delta.unsure;
            let slope = 0.0 * t * leak;
            return Slope { weight: 0.0, of_weight: 0.0, slope, of_slope: 0.0, unsure };
        }
        let exponent = score.value - lse;
        let eta =
            score.error + 3.0 * unit * exponent.abs() + 2.0 * unit * lse.abs() + EXPONENTIAL * unit;
        let weight = exponent.exp();
        let of_weight = match exponent == f64::NEG_INFINITY {
            true => 0.0,
            false => ((exponent + eta).exp() - weight).max(weight * eta.exp_m1()) + tiny,
        };
        let largest = t.abs() + of_t;
        let of_slope = of_weight * largest + weight * of_t;
        let of_slope = of_slope + unit * (weight * largest + of_slope) + tiny;
        let most = weight * largest + of_slope;
        let rounds = f64::from(u8::from(self.op.negative_slope != 1.0));
        let of_slope = leak.abs() * of_slope
            + of_leak * most
            + rounds * ((leak.abs() + of_leak) * unit * most + tiny);
        let steepest = (leak.abs() + of_leak).max(1.0);
        let overflows =
            self.op.rounding.overflows((weight + of_weight) * largest.max(1.0) * steepest);
        let unsure = score.unsure || change.unsure || delta.unsure || overflows;
        Slope { weight, of_weight, slope: weight * t * leak, of_slope, unsure }
    }

    fn by_rows(&self, found: Heads<'_>) -> Verdict {
        let op = &self.op;
        let rows = op.rows * op.heads;
        let parts = parallel::map(rows.div_ceil(ROWS), |part| {
            let (mut own, mut sums) = (Rows::default(), Sums::new(found.columns));
            let (mut verdict, mut result) = (Verdict::empty(), Vec::new());
            for of_head in part * ROWS..rows.min((part + 1) * ROWS) {
                let (head, i) = (of_head / op.rows, of_head % op.rows);
                op.q.row(head, i, &mut own.q);
                self.of_o.row(head, i, &mut own.of_o);
                sums.clear();
                let range = op.offsets.get(i)..op.offsets.get(i + 1);
                for at in range.clone() {
                    let j = op.indices.get(at);
                    op.k.row(head, j, &mut own.k);
                    op.v.row(head, j, &mut own.v);
                    let Slope { slope, of_slope, unsure, .. } = self.slope(head, i, at, &own);
                    sums.add(slope, of_slope, &own.k);
                    sums.unsure |= unsure;
                }
                found.row(head, i, &mut result);
                for (column, found) in result.iter().enumerate() {
                    let expected = sums.expected(op, column, op.scale, range.len());
                    verdict.element(op.dtype, of_head, column, &expected, *found);
                }
            }
            verdict
        });
        parts.into_iter().fold(Verdict::empty(), Verdict::and)
    }

    fn by_columns(&self, of_k: Heads<'_>, of_v: Heads<'_>) -> Verdict {
        let op = &self.op;
        let [offsets, indices, permutation] = self.by_columns;
        let columns = self.columns * op.heads;
        let parts = parallel::map(columns.div_ceil(ROWS), |part| {
            let mut own = Rows::default();
            let (mut left, mut right) = (Sums::new(of_k.columns), Sums::new(of_v.columns));
            let (mut verdict, mut result) = (Verdict::empty(), Vec::new());
            for of_head in part * ROWS..columns.min((part + 1) * ROWS) {
                let (head, j) = (of_head / self.columns, of_head % self.columns);
                op.k.row(head, j, &mut own.k);
                op.v.row(head, j, &mut own.v);
                left.clear();
                right.clear();
                let range = offsets.get(j)..offsets.get(j + 1);
                for at in range.clone() {
                    let i = indices.get(at);
                    op.q.row(head, i, &mut own.q);
                    self.of_o.row(head, i, &mut own.of_o);
                    let slope = self.slope(head, i, permutation.get(at), &own);
                    left.add(slope.slope, slope.of_slope, &own.q);
                    right.add(slope.weight, slope.of_weight, &own.of_o);
                    left.unsure |= slope.unsure;
                    right.unsure |= slope.unsure;
                }
                for (found, sums, scale) in [(of_k, &left, op.scale), (of_v, &right, 1.0)] {
                    found.row(head, j, &mut result);
                    for (column, found) in result.iter().enumerate() {
                        let expected = sums.expected(op, column, scale, range.len());
                        verdict.element(op.dtype, of_head, column, &expected, *found);
                    }
                }
            }
            verdict
        });
        parts.into_iter().fold(Verdict::empty(), Verdict::and)
    }

    fn of_bias(&self, found: OfNonzeros<'_>, shared: bool) -> Verdict {
        let op = &self.op;
        let parts = parallel::map(op.rows.div_ceil(ROWS), |part| {
            let mut own = Rows::default();
            let mut verdict = Verdict::empty();
            for i in part * ROWS..op.rows.min((part + 1) * ROWS) {
                for at in op.offsets.get(i)..op.offsets.get(i + 1) {
                    let j = op.indices.get(at);
                    let mut sums = Sums::new(1);
                    for head in 0..op.heads {
                        op.q.row(head, i, &mut own.q);
                        self.of_o.row(head, i, &mut own.of_o);
                        op.k.row(head, j, &mut own.k);
                        op.v.row(head, j, &mut own.v);
                        if !shared {
                            sums.clear();
                        }
                        let Slope { slope, of_slope, unsure, .. } = self.slope(head, i, at, &own);
                        sums.add(slope, of_slope, &[1.0]);
                        sums.unsure |= unsure;
                        if !shared {
                            let (expected, value) =
                                (sums.expected(op, 0, 1.0, 1), found.get(head, at));
                            verdict.element(op.dtype, at, head, &expected, value);
                        }
                    }
                    if shared {
                        let (expected, value) =
                            (sums.expected(op, 0, 1.0, op.heads), found.get(0, at));
                        verdict.element(op.dtype, at, 0, &expected, value);
                    }
                }
            }
            verdict
        });
        parts.into_iter().fold(Verdict::empty(), Verdict::and)
    }
}
