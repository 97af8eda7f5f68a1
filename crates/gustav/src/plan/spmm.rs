//! The plan of C = α·op(A)·B ⊕ β·C.

use gustav_core::{
    CsrView, Dense, DenseView, DenseViewMut, Index, PlusTimes, Problem, Result, Semiring,
    SemiringKind,
};
use gustav_cpu::CpuScalar;
use gustav_plan::Chooser;

use super::{accessors, autotuned, median_seconds};
use crate::{Device, Explanation};

/// A plan for sparse × dense products with one pattern of A, made by [`Device::plan_spmm`].
pub struct SpmmPlan<T: CpuScalar, I: Index = u32, O: Index = u32> {
    inner: gustav_cpu::SpmmPlan<T, I, O>,
    explanation: Explanation,
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

    /// The same over another semiring; β equal to its zero does not read C.
    ///
    /// # Errors
    /// [`gustav_core::Error::Pattern`] when A is not the matrix of the plan,
    /// [`gustav_core::Error::Shape`] when B or C do not fit.
    pub fn execute_with<'a, S: Semiring<T::Accum>>(
        &mut self,
        semiring: S,
        a: impl Into<CsrView<'a, T, I, O>>,
        alpha: T::Accum,
        b: impl Into<DenseView<'a, T>>,
        beta: T::Accum,
        c: impl Into<DenseViewMut<'a, T>>,
    ) -> Result<()> {
        self.inner.execute(semiring, a.into(), alpha, b.into(), beta, c.into())
    }
}

impl Device {
    /// Plans sparse × dense products with the pattern of `a`.
    ///
    /// # Errors
    /// [`gustav_core::Error::Unsupported`] when a named algorithm does not do `problem`,
    /// [`gustav_core::Error::OutOfMemory`] for the workspace.
    pub fn plan_spmm<'a, T: CpuScalar, I: Index, O: Index>(
        &self,
        a: impl Into<CsrView<'a, T, I, O>>,
        problem: &Problem,
    ) -> Result<SpmmPlan<T, I, O>> {
        let a = a.into();
        let (options, tuned) = if self.chooser() == Chooser::Autotune {
            let (options, reason) = tune(self, a, problem)?;
            (options, Some(reason))
        } else {
            (self.options().clone(), None)
        };
        let inner = gustav_cpu::SpmmPlan::new(a, problem, &options)?;
        let mut choice = inner.choice().clone();
        choice.reason = tuned.unwrap_or(choice.reason);
        let explanation = Explanation::new(&a, problem, self, choice, inner.workspace_bytes());
        Ok(SpmmPlan { inner, explanation })
    }
}

/// Times every algorithm on operands of the problem's shape, over plus-times.
fn tune<T: CpuScalar, I: Index, O: Index>(
    device: &Device,
    a: CsrView<'_, T, I, O>,
    problem: &Problem,
) -> Result<(gustav_cpu::Options, String)> {
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
