//! Attention over the nonzeros of a pattern, and its gradients.
//!
//! t = scale·⟨q, k⟩ + b is off by (d + 4)u·|scale|·Σ|q k| + 4u·|b|: a sum of d products, its scaling
//! and the sum with the bias, and the factor log₂e where exponentials are powers of two. A score s =
//! leaky(t) is off by as much times max(1, |slope|), and by its own rounding u|s| where the slope is
//! not 1. What that does to a softmax, `exponentials.rs` says.

mod forward;
mod gradients;

pub use forward::{Attention, AttentionReference};
pub use gradients::{AttentionGradients, FoundGradients};

use gustav_core::{
    Batch, DType, Dense, DenseView, HeadValues, IndexSlice, Layout, Result, Scalar, Strides,
    validate,
};

use super::exponentials::{Rounding, Score};
use super::operand::{Numbers, without_gaps};

/// The heads of a dense matrix.
#[derive(Clone, Copy)]
struct Heads<'a> {
    values: Numbers<'a>,
    head: usize,
    ld: usize,
    columns: usize,
}

impl<'a> Heads<'a> {
    /// The heads of `m`, or of its copy: `count` of `rows` × `columns`.
    fn new<T: Scalar>(
        name: &'static str,
        m: DenseView<'a, T>,
        copy: &'a Option<Dense<T>>,
        (count, rows, columns): (usize, usize, usize),
    ) -> Result<Self> {
        let m = copy.as_ref().map_or(m, Dense::view);
        let (op, layout, ld) =
            ("verification of attention", Layout::RowMajor, m.leading_dimension());
        let batch = Batch { op, name, count, rows, columns, layout };
        let Strides { matrix: head, line: ld } =
            batch.strides((m.nrows(), m.ncols()), m.layout(), ld)?;
        let values = Numbers::of(m.as_slice().unwrap_or_default());
        Ok(Heads { values, head, ld, columns })
    }

    /// Puts a row into `out`.
    fn row(&self, head: usize, row: usize, out: &mut Vec<f64>) {
        let start = head * self.head + row * self.ld;
        self.values.read(start..start + self.columns, out);
    }
}

/// Values of nonzeros and heads.
#[derive(Clone, Copy)]
struct OfNonzeros<'a> {
    values: Numbers<'a>,
    strides: (usize, usize),
}

impl<'a> OfNonzeros<'a> {
    fn new<T: Scalar>(
        name: &'static str,
        (values, order): (&'a [T], HeadValues),
        heads: usize,
        nnz: usize,
    ) -> Result<Self> {
        validate::length(name, order.len(heads, nnz), values.len())?;
        Ok(OfNonzeros { values: Numbers::of(values), strides: order.strides(heads, nnz) })
    }

    fn get(&self, head: usize, nonzero: usize) -> f64 {
        self.values.get(head * self.strides.0 + nonzero * self.strides.1)
    }
}

/// An [`Attention`] without its types.
struct Operands<'a> {
    dtype: DType,
    /// The type of sums.
    accum: DType,
    heads: usize,
    rows: usize,
    value_columns: usize,
    offsets: IndexSlice<'a>,
    indices: IndexSlice<'a>,
    q: Heads<'a>,
    k: Heads<'a>,
    v: Heads<'a>,
    scale: f64,
    negative_slope: f64,
    bias: Option<OfNonzeros<'a>>,
    rounding: Rounding,
}

/// A score as a leaky ReLU made it, whose derivative was `leak`, or off by `of_leak` where the sign of
/// what it was made of is within its error.
struct LeakyScore {
    score: Score,
    leak: f64,
    of_leak: f64,
}

impl Operands<'_> {
    /// The score of a nonzero, given its rows of Q and K.
    fn score(&self, head: usize, nonzero: usize, q: &[f64], k: &[f64]) -> LeakyScore {
        let Rounding { unit, tiny, .. } = self.rounding;
        let (inner, scale, depth) = (self.rounding.inner(q, k), self.scale, q.len() as f64);
        let bias = self.bias.map_or(0.0, |bias| bias.get(head, nonzero));
        let value = scale * inner.value + bias;
        let error = (depth + 4.0) * unit * scale.abs() * inner.magnitude
            + 4.0 * unit * bias.abs()
            + depth * tiny * (1.0 + scale.abs());
        let finite = if bias.is_finite() { bias.abs() } else { 0.0 };
        let magnitude = inner.finite * scale.abs().max(1.0) + finite;
        let slope = self.negative_slope;
        let (steepest, rounds) = (slope.abs().max(1.0), f64::from(u8::from(slope != 1.0)));
        let leak = if value > 0.0 { 1.0 } else { slope };
        let score = Score {
            value: leak * value,
            error: steepest * (error + rounds * (unit * (value.abs() + error) + tiny)),
            unsure: self.rounding.overflows(magnitude * steepest),
        };
        // A sum of zeros is zero in every order.
        let is_exact = inner.magnitude == 0.0 && bias == 0.0;
        let of_leak = if value.abs() <= error && !is_exact { (1.0 - slope).abs() } else { 0.0 };
        LeakyScore { score, leak, of_leak }
    }
}

/// Copies of matrices where what is between their lines is not borrowed.
fn copies<T: Scalar, const N: usize>(m: [DenseView<'_, T>; N]) -> Result<[Option<Dense<T>>; N]> {
    let mut copies = [const { None }; N];
    for (copy, m) in copies.iter_mut().zip(m) {
        *copy = without_gaps(m)?;
    }
    Ok(copies)
}
