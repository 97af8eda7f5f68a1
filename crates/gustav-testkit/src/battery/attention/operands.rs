//! What a case of attention is given.

use gustav_core::{
    Arith, DenseView, DenseViewMut, HeadValues, Index, Layout, PatternView, Result, Scalar,
    ScoreOptions,
};

use crate::battery::Settings;
use crate::battery::covering::combinations;
use crate::battery::matrices::{Named, matrices};
use crate::battery::report::written_outside;
use crate::battery::storage::Storage;
use crate::battery::values::{poison, sentinel, values};
use crate::oracle;

/// Columns of Q and K, and of V and O, of a head.
const WIDTHS: [(usize, usize); 7] =
    [(1, 1), (3, 3), (33, 20), (64, 64), (64, 3), (100, 256), (256, 33)];
const HEADS: [usize; 3] = [1, 2, 3];
/// Of the leaky ReLU of the scores.
const SLOPES: [Option<f64>; 5] = [None, Some(0.2), Some(-0.5), Some(0.0), Some(1.5)];
const ORDERS: [Option<HeadValues>; 4] =
    [None, Some(HeadValues::Shared), Some(HeadValues::HeadMajor), Some(HeadValues::NonzeroMajor)];

/// How large scores are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scores {
    /// Near 1.
    Ordinary,
    /// Their exponentials overflow.
    Huge,
    /// NaN and infinities among them; rows of −∞ alone where there is a bias.
    Special,
}

/// Where heads are.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Heads {
    /// Side by side in the columns of every matrix.
    Beside,
    /// One above the other in its rows.
    Below,
    /// One after another.
    Mixed,
}

/// The choices of one case.
pub(super) struct Choice {
    pub columns: usize,
    pub value_columns: usize,
    pub heads: usize,
    placed: Heads,
    padded: bool,
    bias: Option<HeadValues>,
    scale: Option<f64>,
    negative_slope: Option<f64>,
    scores: Scores,
    /// The order of what a case may be asked for besides: the gradient of the bias.
    pub extra: Option<HeadValues>,
}

/// The battery's matrices and choices that `settings` select.
pub(super) fn cases<T: Scalar, I: Index, O: Index>(
    settings: &Settings,
) -> impl Iterator<Item = (Named<T, I, O>, Choice)> {
    // Values of the matrices have no meaning here.
    let takes = |m: &Named<T, I, O>| m.traits.finite && settings.takes(&m.traits);
    let matrices: Vec<_> = matrices::<T, I, O>().into_iter().filter(takes).collect();
    let scores = match settings.nonfinite {
        true => vec![Scores::Ordinary, Scores::Huge, Scores::Special],
        false => vec![Scores::Ordinary, Scores::Huge],
    };
    let (padded, shared) = (settings.padded, settings.shared_gradients);
    let sizes = [
        matrices.len(),
        WIDTHS.len(),
        HEADS.len(),
        3,
        2,
        ORDERS.len(),
        2,
        scores.len(),
        SLOPES.len(),
    ];
    combinations(&sizes, settings.extent).into_iter().map(move |row| {
        let heads = HEADS[row[2]];
        let extra = ORDERS[(row[5] + row[6] + row[7]) % ORDERS.len()];
        let refused = !shared && heads > 1 && extra == Some(HeadValues::Shared);
        let choice = Choice {
            columns: WIDTHS[row[1]].0,
            value_columns: WIDTHS[row[1]].1,
            heads,
            placed: [Heads::Beside, Heads::Below, Heads::Mixed][row[3]],
            padded: row[4] == 1 && padded,
            bias: ORDERS[row[5]],
            scale: [None, Some(-0.375)][row[6]],
            negative_slope: SLOPES[row[8]],
            scores: scores[row[7]],
            extra: if refused { Some(HeadValues::HeadMajor) } else { extra },
        };
        (matrices[row[0]].clone(), choice)
    })
}

/// A matrix of a case, in an array with poisoned padding.
pub(super) struct Operand<T> {
    shape: (usize, usize),
    storage: Storage,
    data: Vec<T>,
}

impl<T: Scalar> Operand<T> {
    pub fn view(&self) -> Result<DenseView<'_, T>> {
        self.storage.view(&self.data)
    }

    pub fn view_mut(&mut self) -> Result<DenseViewMut<'_, T>> {
        let ((rows, columns), Storage { layout, ld, .. }) = (self.shape, &self.storage);
        DenseViewMut::new(rows, columns, *layout, *ld, &mut self.data)
    }

    pub fn written_outside(&self) -> Option<String> {
        written_outside(&self.data, |k| self.storage.holds(k), sentinel())
    }
}

/// The operands of a product.
pub(super) struct Operands<T: Scalar> {
    pub q: Operand<T>,
    pub k: Operand<T>,
    pub v: Operand<T>,
    pub scores: ScoreOptions<T::Accum>,
    bias: Option<(Vec<T>, HeadValues)>,
}

impl Choice {
    pub fn describe(&self, name: &str) -> String {
        let Choice { columns, value_columns, heads, placed, bias, scores, extra, .. } = self;
        let (scale, slope) = (self.scale, self.negative_slope);
        let padded = if self.padded { ", padded" } else { "" };
        let (bias, extra) = (bias.map(|b| format!("{b:?}")), extra.map(|b| format!("{b:?}")));
        let word = |order: Option<String>| order.unwrap_or_else(|| "none".into());
        format!(
            "{name}, {heads} heads of {columns} and {value_columns} columns {placed:?}{padded}, {scores:?} scores, \
             scale {scale:?}, negative slope {slope:?}, bias {}, gradient of the bias {}",
            word(bias),
            word(extra)
        )
    }

    /// A matrix whose heads have `rows` rows; `number` numbers the matrices of a case.
    fn operand<T: Scalar>(
        &self,
        number: usize,
        (rows, columns): (usize, usize),
        outside: T,
        element: impl Fn(usize, usize, usize) -> T,
    ) -> Operand<T> {
        let below =
            self.placed == Heads::Below || self.placed == Heads::Mixed && number.is_multiple_of(2);
        let shape = match below {
            true => (rows * self.heads, columns),
            false => (rows, columns * self.heads),
        };
        let storage = Storage::new(shape.0, shape.1, Layout::RowMajor, self.padded);
        let place = |i: usize, c: usize| match below {
            true => element(i / rows, i % rows, c),
            false => element(c / columns, i, c % columns),
        };
        let inside: Vec<T> = (0..shape.0)
            .flat_map(|i| (0..shape.1).map(move |c| (i, c)))
            .map(|(i, c)| place(i, c))
            .collect();
        Operand { shape, data: storage.fill(outside, &inside), storage }
    }

    /// A matrix of seeded values.
    pub fn seeded<T: Scalar>(&self, number: usize, rows: usize, columns: usize) -> Operand<T> {
        let all = values::<T>(self.heads * rows * columns, number as u64 + 1);
        self.operand(number, (rows, columns), poison(), |h, i, c| all[(h * rows + i) * columns + c])
    }

    /// A matrix of these elements, `[(head · rows + row) · columns + column]`.
    pub fn given<T: Scalar>(
        &self,
        number: usize,
        rows: usize,
        columns: usize,
        all: &[f64],
    ) -> Operand<T> {
        let of = |h, i, c| T::from_f64(all[(h * rows + i) * columns + c]);
        self.operand(number, (rows, columns), poison(), of)
    }

    /// A matrix to be overwritten.
    pub fn result<T: Scalar>(&self, number: usize, rows: usize, columns: usize) -> Operand<T> {
        self.operand(number, (rows, columns), sentinel(), |_, _, _| poison())
    }

    pub fn operands<T: Scalar, I: Index, O: Index>(
        &self,
        pattern: PatternView<'_, I, O>,
    ) -> Operands<T> {
        let (m, n, d) = (pattern.nrows(), pattern.ncols(), self.columns);
        let q_values = values::<T>(self.heads * m * d, 1);
        let k_values = values::<T>(self.heads * n * d, 2);
        // Past the logarithm of the largest number of sums.
        let huge = if T::DTYPE == gustav_core::DType::F64 { 4096.0 } else { 256.0 };
        let factor = if self.scores == Scores::Huge { huge } else { 1.0 };
        let special = self.scores == Scores::Special;
        let q =
            self.operand(0, (m, d), poison(), |h, i, c| match special && i % 31 == 5 && c == 0 {
                true => T::from_f64(f64::NAN),
                false => T::from_f64(q_values[(h * m + i) * d + c].to_f64() * factor),
            });
        let k =
            self.operand(1, (n, d), poison(), |h, j, c| match special && j % 37 == 7 && c == 0 {
                true => T::from_f64(f64::INFINITY),
                false => k_values[(h * n + j) * d + c],
            });
        let bias = self.bias.map(|order| (self.bias_values(pattern, order), order));
        let scores = ScoreOptions {
            scale: self.scale.map(T::Accum::from_f64),
            negative_slope: self.negative_slope.map(T::Accum::from_f64),
        };
        Operands { q, k, v: self.seeded(2, n, self.value_columns), scores, bias }
    }

    fn bias_values<T: Scalar, I: Index, O: Index>(
        &self,
        pattern: PatternView<'_, I, O>,
        order: HeadValues,
    ) -> Vec<T> {
        let (heads, nnz) = (self.heads, pattern.nnz());
        let mut bias = values::<T>(order.len(heads, nnz), 4);
        if self.scores != Scores::Special {
            return bias;
        }
        let (of_head, of_nonzero) = order.strides(heads, nnz);
        let infinity = T::Accum::INFINITY.to_f64();
        for (row, head) in (0..pattern.nrows()).flat_map(|i| (0..heads).map(move |h| (i, h))) {
            for (k, at) in pattern.row_range(row).enumerate() {
                let special = match (row % 7, k) {
                    (2, _) | (4, 1..) => -infinity,
                    (5, 2) if row.is_multiple_of(3) => infinity,
                    (6, 1) if row.is_multiple_of(3) => f64::NAN,
                    _ => continue,
                };
                bias[head * of_head + at * of_nonzero] = T::from_f64(special);
            }
        }
        bias
    }

    /// The product's reference.
    pub fn reference<'a, T: Scalar, I: Index, O: Index>(
        &self,
        pattern: PatternView<'a, I, O>,
        operands: &'a Operands<T>,
    ) -> Result<oracle::Attention<'a, T, I, O>> {
        Ok(oracle::Attention {
            pattern,
            heads: self.heads,
            columns: self.columns,
            value_columns: self.value_columns,
            q: operands.q.view()?,
            k: operands.k.view()?,
            v: operands.v.view()?,
            scores: operands.scores,
            bias: operands.bias(),
        })
    }
}

impl<T: Scalar> Operands<T> {
    pub fn bias(&self) -> Option<(&[T], HeadValues)> {
        self.bias.as_ref().map(|(values, order)| (&values[..], *order))
    }
}
