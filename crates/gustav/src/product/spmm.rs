//! Sparse × dense.

use gustav_core::{
    CsrView, Dense, DenseView, DenseViewMut, Index, Layout, PatternRef, Problem, Reduce, Result,
    Scale, SpmmRequest,
};
use gustav_cpu::CpuScalar;

use super::setters;
use crate::Device;
use crate::operands::{DenseOperand, IntoOperand, mixed};

/// C = A·B with the best algorithm of the CPU; C is row-major. B is a [`Dense`], a view, or what
/// else [`IntoOperand`] lists.
///
/// # Errors
/// [`gustav_core::Error::Shape`] when B has not as many rows as A has columns,
/// [`gustav_core::Error::OutOfMemory`] for C.
pub fn spmm<'a, T: CpuScalar, I: Index, O: Index>(
    a: impl Into<CsrView<'a, T, I, O>>,
    b: impl IntoOperand<DenseOperand<'a, T>>,
) -> Result<Dense<T>> {
    match b.into_operand()? {
        DenseOperand::Host(b) => Spmm::new(a, b).run(),
        DenseOperand::Device(_) => mixed("cpu"),
    }
}

/// A sparse × dense product with options: C = scale(α, op(A)·B) ⊕ scale(β, C).
///
/// ```
/// use gustav::{Csr, Dense, Semiring, Spmm};
///
/// // Distances after one step on the path 0 – 1 – 2, edges of length 1 and 5.
/// let a = Csr::<f32>::new(3, 3, vec![0, 1, 3, 4], vec![1, 0, 2, 1], vec![1.0, 1.0, 5.0, 5.0])?;
/// let far = f32::INFINITY;
/// let b = Dense::from_row_major(3, 1, vec![0.0, far, far])?;
/// let c = Spmm::new(&a, &b).semiring(Semiring::MinPlus).threads(2).run()?;
/// assert_eq!(c.data(), [far, 1.0, far]);
/// # Ok::<(), gustav::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "the product is computed by run or run_into"]
pub struct Spmm<'a, T: CpuScalar, I: Index, O: Index> {
    a: CsrView<'a, T, I, O>,
    b: DenseView<'a, T>,
    problem: Problem,
    device: Device,
    threads: Option<usize>,
    alpha: Option<T::Accum>,
}

impl<'a, T: CpuScalar, I: Index, O: Index> Spmm<'a, T, I, O> {
    /// The product A·B.
    pub fn new(a: impl Into<CsrView<'a, T, I, O>>, b: impl Into<DenseView<'a, T>>) -> Self {
        let (a, b) = (a.into(), b.into());
        let problem = Problem::spmm(&a).columns(b.ncols()).layouts(b.layout(), Layout::RowMajor);
        Spmm { a, b, problem, device: Device::cpu(), threads: None, alpha: None }
    }

    setters!(T::Accum);

    /// Sets how the products of a row are reduced, else to their sum; see
    /// [`SpmmRequest::reduce`](crate::SpmmRequest::reduce).
    pub fn reduce(mut self, reduce: Reduce) -> Self {
        self.problem = self.problem.reduce(reduce);
        self
    }

    /// Declares that no operand holds NaN or infinity, so that algorithms which multiply zeros that
    /// are not stored may be named.
    pub fn finite(mut self, finite: bool) -> Self {
        self.problem.finite = finite;
        self
    }

    /// Allows factors in f32 to be rounded to TF32.
    pub fn tf32(mut self, tf32: bool) -> Self {
        self.problem.tf32 = tf32;
        self
    }

    /// The layout of the C that [`Spmm::run`] makes.
    pub fn layout(mut self, layout: Layout) -> Self {
        self.problem.layout_c = layout;
        self
    }

    /// A new C = scale(α, op(A)·B).
    ///
    /// # Errors
    /// As [`spmm`], and [`gustav_core::Error::Unsupported`] for a named algorithm.
    pub fn run(self) -> Result<Dense<T>> {
        let mut c =
            Dense::zeros(self.problem.output_rows(), self.problem.columns, self.problem.layout_c)?;
        self.execute(None, c.view_mut())?;
        Ok(c)
    }

    /// C = scale(α, op(A)·B) ⊕ scale(β, C) in place; β equal to the semiring's zero does not read
    /// C.
    ///
    /// # Errors
    /// As [`Spmm::run`], and [`gustav_core::Error::Shape`] when C does not fit.
    pub fn run_into<'c>(mut self, beta: T::Accum, c: impl Into<DenseViewMut<'c, T>>) -> Result<()> {
        let c = c.into();
        self.problem.layout_c = c.layout();
        self.execute(Some(beta), c)
    }

    fn execute(self, beta: Option<T::Accum>, mut c: DenseViewMut<'_, T>) -> Result<()> {
        let device = self.planner()?;
        let Spmm { a, b, problem, alpha, .. } = self;
        if device.is_unexplained() {
            let pattern = PatternRef::from(a.pattern());
            let problem = problem.bound::<T>(&pattern.clone().into())?;
            device.offers(&problem)?;
            let mut plan = gustav_cpu::SpmmPlan::new(pattern, &problem, device.options())?;
            return plan.execute(a, b, c, Scale { alpha, beta });
        }
        let mut plan = SpmmRequest { pattern: PatternRef::from(a.pattern()), problem }
            .plan::<T, _>(&device)?;
        plan.execute(a, b, c.reborrow(), Scale { alpha, beta })
    }
}
