//! Plans with every operand in a GPU's memory.

use std::ops::ControlFlow;

use gustav_core::{Error, Index, Problem, Result, Scalar};
use gustav_cuda::spgemm::tiled::Progress;
use gustav_cuda::{spgemm, spmm, spmv};
use gustav_plan::{Choice, Chooser};

use super::{DeviceBuffer, DeviceCsr, DeviceDense, Stream, order, predict, tune};
use crate::Device;
use crate::explain::{Config, Explanation};
use crate::plan::{PlanSpgemm, PlanSpmm, PlanSpmv, accessors, no_sum};

/// A plan for sparse × dense products with one pattern of A on a GPU, made by
/// [`Device::plan_spmm`] of a matrix there.
pub struct SpmmPlan<T: Scalar, I: Index = u32, O: Index = u32> {
    inner: spmm::SpmmPlan<T, I, O>,
    explanation: Explanation,
}

impl<T: Scalar, I: Index, O: Index> SpmmPlan<T, I, O> {
    accessors!();

    /// Queues C = α·op(A)·B ⊕ β·C on `stream`, over the semiring of the plan's problem; β equal to
    /// its zero does not read C. Returns before the work is done.
    ///
    /// # Errors
    /// As [`gustav_cuda::SpmmPlan::execute`].
    pub fn execute(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceDense<T>,
        beta: T::Accum,
        c: &mut DeviceDense<T>,
        stream: &Stream,
    ) -> Result<()> {
        self.inner.execute(a, alpha, b, beta, c, stream)
    }

    /// The same with the bias of [`Problem::epilogue`](crate::Problem::epilogue): a value for every
    /// column of C, in the type of sums.
    ///
    /// # Errors
    /// As [`gustav_cuda::SpmmPlan::execute_with_bias`].
    pub fn execute_with_bias(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceDense<T>,
        beta: T::Accum,
        bias: Option<&DeviceBuffer<T::Accum>>,
        c: &mut DeviceDense<T>,
        stream: &Stream,
    ) -> Result<()> {
        self.inner.execute_with_bias(a, alpha, b, beta, bias, c, stream)
    }
}

impl<T: Scalar, I: Index, O: Index> PlanSpmm for &DeviceCsr<T, I, O> {
    type Plan = SpmmPlan<T, I, O>;

    fn plan_spmm(self, device: &Device, problem: &Problem) -> Result<Self::Plan> {
        check(device, self, problem)?;
        let mut chooser = device.chooser();
        let (mut config, mut made, mut told) = (None, None, None);
        match chooser {
            Chooser::Autotune => {
                let (timed, ordered) = tune::spmm(device, self, problem)?;
                (chooser, config) = (timed.best().chooser(), timed.best().config());
                (told, made) = (Some(timed.into()), ordered);
            }
            Chooser::Predictor => {
                let predicted = predict::spmm(device, self, problem)?;
                (chooser, config) = (predicted.chooser(), predicted.config);
                (told, made) = (Some(predicted.told), predicted.order);
            }
            _ => {}
        }
        if let (None, Some(order)) = (&made, device.order()) {
            made = Some(order::of(device, order, self, problem)?);
        }
        let order = made.as_ref().map(|(order, _)| order);
        let options = spmm::Options { chooser, config, order };
        let inner = spmm::SpmmPlan::new(self, problem, &options)?;
        let choice = inner.choice().clone().map(Config::Cuda);
        let bytes = inner.workspace_bytes();
        let explanation = Explanation::new(problem, device, None, choice, bytes).told(told);
        let explanation = Explanation { order: made.map(|(_, facts)| facts), ..explanation };
        Ok(SpmmPlan { inner, explanation })
    }
}

/// A plan for sparse × vector products with one pattern of A on a GPU, made by
/// [`Device::plan_spmv`] of a matrix there.
pub struct SpmvPlan<T: Scalar, I: Index = u32, O: Index = u32> {
    inner: spmv::SpmvPlan<T, I, O>,
    explanation: Explanation,
}

impl<T: Scalar, I: Index, O: Index> SpmvPlan<T, I, O> {
    accessors!();

    /// Queues y = α·op(A)·x ⊕ β·y on `stream`, over the semiring of the plan's problem; β equal to
    /// its zero does not read y. Returns before the work is done.
    ///
    /// # Errors
    /// As [`gustav_cuda::SpmvPlan::execute`].
    pub fn execute(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        x: &DeviceBuffer<T>,
        beta: T::Accum,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<()> {
        self.inner.execute(a, alpha, x, beta, y, stream)
    }
}

impl<T: Scalar, I: Index, O: Index> PlanSpmv for &DeviceCsr<T, I, O> {
    type Plan = SpmvPlan<T, I, O>;

    fn plan_spmv(self, device: &Device, problem: &Problem) -> Result<Self::Plan> {
        check(device, self, problem)?;
        let (options, tuned) = match device.chooser() {
            Chooser::Autotune => {
                let timed = tune::spmv(self, problem)?;
                let (chooser, config) = (timed.best().chooser(), timed.best().config());
                (spmv::Options { chooser, config }, Some(timed.into()))
            }
            chooser => (spmv::Options { chooser, ..spmv::Options::default() }, None),
        };
        let inner = spmv::SpmvPlan::new(self, problem, &options)?;
        let choice = inner.choice().clone().map(Config::CudaSpmv);
        let bytes = inner.workspace_bytes();
        let explanation = Explanation::new(problem, device, None, choice, bytes).told(tuned);
        Ok(SpmvPlan { inner, explanation })
    }
}

/// A plan for sparse × sparse products with one pattern of A and of B on a GPU, made by
/// [`Device::plan_spgemm`] of matrices there.
pub struct SpgemmPlan<T: Scalar, I: Index = u32, O: Index = u32> {
    inner: Spgemm<T, I, O>,
    explanation: Explanation,
}

enum Spgemm<T: Scalar, I: Index, O: Index> {
    Whole(Box<spgemm::SpgemmPlan<T, I, O>>),
    Masked(Box<spgemm::masked::MaskedPlan<T, I, O>>, Problem),
}

impl<T: Scalar, I: Index, O: Index> SpgemmPlan<T, I, O> {
    accessors!();

    /// Intermediate products, where the algorithm counts them.
    pub fn products(&self) -> Option<u64> {
        match &self.inner {
            Spgemm::Whole(plan) => plan.products(),
            Spgemm::Masked(..) => None,
        }
    }

    /// A new C = α·op(A)·B, over the semiring of the plan's problem, after the work queued on
    /// `stream`, which waits for it.
    ///
    /// # Errors
    /// As [`gustav_cuda::SpgemmPlan::execute`].
    pub fn execute(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceCsr<T, I, O>,
        stream: &Stream,
    ) -> Result<DeviceCsr<T, I, O>> {
        match &mut self.inner {
            Spgemm::Whole(plan) => plan.execute(a, alpha, b, stream),
            Spgemm::Masked(plan, _) => {
                let c = plan.execute(a, alpha, b, stream)?;
                // All of C may not have fitted.
                if plan.choice().algorithm != self.explanation.choice.algorithm {
                    self.explanation.choice = told(plan.choice());
                }
                Ok(c)
            }
        }
    }

    /// The same, `watch` being told after every part of C, of which there are several where memory does
    /// not suffice for all at once; [`ControlFlow::Break`] stops the rest. Waits for what it tells of.
    ///
    /// # Errors
    /// As [`gustav_cuda::SpgemmPlan::execute_watched`].
    pub fn execute_watched(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceCsr<T, I, O>,
        stream: &Stream,
        watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<DeviceCsr<T, I, O>> {
        if let Spgemm::Whole(plan) = &mut self.inner {
            return plan.execute_watched(a, alpha, b, stream, watch);
        }
        let c = self.execute(a, alpha, b, stream)?;
        stream.synchronize()?;
        // After the only part it is too late to stop.
        let _ = watch(Progress { done: 1, tiles: 1 });
        Ok(c)
    }

    /// A new C = α·op(A)·B ⊕ β·D with a sparse `d` of C's shape: C holds the union of both patterns,
    /// rows sorted.
    ///
    /// # Errors
    /// As [`gustav_cuda::SpgemmPlan::execute_add`], and [`Error::Unsupported`] under a mask.
    pub fn execute_add(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceCsr<T, I, O>,
        beta: T::Accum,
        d: &DeviceCsr<T, I, O>,
        stream: &Stream,
    ) -> Result<DeviceCsr<T, I, O>> {
        match &mut self.inner {
            Spgemm::Whole(plan) => plan.execute_add(a, alpha, b, beta, d, stream),
            Spgemm::Masked(_, problem) => Err(no_sum(problem)),
        }
    }

    /// The values of C = α·op(A)·B ⊕ β·D into an earlier result of [`SpgemmPlan::execute_add`].
    ///
    /// # Errors
    /// As [`gustav_cuda::SpgemmPlan::execute_add_into`], and [`Error::Unsupported`] under a mask.
    pub fn execute_add_into(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceCsr<T, I, O>,
        beta: T::Accum,
        d: &DeviceCsr<T, I, O>,
        c: &mut DeviceCsr<T, I, O>,
        stream: &Stream,
    ) -> Result<()> {
        match &mut self.inner {
            Spgemm::Whole(plan) => plan.execute_add_into(a, alpha, b, beta, d, c, stream),
            Spgemm::Masked(_, problem) => Err(no_sum(problem)),
        }
    }

    /// The values of C = α·op(A)·B into an earlier result of this plan: nothing symbolic is done
    /// and no memory is taken.
    ///
    /// # Errors
    /// As [`gustav_cuda::SpgemmPlan::execute_into`].
    pub fn execute_into(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceCsr<T, I, O>,
        c: &mut DeviceCsr<T, I, O>,
        stream: &Stream,
    ) -> Result<()> {
        match &mut self.inner {
            Spgemm::Whole(plan) => plan.execute_into(a, alpha, b, c, stream),
            Spgemm::Masked(plan, _) => plan.execute_into(a, alpha, b, c, stream),
        }
    }
}

impl<T: Scalar, I: Index, O: Index> PlanSpgemm for &DeviceCsr<T, I, O> {
    type Plan = SpgemmPlan<T, I, O>;

    fn plan_spgemm(self, b: Self, device: &Device, problem: &Problem) -> Result<Self::Plan> {
        check(device, self, problem)?;
        let (chooser, tuned) = match device.chooser() {
            Chooser::Autotune => {
                let timed = tune::spgemm(self, b, problem)?;
                (Chooser::Named(*timed.best()), Some(timed.into()))
            }
            chooser => (chooser, None),
        };
        let options = spgemm::Options { chooser, ..spgemm::Options::default() };
        let inner = spgemm::SpgemmPlan::new(self, b, problem, &options)?;
        let choice = inner.choice().clone().map(Config::CudaSpgemm);
        let bytes = inner.workspace_bytes();
        let explanation = Explanation::new(problem, device, None, choice, bytes).told(tuned);
        Ok(SpgemmPlan { inner: Spgemm::Whole(Box::new(inner)), explanation })
    }

    fn plan_spgemm_masked(
        self,
        b: Self,
        mask: Self,
        device: &Device,
        problem: &Problem,
    ) -> Result<Self::Plan> {
        check(device, self, problem)?;
        let options = spgemm::Options { chooser: device.chooser(), ..spgemm::Options::default() };
        let plan = spgemm::masked::MaskedPlan::new(self, b, mask, problem, &options)?;
        let (choice, bytes) = (told(plan.choice()), plan.workspace_bytes());
        let explanation = Explanation::new(problem, device, None, choice, bytes);
        Ok(SpgemmPlan { inner: Spgemm::Masked(Box::new(plan), problem.clone()), explanation })
    }
}

/// A choice under a mask.
fn told(choice: &Choice<spgemm::masked::Config>) -> Choice<Config> {
    choice.clone().map(|config| match config {
        spgemm::masked::Config::Places => Config::Masked,
        spgemm::masked::Config::Whole(config) => Config::CudaSpgemm(config),
    })
}

/// `a` is on `device`, which offers what was named.
fn check<T: Scalar, I: Index, O: Index>(
    device: &Device,
    a: &DeviceCsr<T, I, O>,
    problem: &Problem,
) -> Result<()> {
    if *device.cuda_device()? != *a.device() {
        return Err(Error::Argument {
            name: "A",
            found: "a matrix on another device".into(),
            expected: format!("one on {device}"),
        });
    }
    problem.check_dense()?;
    device.offers(problem)
}
