//! Sparse × dense.

use gustav_core::{
    CsrView, Dense, DenseView, DenseViewMut, Index, Layout, PlusTimes, Problem, Result, Semiring,
};
use gustav_cpu::CpuScalar;

use super::{Settings, setters};

/// C = A·B with the best device and algorithm; C is row-major.
///
/// # Errors
/// [`gustav_core::Error::Shape`] when B has not as many rows as A has columns,
/// [`gustav_core::Error::OutOfMemory`] for C.
pub fn spmm<'a, T: CpuScalar, I: Index, O: Index>(
    a: impl Into<CsrView<'a, T, I, O>>,
    b: impl Into<DenseView<'a, T>>,
) -> Result<Dense<T>> {
    Spmm::new(a, b).run()
}

/// A sparse × dense product with options: C = α·op(A)·B ⊕ β·C.
///
/// ```
/// use gustav::{Csr, Dense, MinPlus, Spmm};
///
/// // Distances after one step on the path 0 – 1 – 2, edges of length 1 and 5.
/// let a = Csr::<f32>::new(3, 3, vec![0, 1, 3, 4], vec![1, 0, 2, 1], vec![1.0, 1.0, 5.0, 5.0])?;
/// let far = f32::INFINITY;
/// let b = Dense::from_row_major(3, 1, vec![0.0, far, far])?;
/// let c = Spmm::new(&a, &b).semiring(MinPlus).threads(2).run()?;
/// assert_eq!(c.data(), [far, 1.0, far]);
/// # Ok::<(), gustav::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "the product is computed by run or run_into"]
pub struct Spmm<'a, T: CpuScalar, I: Index, O: Index, S = PlusTimes> {
    a: CsrView<'a, T, I, O>,
    b: DenseView<'a, T>,
    layout: Layout,
    settings: Settings<T, S>,
}

impl<'a, T: CpuScalar, I: Index, O: Index> Spmm<'a, T, I, O> {
    /// The product A·B.
    pub fn new(a: impl Into<CsrView<'a, T, I, O>>, b: impl Into<DenseView<'a, T>>) -> Self {
        Spmm {
            a: a.into(),
            b: b.into(),
            layout: Layout::RowMajor,
            settings: Settings::new(PlusTimes),
        }
    }
}

impl<'a, T: CpuScalar, I: Index, O: Index, S: Semiring<T::Accum>> Spmm<'a, T, I, O, S> {
    setters!();

    /// Multiplies over `semiring`, with α at its one.
    pub fn semiring<R: Semiring<T::Accum>>(self, semiring: R) -> Spmm<'a, T, I, O, R> {
        let Spmm { a, b, layout, settings } = self;
        Spmm { a, b, layout, settings: settings.over(semiring) }
    }

    /// Declares that no operand holds NaN or infinity, so that algorithms which multiply zeros that
    /// are not stored may be named.
    pub fn finite(mut self, finite: bool) -> Self {
        self.settings.finite = finite;
        self
    }

    /// Allows factors in f32 to be rounded to TF32.
    pub fn tf32(mut self, tf32: bool) -> Self {
        self.settings.tf32 = tf32;
        self
    }

    /// The layout of the C that [`Spmm::run`] makes.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// A new C = α·op(A)·B.
    ///
    /// # Errors
    /// As [`spmm`], and [`gustav_core::Error::Unsupported`] for a named algorithm.
    pub fn run(self) -> Result<Dense<T>> {
        let rows = self.settings.refine(Problem::spmm(&self.a)).output_rows();
        let mut c = Dense::zeros(rows, self.b.ncols(), self.layout)?;
        self.run_into(S::zero(), &mut c)?;
        Ok(c)
    }

    /// C = α·op(A)·B ⊕ β·C in place; β equal to the semiring's zero does not read C.
    ///
    /// # Errors
    /// As [`Spmm::run`], and [`gustav_core::Error::Shape`] when C does not fit.
    pub fn run_into<'c>(self, beta: T::Accum, c: impl Into<DenseViewMut<'c, T>>) -> Result<()> {
        let mut c = c.into();
        let problem =
            Problem::spmm(&self.a).columns(self.b.ncols()).layouts(self.b.layout(), c.layout());
        let Settings { semiring, alpha, .. } = self.settings;
        let mut plan = self.settings.device()?.plan_spmm(self.a, &self.settings.refine(problem))?;
        plan.execute_with(semiring, self.a, alpha, self.b, beta, c.reborrow())
    }
}
