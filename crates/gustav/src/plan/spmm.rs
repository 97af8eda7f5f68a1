//! The plan of C = α·op(A)·B ⊕ β·C.

use gustav_core::{
    Csr, CsrView, Dense, DenseView, DenseViewMut, Index, PlusTimes, Problem, Result, Semiring,
    SemiringKind,
};
use gustav_cpu::CpuScalar;

use super::{accessors, autotuned, explained, median_seconds, options};
use crate::cuda::HostSpmm;
use crate::explain::{Told, facts};
use crate::{Device, Explanation};

/// A sparse matrix that [`Device::plan_spmm`] plans for: in host memory, or in a GPU's.
pub trait PlanSpmm {
    /// The plan for matrices that are where this one is.
    type Plan;

    /// See [`Device::plan_spmm`].
    ///
    /// # Errors
    /// As there.
    fn plan_spmm(self, device: &Device, problem: &Problem) -> Result<Self::Plan>;
}

/// A plan for sparse × dense products with one pattern of A in host memory, made by
/// [`Device::plan_spmm`]. On a GPU every execution moves the operands there and the product back.
pub struct SpmmPlan<T: CpuScalar, I: Index = u32, O: Index = u32> {
    inner: Inner<T, I, O>,
    explanation: Explanation,
}

enum Inner<T: CpuScalar, I: Index, O: Index> {
    Cpu(Box<gustav_cpu::SpmmPlan<T, I, O>>),
    Cuda(Box<HostSpmm<T, I, O>>),
}

impl<T: CpuScalar, I: Index, O: Index> SpmmPlan<T, I, O> {
    accessors!();

    /// C = α·op(A)·B + β·C; β = 0 does not read C.
    ///
    /// # Errors
    /// As [`SpmmPlan::execute_with`].
    pub fn execute<'a>(
        &mut self,
        a: impl Into<CsrView<'a, T, I, O>>,
        alpha: T::Accum,
        b: impl Into<DenseView<'a, T>>,
        beta: T::Accum,
        c: impl Into<DenseViewMut<'a, T>>,
    ) -> Result<()> {
        self.execute_with(PlusTimes, a, alpha, b, beta, c)
    }

    /// The same over another semiring; β equal to its zero does not read C. On a GPU it is the
    /// semiring of the plan's problem, for which its kernel was compiled.
    ///
    /// # Errors
    /// [`gustav_core::Error::Pattern`] when A is not the matrix of the plan,
    /// [`gustav_core::Error::Shape`] when B or C do not fit, and on a GPU
    /// [`gustav_core::Error::Argument`] for another semiring and what its driver refuses.
    pub fn execute_with<'a, S: Semiring<T::Accum>>(
        &mut self,
        semiring: S,
        a: impl Into<CsrView<'a, T, I, O>>,
        alpha: T::Accum,
        b: impl Into<DenseView<'a, T>>,
        beta: T::Accum,
        c: impl Into<DenseViewMut<'a, T>>,
    ) -> Result<()> {
        let (a, b, mut c) = (a.into(), b.into(), c.into());
        match &mut self.inner {
            Inner::Cpu(plan) => plan.execute(semiring, a, alpha, b, beta, c),
            Inner::Cuda(plan) => {
                plan.execute(S::KIND, &a, alpha, &b, beta, beta != S::zero(), &mut c)
            }
        }
    }
}

impl Device {
    /// Plans sparse × dense products with the pattern of `a`: a matrix in host memory
    /// ([`Csr`], [`CsrView`]), or one in this device's memory
    /// ([`DeviceCsr`](crate::cuda::DeviceCsr)).
    ///
    /// # Errors
    /// [`gustav_core::Error::Unsupported`] when a named algorithm does not do `problem`,
    /// [`gustav_core::Error::OutOfMemory`] for the workspace; on a GPU also
    /// [`gustav_core::Error::NoDevice`] when the run-time compiler is missing and
    /// [`gustav_core::Error::Device`] for what its driver refuses.
    pub fn plan_spmm<A: PlanSpmm>(&self, a: A, problem: &Problem) -> Result<A::Plan> {
        a.plan_spmm(self, problem)
    }
}

impl<T: CpuScalar, I: Index, O: Index> PlanSpmm for &Csr<T, I, O> {
    type Plan = SpmmPlan<T, I, O>;

    fn plan_spmm(self, device: &Device, problem: &Problem) -> Result<Self::Plan> {
        self.view().plan_spmm(device, problem)
    }
}

impl<T: CpuScalar, I: Index, O: Index> PlanSpmm for CsrView<'_, T, I, O> {
    type Plan = SpmmPlan<T, I, O>;

    fn plan_spmm(self, device: &Device, problem: &Problem) -> Result<Self::Plan> {
        device.offers(problem)?;
        if device.gpu().is_some() {
            let plan = HostSpmm::new(device, &self, problem)?;
            let explanation = Explanation { facts: facts(device, &self), ..plan.explain().clone() };
            return Ok(SpmmPlan { inner: Inner::Cuda(Box::new(plan)), explanation });
        }
        let (options, tuned) = options(device, || tune(device, self, problem))?;
        let inner = gustav_cpu::SpmmPlan::new(self, problem, &options)?;
        let bytes = inner.workspace_bytes();
        let explanation = explained(device, &self, problem, inner.choice(), tuned, bytes);
        Ok(SpmmPlan { inner: Inner::Cpu(Box::new(inner)), explanation })
    }
}

/// Times every algorithm on operands of the problem's shape, over plus-times.
fn tune<T: CpuScalar, I: Index, O: Index>(
    device: &Device,
    a: CsrView<'_, T, I, O>,
    problem: &Problem,
) -> Result<(gustav_cpu::Options, Told)> {
    let problem = problem.clone().semiring(SemiringKind::PlusTimes);
    let n = problem.columns;
    let b = Dense::from_fn(problem.inner(), n, problem.layout_b, |_, _| T::one())?;
    let mut c = Dense::zeros(problem.output_rows(), n, problem.layout_c)?;
    let (one, zero) = (T::one().to_accum(), T::zero().to_accum());
    autotuned(problem.operation, device.options(), |options| {
        let mut plan = gustav_cpu::SpmmPlan::new(a, &problem, options)?;
        median_seconds(|| plan.execute(PlusTimes, a, one, b.view(), zero, c.view_mut()))
    })
}
