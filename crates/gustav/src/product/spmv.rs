//! Sparse × vector.

use gustav_core::buffer::try_vec;
use gustav_core::{CsrView, Index, PlusTimes, Problem, Result, Scalar, Semiring};

use super::{Settings, setters};

/// y = A·x with the best device and algorithm.
///
/// # Errors
/// [`gustav_core::Error::Shape`] when x has not as many elements as A has columns,
/// [`gustav_core::Error::OutOfMemory`] for y.
pub fn spmv<'a, T: Scalar, I: Index, O: Index>(
    a: impl Into<CsrView<'a, T, I, O>>,
    x: &'a [T],
) -> Result<Vec<T>> {
    Spmv::new(a, x).run()
}

/// A sparse × vector product with options: y = α·op(A)·x ⊕ β·y.
///
/// ```
/// use gustav::{Csr, Spmv};
///
/// let a = Csr::<f64>::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
/// let y = Spmv::new(&a, &[1.0, 10.0]).transpose_a(true).alpha(2.0).run()?;
/// assert_eq!(y, [2.0, 60.0, 4.0]);
/// # Ok::<(), gustav::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "the product is computed by run or run_into"]
pub struct Spmv<'a, T: Scalar, I: Index, O: Index, S = PlusTimes> {
    a: CsrView<'a, T, I, O>,
    x: &'a [T],
    settings: Settings<T, S>,
}

impl<'a, T: Scalar, I: Index, O: Index> Spmv<'a, T, I, O> {
    /// The product A·x.
    pub fn new(a: impl Into<CsrView<'a, T, I, O>>, x: &'a [T]) -> Self {
        Spmv { a: a.into(), x, settings: Settings::new(PlusTimes) }
    }
}

impl<'a, T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>> Spmv<'a, T, I, O, S> {
    setters!();

    /// Multiplies over `semiring`, with α at its one.
    pub fn semiring<R: Semiring<T::Accum>>(self, semiring: R) -> Spmv<'a, T, I, O, R> {
        let Spmv { a, x, settings } = self;
        Spmv { a, x, settings: settings.over(semiring) }
    }

    /// A new y = α·op(A)·x.
    ///
    /// # Errors
    /// As [`spmv`], and [`gustav_core::Error::Unsupported`] for a named algorithm.
    pub fn run(self) -> Result<Vec<T>> {
        let rows = self.settings.refine(Problem::spmv(&self.a)).output_rows();
        let mut y = try_vec(rows, "y")?;
        y.resize(rows, T::zero());
        self.run_into(S::zero(), &mut y)?;
        Ok(y)
    }

    /// y = α·op(A)·x ⊕ β·y in place; β equal to the semiring's zero does not read y.
    ///
    /// # Errors
    /// As [`Spmv::run`], and [`gustav_core::Error::Shape`] when y does not fit.
    pub fn run_into(self, beta: T::Accum, y: &mut [T]) -> Result<()> {
        let problem = self.settings.refine(Problem::spmv(&self.a));
        let mut plan = self.settings.device()?.plan_spmv(self.a, &problem)?;
        plan.execute_with(self.settings.semiring, self.a, self.settings.alpha, self.x, beta, y)
    }
}
