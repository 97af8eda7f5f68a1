//! The plan of C = α·op(A)·B ⊕ β·C with every operand in a GPU's memory.

use gustav_core::{Error, Index, Operation, Problem, Result, Scalar};
use gustav_cuda::Options;
use gustav_plan::Chooser;

use super::{DeviceCsr, DeviceDense, Stream, tune};
use crate::Device;
use crate::explain::{Config, Explanation};
use crate::plan::{PlanSpmm, accessors};

/// A plan for sparse × dense products with one pattern of A on a GPU, made by
/// [`Device::plan_spmm`] of a matrix there. For a problem of sparse × vector, x and y are dense
/// matrices of one column.
pub struct SpmmPlan<T: Scalar, I: Index = u32, O: Index = u32> {
    inner: gustav_cuda::SpmmPlan<T, I, O>,
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
}

impl<T: Scalar, I: Index, O: Index> PlanSpmm for &DeviceCsr<T, I, O> {
    type Plan = SpmmPlan<T, I, O>;

    fn plan_spmm(self, device: &Device, problem: &Problem) -> Result<Self::Plan> {
        if *device.cuda_device()? != *self.device() {
            return Err(Error::Argument {
                name: "A",
                found: "a matrix on another device".into(),
                expected: format!("one on {device}"),
            });
        }
        device.offers(problem)?;
        // The operation that was asked for stands in the explanation.
        let (asked, problem) = (problem, &as_spmm(problem));
        let (options, tuned) = if device.chooser() == Chooser::Autotune {
            let (options, reason) = tune::spmm(self, problem)?;
            (options, Some(reason))
        } else {
            (Options { chooser: device.chooser(), ..Options::default() }, None)
        };
        let inner = gustav_cuda::SpmmPlan::new(self, problem, &options)?;
        let mut choice = inner.choice().clone();
        choice.reason = tuned.unwrap_or(choice.reason);
        if asked.operation == Operation::Spmv {
            choice.reason = format!("as a product with one column: {}", choice.reason);
        }
        let explanation = Explanation::new(
            asked,
            device,
            None,
            choice.map(Config::Cuda),
            inner.workspace_bytes(),
        );
        Ok(SpmmPlan { inner, explanation })
    }
}

/// `problem` with a vector as a matrix of one column.
fn as_spmm(problem: &Problem) -> Problem {
    match problem.operation {
        Operation::Spmv => Problem { operation: Operation::Spmm, columns: 1, ..problem.clone() },
        _ => problem.clone(),
    }
}
