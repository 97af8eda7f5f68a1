//! The plan of y = α·op(A)·x ⊕ β·y.

use gustav_core::{CsrView, Index, PlusTimes, Problem, Result, Scalar, Semiring, SemiringKind};
use gustav_plan::Chooser;

use super::{accessors, autotuned, median_seconds};
use crate::{Device, Explanation};

/// A plan for sparse × vector products with one pattern of A, made by [`Device::plan_spmv`].
pub struct SpmvPlan<T: Scalar, I: Index = u32, O: Index = u32> {
    inner: gustav_cpu::SpmvPlan<T, I, O>,
    explanation: Explanation,
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

    /// The same over another semiring; β equal to its zero does not read y.
    ///
    /// # Errors
    /// [`gustav_core::Error::Pattern`] when A is not the matrix of the plan,
    /// [`gustav_core::Error::Shape`] when x or y do not fit.
    pub fn execute_with<'a, S: Semiring<T::Accum>>(
        &mut self,
        semiring: S,
        a: impl Into<CsrView<'a, T, I, O>>,
        alpha: T::Accum,
        x: &[T],
        beta: T::Accum,
        y: &mut [T],
    ) -> Result<()> {
        self.inner.execute(semiring, a.into(), alpha, x, beta, y)
    }
}

impl Device {
    /// Plans sparse × vector products with the pattern of `a`.
    ///
    /// # Errors
    /// As [`Device::plan_spmm`].
    pub fn plan_spmv<'a, T: Scalar, I: Index, O: Index>(
        &self,
        a: impl Into<CsrView<'a, T, I, O>>,
        problem: &Problem,
    ) -> Result<SpmvPlan<T, I, O>> {
        let a = a.into();
        let (options, tuned) = if self.chooser() == Chooser::Autotune {
            let (options, reason) = tune(self, a, problem)?;
            (options, Some(reason))
        } else {
            (self.options().clone(), None)
        };
        let inner = gustav_cpu::SpmvPlan::new(a, problem, &options)?;
        let mut choice = inner.choice().clone();
        choice.reason = tuned.unwrap_or(choice.reason);
        let explanation = Explanation::new(&a, problem, self, choice, inner.workspace_bytes());
        Ok(SpmvPlan { inner, explanation })
    }
}

/// Times every algorithm on vectors of the problem's shape, over plus-times.
fn tune<T: Scalar, I: Index, O: Index>(
    device: &Device,
    a: CsrView<'_, T, I, O>,
    problem: &Problem,
) -> Result<(gustav_cpu::Options, String)> {
    let problem = problem.clone().semiring(SemiringKind::PlusTimes);
    let x = vec![T::one(); problem.inner()];
    let mut y = vec![T::zero(); problem.output_rows()];
    let (one, zero) = (T::one().to_accum(), T::zero().to_accum());
    autotuned(problem.operation, device.options(), |options| {
        let mut plan = gustav_cpu::SpmvPlan::new(a, &problem, options)?;
        median_seconds(|| plan.execute(PlusTimes, a, one, &x, zero, &mut y))
    })
}
