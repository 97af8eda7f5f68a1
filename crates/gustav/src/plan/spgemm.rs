//! The plan of C = α·op(A)·B with all three sparse.

use gustav_core::{
    Csr, CsrView, Index, PlusTimes, Problem, Result, Scalar, Semiring, SemiringKind,
};

use super::{accessors, autotuned, explained, median_seconds, options};
use crate::{Device, Explanation};

/// A plan for sparse × sparse products with one pattern of A and one of B, made by
/// [`Device::plan_spgemm`].
pub struct SpgemmPlan<T: Scalar, I: Index = u32, O: Index = u32> {
    inner: gustav_cpu::SpgemmPlan<T, I, O>,
    explanation: Explanation,
}

impl<T: Scalar, I: Index, O: Index> SpgemmPlan<T, I, O> {
    accessors!();

    /// Intermediate products: the number of multiplications.
    pub fn products(&self) -> u64 {
        self.inner.products()
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

    /// The same over another semiring.
    ///
    /// # Errors
    /// [`gustav_core::Error::Pattern`] when A or B are not the matrices of the plan,
    /// [`gustav_core::Error::Overflow`] when C has more nonzeros than `O` can count,
    /// [`gustav_core::Error::OutOfMemory`] for C.
    pub fn execute_with<'a, S: Semiring<T::Accum>>(
        &mut self,
        semiring: S,
        a: impl Into<CsrView<'a, T, I, O>>,
        alpha: T::Accum,
        b: impl Into<CsrView<'a, T, I, O>>,
    ) -> Result<Csr<T, I, O>> {
        self.inner.execute(semiring, a.into(), alpha, b.into())
    }
}

impl Device {
    /// Plans sparse × sparse products with the patterns of `a` and `b`.
    ///
    /// # Errors
    /// As [`Device::plan_spmm`].
    pub fn plan_spgemm<'a, T: Scalar, I: Index, O: Index>(
        &self,
        a: impl Into<CsrView<'a, T, I, O>>,
        b: impl Into<CsrView<'a, T, I, O>>,
        problem: &Problem,
    ) -> Result<SpgemmPlan<T, I, O>> {
        let (a, b) = (a.into(), b.into());
        self.offers(problem)?;
        let (options, tuned) = options(self, || tune(self, a, b, problem))?;
        let inner = gustav_cpu::SpgemmPlan::new(a, b, problem, &options)?;
        let bytes = inner.workspace_bytes();
        let explanation = explained(self, &a, problem, inner.choice(), tuned, bytes);
        Ok(SpgemmPlan { inner, explanation })
    }
}

/// Times every algorithm on the operands themselves, over plus-times.
pub(crate) fn tune<T: Scalar, I: Index, O: Index>(
    device: &Device,
    a: CsrView<'_, T, I, O>,
    b: CsrView<'_, T, I, O>,
    problem: &Problem,
) -> Result<(gustav_cpu::Options, String)> {
    let problem = problem.clone().semiring(SemiringKind::PlusTimes);
    autotuned(problem.operation, device.options(), |options| {
        let mut plan = gustav_cpu::SpgemmPlan::new(a, b, &problem, options)?;
        median_seconds(|| plan.execute(PlusTimes, a, T::one().to_accum(), b).map(drop))
    })
}
