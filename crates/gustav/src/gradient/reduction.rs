//! What the gradients of an SpMM need beside those of sums, for patterns in either memory.

use gustav_core::{Index, PatternRef, PatternView, Plans, Problem, Reduce, Result, Scalar};
use gustav_cpu::CpuScalar;

use super::mean::Mean;
use super::winners::Winners;
use crate::Device;
use crate::cuda::DevicePattern;

/// The gradient of the reduction of a product.
pub struct ReductionGradient<P> {
    pub(super) pattern: P,
    pub(super) problem: Problem,
}

/// What it takes.
pub enum ReductionPlan<'a, T: CpuScalar> {
    Sum,
    Mean(Box<Mean<T>>),
    Winners(Box<Winners<'a, T>>),
}

impl<'a, T: CpuScalar, I: Index, O: Index> Plans<ReductionGradient<PatternRef<'a, I, O>>, T>
    for Device
{
    type Plan = ReductionPlan<'a, T>;

    fn plan(&self, request: ReductionGradient<PatternRef<'a, I, O>>) -> Result<Self::Plan> {
        let ReductionGradient { pattern, problem } = request;
        Ok(match problem.reduction() {
            Reduce::Sum => ReductionPlan::Sum,
            Reduce::Mean => {
                let inverse = inverse_lengths(&pattern.view(), &problem);
                ReductionPlan::Mean(Box::new(Mean::plan(self, inverse, &problem)?))
            }
            Reduce::Max | Reduce::Min => {
                ReductionPlan::Winners(Box::new(Winners::of_host(self, pattern, &problem)?))
            }
        })
    }
}

impl<T: CpuScalar, I: Index, O: Index> Plans<ReductionGradient<DevicePattern<I, O>>, T> for Device {
    type Plan = ReductionPlan<'static, T>;

    fn plan(&self, request: ReductionGradient<DevicePattern<I, O>>) -> Result<Self::Plan> {
        let ReductionGradient { pattern, problem } = request;
        Ok(match problem.reduction() {
            Reduce::Sum => ReductionPlan::Sum,
            Reduce::Mean => {
                let inverse = inverse_lengths(&pattern.download()?.view(), &problem);
                ReductionPlan::Mean(Box::new(Mean::plan(self, inverse, &problem)?))
            }
            Reduce::Max | Reduce::Min => {
                ReductionPlan::Winners(Box::new(Winners::on_gpu(self, &pattern, &problem)?))
            }
        })
    }
}

/// One over the number of nonzeros of each row of op(A), 0 of empty ones.
fn inverse_lengths<T: Scalar, I: Index, O: Index>(
    a: &PatternView<'_, I, O>,
    problem: &Problem,
) -> Vec<T> {
    let lengths = if problem.transpose_a {
        let mut lengths = vec![0usize; a.ncols()];
        a.indices().iter().for_each(|column| lengths[column.to_usize()] += 1);
        lengths
    } else {
        (0..a.nrows()).map(|row| a.row_range(row).len()).collect()
    };
    let inverse = |length: usize| if length == 0 { 0.0 } else { 1.0 / length as f64 };
    lengths.into_iter().map(|length| T::from_f64(inverse(length))).collect()
}
