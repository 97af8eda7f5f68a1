//! Dense × dense at the nonzeros of a pattern.

use gustav_core::{
    DType, DenseView, Error, Index, PatternView, Result, Scalar, Semiring, parallel,
};

use super::model::{Model, Scaling, with_model};
use super::operand::{Factor, Matrix, Numbers, Sparse, Value, without_gaps};
use super::verdict::Verdict;

// Rows that one task compares.
const ROWS: usize = 64;

/// The operands of `values[p] = α·⟨X[row p], Y[column p]⟩·factors[p] + β·values[p]`, to check a
/// result against.
#[derive(Clone, Copy, Debug)]
pub struct Sddmm<'a, T: Scalar, I: Index, O: Index> {
    /// Where values are computed.
    pub pattern: PatternView<'a, I, O>,
    /// X, as many rows as the pattern.
    pub x: DenseView<'a, T>,
    /// Y, as many rows as the pattern has columns.
    pub y: DenseView<'a, T>,
    /// α.
    pub alpha: T::Accum,
    /// β; zero when the values are not read.
    pub beta: T::Accum,
    /// A factor of every nonzero, finite; ones when there are none.
    pub factors: Option<&'a [T]>,
    /// The values before, needed when β is not zero.
    pub before: Option<&'a [T]>,
}

impl<'a, T: Scalar, I: Index, O: Index> Sddmm<'a, T, I, O> {
    /// X·Yᵀ at `pattern`.
    pub fn new(
        pattern: impl Into<PatternView<'a, I, O>>,
        x: DenseView<'a, T>,
        y: DenseView<'a, T>,
    ) -> Self {
        let (alpha, beta) = (T::Accum::one(), T::Accum::zero());
        Sddmm { pattern: pattern.into(), x, y, alpha, beta, factors: None, before: None }
    }

    /// Compares `found` with the reference, nonzero by nonzero.
    ///
    /// # Errors
    /// [`Error::Shape`] when the shapes do not fit, [`Error::Length`] when values are missing,
    /// [`Error::Argument`] when β needs the values before and they are not given.
    pub fn verify(&self, found: &[T]) -> Result<Verdict> {
        let (m, n, d) = (self.pattern.nrows(), self.pattern.ncols(), self.x.ncols());
        for (name, rows, matrix) in [("X", m, &self.x), ("Y", n, &self.y)] {
            if (matrix.nrows(), matrix.ncols()) != (rows, d) {
                return Err(Error::Shape {
                    op: "verification of a sampled product",
                    expected: format!("{name} of {rows} x {d}"),
                    found: format!("{} x {}", matrix.nrows(), matrix.ncols()),
                });
            }
        }
        let reads = self.beta != T::Accum::zero();
        if reads && self.before.is_none() {
            return Err(Error::Argument {
                name: "beta",
                found: self.beta.to_string(),
                expected: "the values before the product, or zero".into(),
            });
        }
        let before = self.before.filter(|_| reads);
        for values in [Some(found), self.factors, before].into_iter().flatten() {
            // Refuses another number of values.
            self.pattern.with_values(values)?;
        }
        let copies = (without_gaps(self.x)?, without_gaps(self.y)?);
        let reference = Reference {
            dtype: T::DTYPE,
            found: self.pattern.with_values(found)?.into(),
            x: Matrix::new(self.x, &copies.0),
            y: Matrix::new(self.y, &copies.1),
            alpha: Factor::of(self.alpha),
            beta: reads.then(|| Factor::of(self.beta)),
            factors: self.factors.map(Numbers::of),
            before: before.map(Numbers::of),
        };
        Ok(reference.verify())
    }
}

/// A [`Sddmm`] without its types.
struct Reference<'a> {
    dtype: DType,
    /// The pattern with the values that were found.
    found: Sparse<'a>,
    x: Matrix<'a>,
    y: Matrix<'a>,
    alpha: Factor,
    beta: Option<Factor>,
    factors: Option<Numbers<'a>>,
    before: Option<Numbers<'a>>,
}

impl Reference<'_> {
    // Not generic, so that it is compiled in this crate.
    fn verify(&self) -> Verdict {
        with_model!(self.dtype, Semiring::PlusTimes, model => self.verify_in(model))
    }

    fn verify_in<M: Model>(&self, model: M) -> Verdict {
        let rows = self.found.nrows;
        let parts = parallel::map(rows.div_ceil(ROWS), |part| {
            let (mut x, mut y) = (Vec::new(), Vec::new());
            let mut verdict = Verdict::empty();
            for i in part * ROWS..rows.min((part + 1) * ROWS) {
                self.x.row::<M::Value>(i, &mut x);
                for at in self.found.range(i) {
                    let (j, found) = self.found.entry::<M::Value>(at);
                    self.y.row(j, &mut y);
                    let mut sum = model.empty();
                    x.iter().zip(&y).for_each(|(x, y)| model.push(&mut sum, *x, *y));
                    let again = |visit: &mut dyn FnMut(M::Value, M::Value)| {
                        x.iter().zip(&y).for_each(|(x, y)| visit(*x, *y));
                    };
                    let scaling = Scaling {
                        alpha: M::Value::of_factor(self.alpha),
                        factor: self.factors.map(|f| f.get(at)),
                        beta: self.beta.map(M::Value::of_factor),
                    };
                    let old = self.before.map(|b| b.get(at));
                    let terms = x.len();
                    let expected = model.finish(self.dtype, sum, terms, scaling, old, &again);
                    verdict.element(self.dtype, i, j, &expected, found);
                }
            }
            verdict
        });
        parts.into_iter().fold(Verdict::empty(), Verdict::and)
    }
}
