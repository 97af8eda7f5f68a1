//! Sparse × dense matrix, and × vector as its case of one column.

use std::borrow::Cow;

use gustav_core::{
    Arith, CsrView, Dense, DenseView, Error, Index, Layout, Result, Scalar, Semiring, parallel,
};

use super::model::{Model, Scaling, with_model};
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
        }
    }

    /// Compares `found` with the reference.
    ///
    /// # Errors
    /// [`Error::Shape`] when the shapes do not fit, [`Error::Argument`] when β needs C and it
    /// is not given, [`Error::OutOfMemory`] for the transpose of A or a row-major copy of B.
    pub fn verify(&self, found: DenseView<'_, T>) -> Result<Verdict> {
        with_model!(T, self.semiring, model => self.verify_with(model, found))
    }

    fn verify_with<M: Model>(&self, model: M, found: DenseView<'_, T>) -> Result<Verdict> {
        let transposed = if self.transpose_a { Some(self.a.transpose()?) } else { None };
        let a = transposed.as_ref().map_or(self.a, |t| t.view());
        let before = self.check(&a, &found)?;
        let b = row_major(self.b)?;
        let (n, ld) = (self.b.ncols(), b.1);
        let beta = before.map(|_| M::read(self.beta));
        let scaling = Scaling { alpha: M::read(self.alpha), beta };
        let row = |sums: &mut Vec<M::Sum>, i: usize| {
            sums.clear();
            sums.resize(n, model.empty());
            let (cols, values) = a.row(i);
            let b_row = |k: I| &b.0[k.to_usize() * ld..][..n];
            for (k, value) in cols.iter().zip(values) {
                let value = M::read(*value);
                for (sum, b) in sums.iter_mut().zip(b_row(*k)) {
                    model.push(sum, value, M::read(*b));
                }
            }
            let mut verdict = Verdict::empty();
            for (j, sum) in sums.iter().enumerate() {
                let again = |visit: &mut dyn FnMut(M::Value, M::Value)| {
                    for (k, value) in cols.iter().zip(values) {
                        visit(M::read(*value), M::read(b_row(*k)[j]));
                    }
                };
                let old = before.map(|c| M::read(c.get(i, j)));
                let expected = model.finish::<T>(*sum, cols.len(), scaling, old, &again);
                verdict.element(i, j, &expected, found.get(i, j));
            }
            verdict
        };
        let rows = if n == 0 { 0 } else { a.nrows() };
        let parts = parallel::map(rows.div_ceil(ROWS), |part| {
            let mut sums = Vec::new();
            let rows = part * ROWS..rows.min((part + 1) * ROWS);
            rows.map(|i| row(&mut sums, i)).fold(Verdict::empty(), Verdict::and)
        });
        Ok(parts.into_iter().fold(Verdict::empty(), Verdict::and))
    }

    /// Checks the shapes; gives C as it was, if it is read.
    fn check(
        &self,
        a: &CsrView<'_, T, I, O>,
        found: &DenseView<'_, T>,
    ) -> Result<Option<DenseView<'a, T>>> {
        let shape = |what: &str, rows: usize, cols: usize, m: &DenseView<'_, T>| {
            if (m.nrows(), m.ncols()) == (rows, cols) {
                return Ok(());
            }
            Err(Error::Shape {
                op: "verification of a sparse x dense product",
                expected: format!("{what} of {rows} x {cols}"),
                found: format!("{} x {}", m.nrows(), m.ncols()),
            })
        };
        shape("B", a.ncols(), self.b.ncols(), &self.b)?;
        shape("C", a.nrows(), self.b.ncols(), found)?;
        if self.beta == zero::<T::Accum>(self.semiring) {
            return Ok(None);
        }
        let before = self.before.ok_or_else(|| Error::Argument {
            name: "beta",
            found: self.beta.to_string(),
            expected: "C before the product, or the semiring's zero".into(),
        })?;
        shape("C before the product", a.nrows(), self.b.ncols(), &before)?;
        Ok(Some(before))
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
    Spmm { semiring, a, transpose_a, b, alpha, beta, before }.verify(column(found)?)
}

/// The β that leaves C unread.
fn zero<A: Arith>(semiring: Semiring) -> A {
    match semiring {
        Semiring::MinPlus => A::INFINITY,
        Semiring::MaxTimes => A::NEG_INFINITY,
        _ => <A as Scalar>::zero(),
    }
}

/// The values of `b` row by row, and the distance between rows; copied only when they must be.
fn row_major<T: Scalar>(b: DenseView<'_, T>) -> Result<(Cow<'_, [T]>, usize)> {
    if let (Layout::RowMajor, Some(values)) = (b.layout(), b.as_slice()) {
        return Ok((Cow::Borrowed(values), b.leading_dimension()));
    }
    let copy = Dense::from_fn(b.nrows(), b.ncols(), Layout::RowMajor, |i, j| b.get(i, j))?;
    Ok((Cow::Owned(copy.into_data().into_vec()), b.ncols()))
}
