//! Plans of a GPU, chosen as the device says, and what they say of themselves.

use gustav_core::{Error, Index, Problem, Result, Scalar};
use gustav_cuda::{attention, sddmm, softmax, spmm, spmv};
use gustav_plan::Chooser;

use super::{DevicePattern, order, predict, tune};
use crate::Device;
use crate::explain::{Config, Explanation};

/// The plan of `problem` for a pattern on `device`.
pub(crate) fn plan_spmm<T: Scalar, I: Index, O: Index>(
    device: &Device,
    a: &DevicePattern<I, O>,
    problem: &Problem,
) -> Result<(spmm::SpmmPlan<T>, Explanation)> {
    let problem = &check::<T, I, O>(device, a, problem)?;
    let mut chooser = device.chooser();
    let (mut config, mut made, mut report) = (None, None, None);
    match chooser {
        Chooser::Autotune => {
            let (timed, ordered) = tune::spmm::<T, I, O>(device, a, problem)?;
            (chooser, config) = (timed.best().chooser(), timed.best().config());
            (report, made) = (Some(timed.into()), ordered);
        }
        Chooser::Predictor => {
            let predicted = predict::spmm::<T, I, O>(device, a, problem)?;
            (chooser, config) = (predicted.chooser(), predicted.config);
            (report, made) = (Some(predicted.report), predicted.order);
        }
        _ => {}
    }
    if let (None, Some(order)) = (&made, device.order()) {
        made = Some(order::of(device, order, a, problem)?);
    }
    let order = made.as_ref().map(|(order, _)| order);
    let options = spmm::Options { chooser, config, order };
    let plan = spmm::SpmmPlan::new(a, problem, &options)?;
    let choice = plan.choice().clone().map(Config::Cuda);
    let bytes = plan.workspace_bytes();
    let explanation = Explanation::new(problem, device, None, choice, bytes).reported(report);
    Ok((plan, Explanation { order: made.map(|(_, facts)| facts), ..explanation }))
}

/// The same for a vector.
pub(crate) fn plan_spmv<T: Scalar, I: Index, O: Index>(
    device: &Device,
    a: &DevicePattern<I, O>,
    problem: &Problem,
) -> Result<(spmv::SpmvPlan<T>, Explanation)> {
    let problem = &check::<T, I, O>(device, a, problem)?;
    let (options, report) = match device.chooser() {
        Chooser::Autotune => {
            let timed = tune::spmv::<T, I, O>(a, problem)?;
            let (chooser, config) = (timed.best().chooser(), timed.best().config());
            (spmv::Options { chooser, config }, Some(timed.into()))
        }
        chooser => (spmv::Options { chooser, ..spmv::Options::default() }, None),
    };
    let plan = spmv::SpmvPlan::new(a, problem, &options)?;
    let choice = plan.choice().clone().map(Config::CudaSpmv);
    let bytes = plan.workspace_bytes();
    let explanation = Explanation::new(problem, device, None, choice, bytes).reported(report);
    Ok((plan, explanation))
}

/// The same for a dense product at the nonzeros.
pub(crate) fn plan_sddmm<T: Scalar, I: Index, O: Index>(
    device: &Device,
    pattern: &DevicePattern<I, O>,
    problem: &Problem,
) -> Result<(sddmm::SddmmPlan<T>, Explanation)> {
    let problem = &check::<T, I, O>(device, pattern, problem)?;
    let (options, report) = match device.chooser() {
        Chooser::Autotune => {
            let timed = tune::sddmm::<T, I, O>(pattern, problem)?;
            let (chooser, config) = (timed.best().chooser(), timed.best().config());
            (sddmm::Options { chooser, config }, Some(timed.into()))
        }
        chooser => (sddmm::Options { chooser, ..sddmm::Options::default() }, None),
    };
    let plan = sddmm::SddmmPlan::new(pattern, problem, &options)?;
    let choice = plan.choice().clone().map(Config::CudaSddmm);
    let bytes = plan.workspace_bytes();
    let explanation = Explanation::new(problem, device, None, choice, bytes).reported(report);
    Ok((plan, explanation))
}

/// The same for plans whose options are the chooser alone: `$plan` with the explanation `$config`.
macro_rules! plain {
    ($(#[$doc:meta])* $name:ident, $module:ident::$plan:ident, $config:ident) => {
        $(#[$doc])*
        pub(crate) fn $name<T: Scalar, I: Index, O: Index>(
            device: &Device,
            pattern: &DevicePattern<I, O>,
            problem: &Problem,
        ) -> Result<($module::$plan<T>, Explanation)> {
            let problem = &check::<T, I, O>(device, pattern, problem)?;
            let options = $module::Options { chooser: device.chooser(), config: None };
            let plan = $module::$plan::new(pattern, problem, &options)?;
            let choice = plan.choice().clone().map(Config::$config);
            let bytes = plan.workspace_bytes();
            Ok((plan, Explanation::new(problem, device, None, choice, bytes)))
        }
    };
}

plain!(
    /// The same for an attention.
    plan_attention, attention::AttentionPlan, CudaAttention
);
plain!(
    /// The same for the gradients of an attention.
    plan_attention_gradients, attention::AttentionGradientsPlan, CudaAttention
);
plain!(
    /// The same for a softmax.
    plan_softmax, softmax::SoftmaxPlan, CudaSoftmax
);

/// `problem` with the types of the pattern and of `T`, if the pattern is on `device` and that
/// offers what was named.
pub(super) fn check<T: Scalar, I: Index, O: Index>(
    device: &Device,
    a: &DevicePattern<I, O>,
    problem: &Problem,
) -> Result<Problem> {
    if *device.cuda_device()? != *a.device() {
        return Err(Error::Argument {
            name: "A",
            found: "a pattern on another device".into(),
            expected: format!("one on {device}"),
        });
    }
    problem.check_a(a.nrows(), a.ncols(), a.nnz())?;
    let problem = problem.typed::<T, I, O>();
    problem.check_dense()?;
    device.offers(&problem)?;
    Ok(problem)
}
