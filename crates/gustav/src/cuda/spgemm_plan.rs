//! Sparse × sparse products with every operand in a GPU's memory.

use gustav_core::{Index, Plans, Problem, Result, Scalar, SpgemmRequest};
use gustav_cuda::{DeviceValues, SpgemmCall, spgemm};
use gustav_plan::{Choice, Chooser};

use super::plan::check;
use super::{Call, DeviceCsr, DevicePattern, tune};
use crate::Device;
use crate::explain::{Config, Explanation};
use crate::plan::{accessors, no_sum};

/// A plan for sparse × sparse products with one pattern of A and of B on a GPU, made by
/// `a.pattern().spgemm(b.pattern()).plan(&gpu)`.
pub struct SpgemmPlan<T: Scalar, I: Index = u32, O: Index = u32> {
    inner: Inner<T, I, O>,
    explanation: Explanation,
}

enum Inner<T: Scalar, I: Index, O: Index> {
    Whole(Box<spgemm::SpgemmPlan<T, I, O>>),
    Masked(Box<spgemm::masked::MaskedPlan<T, I, O>>, Problem),
}

impl<T: Scalar, I: Index, O: Index> SpgemmPlan<T, I, O> {
    accessors!();

    /// Intermediate products, where the algorithm counts them.
    pub fn products(&self) -> Option<u64> {
        match &self.inner {
            Inner::Whole(plan) => plan.products(),
            Inner::Masked(..) => None,
        }
    }

    /// A new C = scale(α, op(A)·B) ⊕ scale(β, D) over the plan's semiring, as `call` says. The
    /// first product finds the pattern of C, and later ones share it where the algorithm can.
    ///
    /// # Errors
    /// As [`gustav_cuda::SpgemmPlan::execute`];
    /// [`Error::Unsupported`](gustav_core::Error::Unsupported) for D under a mask.
    pub fn execute<'v>(
        &mut self,
        a: impl Into<DeviceValues<'v, T>>,
        b: impl Into<DeviceValues<'v, T>>,
        call: SpgemmCall<'_, T, I, O>,
    ) -> Result<DeviceCsr<T, I, O>> {
        match &mut self.inner {
            Inner::Whole(plan) => plan.execute(a, b, call),
            Inner::Masked(plan, problem) => {
                let c = plan.execute(a, b, product(call, problem)?)?;
                // All of C may not have fitted.
                if plan.choice().algorithm != self.explanation.choice.algorithm {
                    self.explanation.choice = masked(plan.choice());
                }
                Ok(c)
            }
        }
    }

    /// The values of C into an earlier result of this plan: nothing symbolic is done and no memory
    /// is taken.
    ///
    /// # Errors
    /// As [`gustav_cuda::SpgemmPlan::execute_into`].
    pub fn execute_into<'v>(
        &mut self,
        a: impl Into<DeviceValues<'v, T>>,
        b: impl Into<DeviceValues<'v, T>>,
        c: &mut DeviceCsr<T, I, O>,
        call: SpgemmCall<'_, T, I, O>,
    ) -> Result<()> {
        match &mut self.inner {
            Inner::Whole(plan) => plan.execute_into(a, b, c, call),
            Inner::Masked(plan, problem) => plan.execute_into(a, b, c, product(call, problem)?),
        }
    }
}

/// A call that adds nothing.
fn product<'c, T: Scalar, I: Index, O: Index>(
    call: SpgemmCall<'c, T, I, O>,
    problem: &Problem,
) -> Result<Call<'c, T>> {
    call.without_sum().ok_or_else(|| no_sum(problem))
}

/// A choice under a mask.
fn masked(choice: &Choice<spgemm::masked::Config>) -> Choice<Config> {
    choice.clone().map(|config| match config {
        spgemm::masked::Config::Positions => Config::Masked,
        spgemm::masked::Config::Whole(config) => Config::CudaSpgemm(config),
    })
}

impl<T: Scalar, I: Index, O: Index> Plans<SpgemmRequest<DevicePattern<I, O>>, T> for Device {
    type Plan = SpgemmPlan<T, I, O>;

    fn plan(&self, request: SpgemmRequest<DevicePattern<I, O>>) -> Result<SpgemmPlan<T, I, O>> {
        let SpgemmRequest { a, b, mask, problem } = request;
        let problem = check::<T, I, O>(self, &a, &problem)?;
        if let Some(mask) = mask {
            let options = spgemm::Options { chooser: self.chooser(), ..spgemm::Options::default() };
            let plan = spgemm::masked::MaskedPlan::new(&a, &b, &mask, &problem, &options)?;
            let (choice, bytes) = (masked(plan.choice()), plan.workspace_bytes());
            let explanation = Explanation::new(&problem, self, None, choice, bytes);
            return Ok(SpgemmPlan { inner: Inner::Masked(Box::new(plan), problem), explanation });
        }
        self.offers_all_of_c(&problem)?;
        let (chooser, report) = match self.chooser() {
            Chooser::Autotune => {
                let timed = tune::spgemm::<T, I, O>(&a, &b, &problem)?;
                (Chooser::Named(*timed.best()), Some(timed.into()))
            }
            chooser => (chooser, None),
        };
        let options = spgemm::Options { chooser, ..spgemm::Options::default() };
        let plan = spgemm::SpgemmPlan::new(&a, &b, &problem, &options)?;
        let choice = plan.choice().clone().map(Config::CudaSpgemm);
        let bytes = plan.workspace_bytes();
        let explanation = Explanation::new(&problem, self, None, choice, bytes).reported(report);
        Ok(SpgemmPlan { inner: Inner::Whole(Box::new(plan)), explanation })
    }
}
