//! Plans: the pattern is analysed once, the product is executed any number of times.

mod attention;
mod attention_gradients;
mod heads;
mod sddmm;
mod softmax;
mod spgemm;
mod spmm;
mod spmv;

pub use attention::{AttentionCall, AttentionPlan};
pub use attention_gradients::{
    AttentionGradients, AttentionGradientsCall, AttentionGradientsPlan, AttentionInputs,
};
pub(crate) use sddmm::queued;
pub use sddmm::{SddmmCall, SddmmPlan};
pub use softmax::{SoftmaxCall, SoftmaxPlan};
pub use spgemm::{SpgemmPlan, intermediate_products};
pub(crate) use spgemm::{no_sum, tune as tune_spgemm};
pub use spmm::SpmmPlan;
pub use spmv::SpmvPlan;

use std::time::Instant;

use gustav_core::{DenseView, Operation, Problem, Result};
use gustav_cpu::{CpuScalar, Options};
use gustav_plan::{Algorithm, Choice, Chooser, RowStats, autotune};

use crate::cuda::DeviceDense;
use crate::explain::{Config, Report};
use crate::{Device, Explanation};

// Timed runs of a candidate, after one to warm up.
const RUNS: usize = 3;

/// Median seconds of a run.
fn median_seconds(run: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
    run()?;
    let mut seconds = [0.0; RUNS];
    for s in &mut seconds {
        let start = Instant::now();
        run()?;
        *s = start.elapsed().as_secs_f64();
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[RUNS / 2])
}

/// The options that name the algorithm which `time` finds fastest, and what the trial says.
fn autotuned(
    operation: Operation,
    options: &Options,
    time: &mut dyn FnMut(&Options) -> Result<f64>,
) -> Result<(Options, Report)> {
    let named = |a| Options { chooser: Chooser::Named(a), ..options.clone() };
    // The triple loop is a reference: cubic time, never the fastest.
    let candidates = Algorithm::ALL
        .iter()
        .copied()
        .filter(|a| a.operations().contains(&operation) && *a != Algorithm::DenseNaive);
    let timed = autotune::timed(candidates, |a| time(&named(*a)))?;
    Ok((named(*timed.best()), timed.into()))
}

/// The options to plan with, those of `tune` where the device autotunes, and what that says.
fn options(
    device: &Device,
    tune: impl FnOnce() -> Result<(Options, Report)>,
) -> Result<(Options, Option<Report>)> {
    match device.chooser() {
        Chooser::Autotune => tune().map(|(options, report)| (options, Some(report))),
        _ => Ok((device.options().clone(), None)),
    }
}

/// What a plan on the CPU says of itself; `tuned` is what the trial says.
fn explained(
    device: &Device,
    facts: Option<RowStats>,
    problem: &Problem,
    choice: &Choice<gustav_cpu::Config>,
    tuned: Option<Report>,
    workspace_bytes: usize,
) -> Explanation {
    let choice = choice.clone().map(Config::Cpu);
    Explanation::new(problem, device, facts, choice, workspace_bytes).reported(tuned)
}

/// The matrix in `held`, made anew when it does not lie in memory as `m` does.
fn copy_of<'k, T: CpuScalar>(
    device: &gustav_cuda::Device,
    held: &'k mut Option<DeviceDense<T>>,
    m: &DenseView<'_, T>,
) -> Result<&'k mut DeviceDense<T>> {
    let found = held.take().filter(|d| {
        (d.nrows(), d.ncols(), d.layout()) == (m.nrows(), m.ncols(), m.layout())
            && d.leading_dimension() == m.leading_dimension()
            && m.as_slice().is_some_and(|values| values.len() == d.data().len())
    });
    let matrix = match found {
        Some(matrix) => matrix,
        None => DeviceDense::upload(device, m)?,
    };
    Ok(held.insert(matrix))
}

/// The matrix in `held`, made anew where that is needed, with the elements of `m`.
fn written<'k, T: CpuScalar>(
    device: &gustav_cuda::Device,
    held: &'k mut Option<DeviceDense<T>>,
    m: &DenseView<'_, T>,
) -> Result<&'k mut DeviceDense<T>> {
    // What goes to the GPU is one array, and padding may belong to others.
    let packed = m.as_slice().is_none().then(|| m.to_layout(m.layout())).transpose()?;
    let m = packed.as_ref().map_or(*m, |packed| packed.view());
    let on = copy_of(device, held, &m)?;
    on.data_mut().write(m.as_slice().unwrap_or_default())?;
    Ok(on)
}

/// What every plan tells about itself; each has its `explanation` and its `inner` plan.
macro_rules! accessors {
    () => {
        /// The algorithm that was chosen.
        pub fn algorithm(&self) -> gustav_plan::Algorithm {
            self.explanation.choice.algorithm
        }

        /// Why it was chosen, in one sentence.
        pub fn reason(&self) -> &str {
            &self.explanation.choice.reason
        }

        /// Algorithm, configuration, facts, reason and workspace; print it, or read its fields.
        pub fn explain(&self) -> &crate::Explanation {
            &self.explanation
        }

        /// Bytes that the plan holds besides the operands.
        pub fn workspace_bytes(&self) -> usize {
            self.explanation.workspace_bytes
        }
    };
}
pub(crate) use accessors;
