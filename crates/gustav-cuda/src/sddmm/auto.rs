//! The choice among this backend's own algorithms.

use gustav_core::{Problem, Result};
use gustav_plan::Algorithm;
use gustav_plan::heuristics::cuda_sddmm::{self, Tuning};

use super::catalog::Config;
use super::{b_stationary, dense_tiles, nonzero_split, row_block};
use crate::schedule::pattern::Pattern;

/// What the rules of `gustav-plan` say of a pattern, and why.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    if problem.batch > 1 {
        let multiprocessors = pattern.device().profile().multiprocessors;
        let config = Config::NonzeroSplit(nonzero_split::Config::new(problem, multiprocessors));
        return Ok((config, "batches are nonzero-split's".into()));
    }
    let profile = pattern.device().planner_profile();
    let tensor = dense_tiles::has_tensor_cores(pattern.device(), problem.dtype);
    let (rows, similarity) = (|| pattern.lengths(), || pattern.similarity());
    let tile = b_stationary::Config::new(problem).rows(problem);
    let reuse = || pattern.tile_reuse(problem.inner(), tile);
    let tuning = cuda_sddmm::choose(problem, &profile, tensor, rows, similarity, reuse)?;
    Ok(configured(pattern, problem, tuning))
}

/// Blocks of the height that shares most.
pub(super) fn row_block(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let profile = pattern.device().planner_profile();
    let tuning = cuda_sddmm::row_block(problem, &profile, &pattern.similarity()?);
    Ok(configured(pattern, problem, tuning))
}

/// The configuration of an algorithm with this tuning, and the reason.
fn configured(pattern: &Pattern<'_>, problem: &Problem, tuning: Tuning) -> (Config, String) {
    let config = match tuning.algorithm {
        Algorithm::RowBlock => {
            Config::RowBlock(row_block::Config::new(problem, tuning.height, tuning.parts))
        }
        Algorithm::BStationary => Config::BStationary(b_stationary::Config::new(problem)),
        Algorithm::DenseTiles => Config::DenseTiles(dense_tiles::Config::new()),
        _ => {
            let multiprocessors = pattern.device().profile().multiprocessors;
            Config::NonzeroSplit(nonzero_split::Config::new(problem, multiprocessors))
        }
    };
    (config, tuning.reason)
}
