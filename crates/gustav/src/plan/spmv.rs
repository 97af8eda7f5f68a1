//! The plan of y = α·op(A)·x ⊕ β·y.

use gustav_core::buffer::try_collect;
use gustav_core::{
    Csr, CsrView, Index, PlusTimes, Problem, Result, Scalar, Semiring, SemiringKind,
};

use super::{accessors, autotuned, explained, median_seconds, options};
use crate::cuda::HostSpmv;
use crate::explain::{Told, facts};
use crate::{Device, Explanation};

/// A sparse matrix that [`Device::plan_spmv`] plans for: in host memory, or in a GPU's.
pub trait PlanSpmv {
    /// The plan for matrices that are where this one is.
    type Plan;

    /// See [`Device::plan_spmv`].
    ///
    /// # Errors
    /// As there.
    fn plan_spmv(self, device: &Device, problem: &Problem) -> Result<Self::Plan>;
}

/// A plan for sparse × vector products with one pattern of A in host memory, made by
/// [`Device::plan_spmv`]. On a GPU every execution moves the operands there and the product back.
pub struct SpmvPlan<T: Scalar, I: Index = u32, O: Index = u32> {
    inner: Inner<T, I, O>,
    explanation: Explanation,
}

enum Inner<T: Scalar, I: Index, O: Index> {
    Cpu(Box<gustav_cpu::SpmvPlan<T, I, O>>),
    Cuda(Box<HostSpmv<T, I, O>>),
}

impl<T: Scalar, I: Index, O: Index> SpmvPlan<T, I, O> {
    accessors!();

    /// y = α·op(A)·x + β·y; β = 0 does not read y.
    ///
    /// # Errors
    /// As [`SpmvPlan::execute_with`].
    pub fn execute<'a>(
        &mut self,
        a: impl Into<CsrView<'a, T, I, O>>,
        alpha: T::Accum,
        x: &[T],
        beta: T::Accum,
        y: &mut [T],
    ) -> Result<()> {
        self.execute_with(PlusTimes, a, alpha, x, beta, y)
    }

    /// The same over another semiring; β equal to its zero does not read y. On a GPU it is the
    /// semiring of the plan's problem, for which its kernel was compiled.
    ///
    /// # Errors
    /// [`gustav_core::Error::Pattern`] when A is not the matrix of the plan,
    /// [`gustav_core::Error::Shape`] when x or y do not fit, and on a GPU
    /// [`gustav_core::Error::Argument`] for another semiring and what its driver refuses.
    pub fn execute_with<'a, S: Semiring<T::Accum>>(
        &mut self,
        semiring: S,
        a: impl Into<CsrView<'a, T, I, O>>,
        alpha: T::Accum,
        x: &[T],
        beta: T::Accum,
        y: &mut [T],
    ) -> Result<()> {
        let a = a.into();
        match &mut self.inner {
            Inner::Cpu(plan) => plan.execute(semiring, a, alpha, x, beta, y),
            Inner::Cuda(plan) => plan.execute(S::KIND, &a, alpha, x, beta, beta != S::zero(), y),
        }
    }
}

impl Device {
    /// Plans sparse × vector products with the pattern of `a`: a matrix in host memory, or one in
    /// this device's memory.
    ///
    /// # Errors
    /// As [`Device::plan_spmm`].
    pub fn plan_spmv<A: PlanSpmv>(&self, a: A, problem: &Problem) -> Result<A::Plan> {
        a.plan_spmv(self, problem)
    }
}

impl<T: Scalar, I: Index, O: Index> PlanSpmv for &Csr<T, I, O> {
    type Plan = SpmvPlan<T, I, O>;

    fn plan_spmv(self, device: &Device, problem: &Problem) -> Result<Self::Plan> {
        self.view().plan_spmv(device, problem)
    }
}

impl<T: Scalar, I: Index, O: Index> PlanSpmv for CsrView<'_, T, I, O> {
    type Plan = SpmvPlan<T, I, O>;

    fn plan_spmv(self, device: &Device, problem: &Problem) -> Result<Self::Plan> {
        device.offers(problem)?;
        if device.gpu().is_some() {
            let plan = HostSpmv::new(device, &self, problem)?;
            let explanation = Explanation { facts: facts(device, &self), ..plan.explain().clone() };
            return Ok(SpmvPlan { inner: Inner::Cuda(Box::new(plan)), explanation });
        }
        let (options, tuned) = options(device, || tune(device, self, problem))?;
        let inner = gustav_cpu::SpmvPlan::new(self, problem, &options)?;
        let bytes = inner.workspace_bytes();
        let explanation = explained(device, &self, problem, inner.choice(), tuned, bytes);
        Ok(SpmvPlan { inner: Inner::Cpu(Box::new(inner)), explanation })
    }
}

/// Times every algorithm on vectors of the problem's shape, over plus-times.
fn tune<T: Scalar, I: Index, O: Index>(
    device: &Device,
    a: CsrView<'_, T, I, O>,
    problem: &Problem,
) -> Result<(gustav_cpu::Options, Told)> {
    let problem = problem.clone().semiring(SemiringKind::PlusTimes);
    let x = try_collect((0..problem.inner()).map(|_| T::one()), "x")?;
    let mut y = try_collect((0..problem.output_rows()).map(|_| T::zero()), "y")?;
    let (one, zero) = (T::one().to_accum(), T::zero().to_accum());
    autotuned(problem.operation, device.options(), |options| {
        let mut plan = gustav_cpu::SpmvPlan::new(a, &problem, options)?;
        median_seconds(|| plan.execute(PlusTimes, a, one, &x, zero, &mut y))
    })
}
