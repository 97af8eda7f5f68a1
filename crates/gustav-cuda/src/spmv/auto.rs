//! The choice among this backend's own algorithms.

use gustav_core::{Problem, Result};
use gustav_plan::heuristics::cuda_spmv;

use super::catalog::Config;
use crate::schedule::pattern::Pattern;

/// The choice of the rules of `gustav-plan` for a pattern, and the reason.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let device = pattern.device();
    let threads = device.profile().threads_per_multiprocessor;
    let profile = device.planner_profile();
    let algorithm = cuda_spmv::choose(problem, &profile, threads, || pattern.lengths())?;
    Config::choose(algorithm, pattern, problem)
}
