//! Plans: the pattern is analysed once, the product is executed any number of times.

mod spgemm;
mod spmm;
mod spmv;

pub use spgemm::{PlanSpgemm, SpgemmPlan};
pub(crate) use spgemm::{no_sum, tune as tune_spgemm};
pub use spmm::{PlanSpmm, SpmmPlan};
pub use spmv::{PlanSpmv, SpmvPlan};

use std::time::Instant;

use gustav_core::{CsrView, Index, Operation, Problem, Result, Scalar};
use gustav_cpu::Options;
use gustav_plan::{Algorithm, Choice, Chooser, autotune};

use crate::explain::{Config, Told, facts};
use crate::{Device, Explanation};

// Timed runs of a candidate, after one to warm up.
const RUNS: usize = 3;

/// Median seconds of a run.
fn median_seconds(mut run: impl FnMut() -> Result<()>) -> Result<f64> {
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
    mut time: impl FnMut(&Options) -> Result<f64>,
) -> Result<(Options, Told)> {
    let named = |a| Options { chooser: Chooser::Named(a), ..options.clone() };
    // The triple loop is a reference: cubic time, never the fastest.
    let candidates = Algorithm::ALL
        .iter()
        .copied()
        .filter(|a| a.operations().contains(&operation) && *a != Algorithm::DenseNaive);
    let timed = autotune::timed(candidates, |a| {
        // The trials multiply by the arrays at hand.
        time(&Options { one_call: true, ..named(*a) })
    })?;
    Ok((named(*timed.best()), timed.into()))
}

/// The options to plan with, those of `tune` where the device autotunes, and what that says.
fn options(
    device: &Device,
    tune: impl FnOnce() -> Result<(Options, Told)>,
) -> Result<(Options, Option<Told>)> {
    match device.chooser() {
        Chooser::Autotune => tune().map(|(options, told)| (options, Some(told))),
        _ => Ok((device.options().clone(), None)),
    }
}

/// What a plan on the CPU says of itself; `tuned` is what the trial says.
fn explained<T: Scalar, I: Index, O: Index>(
    device: &Device,
    a: &CsrView<'_, T, I, O>,
    problem: &Problem,
    choice: &Choice<gustav_cpu::Config>,
    tuned: Option<Told>,
    workspace_bytes: usize,
) -> Explanation {
    let choice = choice.clone().map(Config::Cpu);
    Explanation::new(problem, device, facts(device, a), choice, workspace_bytes).told(tuned)
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
