//! The plan of C = α·op(A)·B with all three sparse.

use gustav_core::{
    Csr, CsrView, Index, PlusTimes, Problem, Result, Scalar, Semiring, SemiringKind,
};

use super::{accessors, autotuned, explained, median_seconds, options};
use crate::cuda::HostSpgemm;
use crate::explain::{Told, facts};
use crate::{Device, Explanation};

/// Two sparse matrices that [`Device::plan_spgemm`] plans for: in host memory, or in a GPU's.
pub trait PlanSpgemm: Sized {
    /// The plan for matrices that are where these are.
    type Plan;

    /// See [`Device::plan_spgemm`].
    ///
    /// # Errors
    /// As there.
    fn plan_spgemm(self, b: Self, device: &Device, problem: &Problem) -> Result<Self::Plan>;
}

/// A plan for sparse × sparse products with one pattern of A and one of B in host memory, made by
/// [`Device::plan_spgemm`]. On a GPU every execution moves the operands there and the product back.
pub struct SpgemmPlan<T: Scalar, I: Index = u32, O: Index = u32> {
    inner: Inner<T, I, O>,
    explanation: Explanation,
}

enum Inner<T: Scalar, I: Index, O: Index> {
    Cpu(Box<gustav_cpu::SpgemmPlan<T, I, O>>),
    Cuda(Box<HostSpgemm<T, I, O>>),
}

impl<T: Scalar, I: Index, O: Index> SpgemmPlan<T, I, O> {
    accessors!();

    /// Intermediate products: the number of multiplications.
    pub fn products(&self) -> u64 {
        match &self.inner {
            Inner::Cpu(plan) => plan.products(),
            Inner::Cuda(plan) => plan.products(),
        }
    }

    /// C = α·op(A)·B.
    ///
    /// # Errors
    /// As [`SpgemmPlan::execute_with`].
    pub fn execute<'a>(
        &mut self,
        a: impl Into<CsrView<'a, T, I, O>>,
        alpha: T::Accum,
        b: impl Into<CsrView<'a, T, I, O>>,
    ) -> Result<Csr<T, I, O>> {
        self.execute_with(PlusTimes, a, alpha, b)
    }

    /// The same over another semiring; on a GPU it is that of the plan's problem, for which its
    /// kernels were compiled.
    ///
    /// # Errors
    /// [`gustav_core::Error::Pattern`] when A or B are not the matrices of the plan,
    /// [`gustav_core::Error::Overflow`] when C has more nonzeros than `O` can count,
    /// [`gustav_core::Error::OutOfMemory`] for C, and on a GPU [`gustav_core::Error::Argument`] for
    /// another semiring and what its driver refuses.
    pub fn execute_with<'a, S: Semiring<T::Accum>>(
        &mut self,
        semiring: S,
        a: impl Into<CsrView<'a, T, I, O>>,
        alpha: T::Accum,
        b: impl Into<CsrView<'a, T, I, O>>,
    ) -> Result<Csr<T, I, O>> {
        let (a, b) = (a.into(), b.into());
        match &mut self.inner {
            Inner::Cpu(plan) => plan.execute(semiring, a, alpha, b),
            Inner::Cuda(plan) => plan.execute(S::KIND, &a, alpha, &b),
        }
    }
}

impl Device {
    /// Plans sparse × sparse products with the patterns of `a` and `b`: matrices in host memory
    /// ([`Csr`], [`CsrView`]), or in this device's memory
    /// ([`DeviceCsr`](crate::cuda::DeviceCsr)).
    ///
    /// # Errors
    /// As [`Device::plan_spmm`].
    pub fn plan_spgemm<M: PlanSpgemm>(&self, a: M, b: M, problem: &Problem) -> Result<M::Plan> {
        a.plan_spgemm(b, self, problem)
    }
}

impl<T: Scalar, I: Index, O: Index> PlanSpgemm for &Csr<T, I, O> {
    type Plan = SpgemmPlan<T, I, O>;

    fn plan_spgemm(self, b: Self, device: &Device, problem: &Problem) -> Result<Self::Plan> {
        self.view().plan_spgemm(b.view(), device, problem)
    }
}

impl<T: Scalar, I: Index, O: Index> PlanSpgemm for CsrView<'_, T, I, O> {
    type Plan = SpgemmPlan<T, I, O>;

    fn plan_spgemm(self, b: Self, device: &Device, problem: &Problem) -> Result<Self::Plan> {
        device.offers(problem)?;
        if device.gpu().is_some() {
            let plan = HostSpgemm::new(device, &self, &b, problem)?;
            let explanation = Explanation { facts: facts(device, &self), ..plan.explain().clone() };
            return Ok(SpgemmPlan { inner: Inner::Cuda(Box::new(plan)), explanation });
        }
        let (options, tuned) = options(device, || tune(device, self, b, problem))?;
        let inner = gustav_cpu::SpgemmPlan::new(self, b, problem, &options)?;
        let bytes = inner.workspace_bytes();
        let explanation = explained(device, &self, problem, inner.choice(), tuned, bytes);
        Ok(SpgemmPlan { inner: Inner::Cpu(Box::new(inner)), explanation })
    }
}

/// Times every algorithm on the operands themselves, over plus-times.
pub(crate) fn tune<T: Scalar, I: Index, O: Index>(
    device: &Device,
    a: CsrView<'_, T, I, O>,
    b: CsrView<'_, T, I, O>,
    problem: &Problem,
) -> Result<(gustav_cpu::Options, Told)> {
    let problem = problem.clone().semiring(SemiringKind::PlusTimes);
    autotuned(problem.operation, device.options(), |options| {
        let mut plan = gustav_cpu::SpgemmPlan::new(a, b, &problem, options)?;
        median_seconds(|| plan.execute(PlusTimes, a, T::one().to_accum(), b).map(drop))
    })
}
