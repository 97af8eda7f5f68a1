//! Sparse × dense matrix, and × vector as its case of one column.

use gustav_core::{
    Arith, CsrView, DType, DenseView, Error, Index, Result, Scalar, Semiring, parallel,
};

use super::model::{Model, Scaling, with_model};
use super::operand::{Factor, Matrix, Sparse, Value, without_gaps};
use super::verdict::Verdict;

// Rows that one task compares.
const ROWS: usize = 64;

/// The operands of C = scale(α, op(A)·B) ⊕ scale(β, C), to check a result against.
#[derive(Clone, Copy, Debug)]
pub struct Spmm<'a, T: Scalar, I: Index, O: Index> {
    /// The two operations.
    pub semiring: Semiring,
    /// A as stored.
    pub a: CsrView<'a, T, I, O>,
    /// Whether op(A) is Aᵀ.
    pub transpose_a: bool,
    /// B, as many rows as op(A) has columns.
    pub b: DenseView<'a, T>,
    /// α.
    pub alpha: T::Accum,
    /// β; the semiring's zero when C is not read.
    pub beta: T::Accum,
    /// C before the product, needed when β is not the semiring's zero.
    pub before: Option<DenseView<'a, T>>,
    /// Whether α is divided by the number of entries of the row, in floating point over plus-times.
    pub mean: bool,
}

impl<'a, T: Scalar, I: Index, O: Index> Spmm<'a, T, I, O> {
    /// The ordinary product A·B.
    pub fn new(a: CsrView<'a, T, I, O>, b: DenseView<'a, T>) -> Self {
        Spmm {
            semiring: Semiring::PlusTimes,
            a,
            transpose_a: false,
            b,
            alpha: T::Accum::one(),
            beta: T::Accum::zero(),
            before: None,
            mean: false,
        }
    }

    /// Compares `found` with the reference.
    ///
    /// # Errors
    /// [`Error::Shape`] when the shapes do not fit, [`Error::Argument`] when β needs C and it
    /// is not given, [`Error::OutOfMemory`] for the transpose of A or a row-major copy of B.
    pub fn verify(&self, found: DenseView<'_, T>) -> Result<Verdict> {
        let reads_c = self.beta != zero::<T::Accum>(self.semiring);
        if reads_c && self.before.is_none() {
            return Err(Error::Argument {
                name: "beta",
                found: self.beta.to_string(),
                expected: "C before the product, or the semiring's zero".into(),
            });
        }
        let copies = (without_gaps(self.b)?, without_gaps(found)?);
        let before = self.before.filter(|_| reads_c);
        let copy_of_before = before.map(without_gaps).transpose()?.flatten();
        let reference = Reference {
            dtype: T::DTYPE,
            a: self.a.into(),
            transpose_a: self.transpose_a,
            b: Matrix::new(self.b, &copies.0),
            alpha: Factor::of(self.alpha),
            beta: reads_c.then(|| Factor::of(self.beta)),
            before: before.map(|c| Matrix::new(c, &copy_of_before)),
            mean: self.mean,
        };
        let found = Matrix::new(found, &copies.1);
        reference.verify(self.semiring, found)
    }
}

/// A [`Spmm`] without its types.
struct Reference<'a> {
    dtype: DType,
    a: Sparse<'a>,
    transpose_a: bool,
    b: Matrix<'a>,
    alpha: Factor,
    beta: Option<Factor>,
    /// C before the product, where it is read.
    before: Option<Matrix<'a>>,
    mean: bool,
}

impl Reference<'_> {
    // Not generic, so that it is compiled in this crate.
    fn verify(&self, semiring: Semiring, found: Matrix<'_>) -> Result<Verdict> {
        with_model!(self.dtype, semiring, model => self.verify_in(model, found))
    }

    fn verify_in<M: Model>(&self, model: M, found: Matrix<'_>) -> Result<Verdict> {
        let transposed = self.transpose_a.then(|| self.a.transpose::<M::Value>()).transpose()?;
        let a = transposed.as_ref().map_or(self.a, |t| t.view());
        self.check(&a, &found)?;
        let rows_of_b = self.b.rows::<M::Value>()?;
        let b = rows_of_b.as_ref().map_or(self.b, |rows| self.b.over(rows));
        let scaling = |terms: usize| Scaling {
            alpha: M::Value::of_factor(match self.mean && terms > 0 {
                true => self.alpha.over(terms),
                false => self.alpha,
            }),
            factor: None,
            beta: self.beta.map(M::Value::of_factor),
        };
        let (n, dtype) = (b.ncols, self.dtype);
        let rows = if n == 0 { 0 } else { a.nrows };
        let parts = parallel::map(rows.div_ceil(ROWS), |part| {
            let (mut sums, mut row_of_b) = (Vec::new(), Vec::new());
            let mut verdict = Verdict::empty();
            for i in part * ROWS..rows.min((part + 1) * ROWS) {
                sums.clear();
                sums.resize(n, model.empty());
                for at in a.range(i) {
                    let (k, value) = a.entry(at);
                    b.row(k, &mut row_of_b);
                    for (sum, b) in sums.iter_mut().zip(&row_of_b) {
                        model.push(sum, value, *b);
                    }
                }
                let mut of_row = Verdict::empty();
                for (j, sum) in sums.iter().enumerate() {
                    let again = |visit: &mut dyn FnMut(M::Value, M::Value)| {
                        for at in a.range(i) {
                            let (k, value) = a.entry(at);
                            visit(value, b.get(k, j));
                        }
                    };
                    let old = self.before.map(|c| c.get(i, j));
                    let terms = a.range(i).len();
                    let expected = model.finish(dtype, *sum, terms, scaling(terms), old, &again);
                    of_row.element(dtype, i, j, &expected, found.get::<M::Value>(i, j));
                }
                verdict = verdict.and(of_row);
            }
            verdict
        });
        Ok(parts.into_iter().fold(Verdict::empty(), Verdict::and))
    }

    /// Checks the shapes.
    fn check(&self, a: &Sparse<'_>, found: &Matrix<'_>) -> Result<()> {
        let n = self.b.ncols;
        let shapes = [
            ("B", a.ncols, Some(&self.b)),
            ("C", a.nrows, Some(found)),
            ("C before the product", a.nrows, self.before.as_ref()),
        ];
        for (what, rows, matrix) in shapes {
            if let Some(m) = matrix.filter(|m| (m.nrows, m.ncols) != (rows, n)) {
                return Err(Error::Shape {
                    op: "verification of a sparse x dense product",
                    expected: format!("{what} of {rows} x {n}"),
                    found: format!("{} x {}", m.nrows, m.ncols),
                });
            }
        }
        Ok(())
    }
}

/// Compares `found` with scale(α, op(A)·x) ⊕ scale(β, y), the case of one column of [`Spmm`].
///
/// # Errors
/// As [`Spmm::verify`].
pub fn spmv<T: Scalar, I: Index, O: Index>(
    semiring: Semiring,
    a: CsrView<'_, T, I, O>,
    transpose_a: bool,
    x: &[T],
    alpha: T::Accum,
    beta: T::Accum,
    before: Option<&[T]>,
    found: &[T],
) -> Result<Verdict> {
    fn column<T: Scalar>(values: &[T]) -> Result<DenseView<'_, T>> {
        DenseView::row_major(values.len(), 1, values)
    }
    let before = before.map(column).transpose()?;
    let b = column(x)?;
    Spmm { semiring, a, transpose_a, b, alpha, beta, before, mean: false }.verify(column(found)?)
}

/// The β that leaves C unread.
fn zero<A: Arith>(semiring: Semiring) -> A {
    match semiring {
        Semiring::MinPlus => A::INFINITY,
        Semiring::MaxTimes => A::NEG_INFINITY,
        _ => <A as Scalar>::zero(),
    }
}
