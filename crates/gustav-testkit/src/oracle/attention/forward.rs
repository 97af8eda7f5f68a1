//! Attention against its reference.

use gustav_core::buffer::try_vec;
use gustav_core::{
    DenseView, HeadValues, Index, IndexSlice, PatternView, Result, Scalar, ScoreOptions, parallel,
    validate,
};

use super::{Heads, OfNonzeros, Operands, copies};
use crate::oracle::expected::{Expected, Overflow};
use crate::oracle::exponentials::{Rounding, Row, UNKNOWN};
use crate::oracle::operand::Numbers;
use crate::oracle::verdict::Verdict;

// Rows that one task compares.
const ROWS: usize = 16;

/// The operands of O = softmax(leaky(scale·Q·Kᵀ + bias))·V over the rows of a pattern, to check a result
/// against.
///
/// Heads are side by side in the columns of a row-major matrix, or one above the other in its rows.
/// In a verdict, the row of head h and row i is h·rows + i, and the column of lse is one past those
/// of O.
#[derive(Clone, Copy, Debug)]
pub struct Attention<'a, T: Scalar, I: Index, O: Index> {
    /// The pattern.
    pub pattern: PatternView<'a, I, O>,
    /// Heads.
    pub heads: usize,
    /// Columns of Q and K of a head.
    pub columns: usize,
    /// Columns of V and O of a head.
    pub value_columns: usize,
    /// Q.
    pub q: DenseView<'a, T>,
    /// K.
    pub k: DenseView<'a, T>,
    /// V.
    pub v: DenseView<'a, T>,
    /// How scores are made of inner products.
    pub scores: ScoreOptions<T::Accum>,
    /// What is added to scores.
    pub bias: Option<(&'a [T], HeadValues)>,
}

/// O and lse in f64.
#[derive(Clone, Debug)]
pub struct AttentionReference {
    /// `[(head · rows + row) · value_columns + column]`.
    pub o: Vec<f64>,
    /// `[head · rows + row]`.
    pub lse: Vec<f64>,
}

impl<T: Scalar, I: Index, O: Index> Attention<'_, T, I, O> {
    /// O and lse.
    ///
    /// # Errors
    /// [`Error::Shape`](gustav_core::Error::Shape) when a matrix does not fit,
    /// [`Error::Length`](gustav_core::Error::Length) when values are missing.
    pub fn compute(&self) -> Result<AttentionReference> {
        let copies = copies([self.q, self.k, self.v])?;
        let operands = self.operands(&copies)?;
        let rows = operands.rows * operands.heads;
        let mut o = try_vec(rows * operands.value_columns, "O of the reference")?;
        let mut lse = try_vec(rows, "lse of the reference")?;
        let mut buffers = Buffers::default();
        for of_head in 0..rows {
            let row = operands.row(of_head, &mut buffers);
            let columns = 0..operands.value_columns;
            match &row {
                Row::Softmax(softmax) => {
                    lse.push(softmax.lse.0);
                    o.extend(columns.map(|c| {
                        let values = buffers.column(operands.value_columns, c);
                        softmax.weights.iter().zip(values).map(|(p, v)| p * v).sum::<f64>()
                    }));
                }
                Row::Zeros => {
                    lse.push(f64::NEG_INFINITY);
                    o.extend(columns.map(|_| 0.0));
                }
                Row::Nan | Row::Unsure => {
                    lse.push(f64::NAN);
                    o.extend(columns.map(|_| f64::NAN));
                }
            }
        }
        Ok(AttentionReference { o, lse })
    }

    /// Compares `o`, and `lse` where it is given, with the reference, row by row.
    ///
    /// # Errors
    /// As [`Attention::compute`].
    pub fn verify(&self, o: DenseView<'_, T>, lse: Option<&[T::Accum]>) -> Result<Verdict> {
        let copies = copies([self.q, self.k, self.v, o])?;
        let [q, k, v, found] = copies;
        let copies = [q, k, v];
        let operands = self.operands(&copies)?;
        let shape = (self.heads, operands.rows, self.value_columns);
        let found = Heads::new("O", o, &found, shape)?;
        if let Some(lse) = lse {
            validate::length("lse", self.heads * operands.rows, lse.len())?;
        }
        Ok(operands.verify(found, lse.map(Numbers::of)))
    }

    pub(super) fn operands<'b>(
        &'b self,
        [q, k, v]: &'b [Option<gustav_core::Dense<T>>; 3],
    ) -> Result<Operands<'b>> {
        let Attention { pattern, heads, columns, value_columns, .. } = *self;
        let (m, n) = (pattern.nrows(), pattern.ncols());
        let bias = |bias| OfNonzeros::new("bias", bias, heads, pattern.nnz());
        Ok(Operands {
            dtype: T::DTYPE,
            accum: T::Accum::DTYPE,
            heads,
            rows: m,
            value_columns,
            offsets: IndexSlice::new(pattern.offsets()),
            indices: IndexSlice::new(pattern.indices()),
            q: Heads::new("Q", self.q, q, (heads, m, columns))?,
            k: Heads::new("K", self.k, k, (heads, n, columns))?,
            v: Heads::new("V", self.v, v, (heads, n, value_columns))?,
            scale: self.scores.scale(columns).to_f64(),
            negative_slope: self.scores.negative_slope().to_f64(),
            bias: self.bias.map(bias).transpose()?,
            rounding: Rounding::of_sums(T::DTYPE),
        })
    }
}

/// What rows are computed in.
#[derive(Default)]
struct Buffers {
    q: Vec<f64>,
    k: Vec<f64>,
    v: Vec<f64>,
    /// The rows of V that a row's nonzeros name.
    values: Vec<f64>,
}

impl Buffers {
    /// A column of `values`.
    fn column(&self, columns: usize, column: usize) -> impl Iterator<Item = f64> + Clone {
        self.values[column.min(self.values.len())..].iter().copied().step_by(columns.max(1))
    }
}

impl Operands<'_> {
    /// The softmax of a row of a head; the rows of V in the buffers.
    fn row(&self, of_head: usize, buffers: &mut Buffers) -> Row {
        let (head, i) = (of_head / self.rows, of_head % self.rows);
        let Buffers { q, k, v, values } = buffers;
        self.q.row(head, i, q);
        values.clear();
        let mut scores = Vec::new();
        for at in self.offsets.get(i)..self.offsets.get(i + 1) {
            let j = self.indices.get(at);
            self.k.row(head, j, k);
            self.v.row(head, j, v);
            values.extend_from_slice(v);
            scores.push(self.score(head, at, q, k).score);
        }
        Row::new(&scores, self.rounding)
    }

    fn verify(&self, found: Heads<'_>, lse: Option<Numbers<'_>>) -> Verdict {
        let rows = self.rows * self.heads;
        let parts = parallel::map(rows.div_ceil(ROWS), |part| {
            let (mut buffers, mut o) = (Buffers::default(), Vec::new());
            let mut verdict = Verdict::empty();
            for of_head in part * ROWS..rows.min((part + 1) * ROWS) {
                let row = self.row(of_head, &mut buffers);
                found.row(of_head / self.rows, of_head % self.rows, &mut o);
                for (column, found) in o.iter().enumerate() {
                    let expected = match &row {
                        Row::Zeros => Expected::exact(0.0),
                        Row::Nan => Expected::exact(f64::NAN),
                        Row::Unsure => UNKNOWN,
                        Row::Softmax(softmax) => {
                            softmax.mean(buffers.column(self.value_columns, column), self.dtype)
                        }
                    };
                    verdict.element(self.dtype, of_head, column, &expected, *found);
                }
                let Some(lse) = lse else { continue };
                let expected = match &row {
                    Row::Zeros => Expected::exact(f64::NEG_INFINITY),
                    Row::Nan => Expected::exact(f64::NAN),
                    Row::Unsure => UNKNOWN,
                    Row::Softmax(softmax) => {
                        let (value, bound) = softmax.lse;
                        Expected::Real { value, bound, overflow: Overflow::Impossible }
                    }
                };
                let column = self.value_columns;
                verdict.element(self.accum, of_head, column, &expected, lse.get::<f64>(of_head));
            }
            verdict
        });
        parts.into_iter().fold(Verdict::empty(), Verdict::and)
    }
}
