//! The choice among this backend's own algorithms.

use gustav_core::{Problem, Result};
use gustav_plan::Algorithm;
use gustav_plan::heuristics::cuda_spmm;

use super::catalog::Config;
use super::pattern::Pattern;
use super::{even_shares, row_block, segmented, tensor};

/// What the rules of `gustav-plan` say of a pattern, and why.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let profile = pattern.device().planner_profile();
    let similarity = || pattern.similarity();
    let tensor = tensor::is_exact(pattern.device(), problem);
    let way = cuda_spmm::choose(problem, &profile, tensor, || pattern.lengths(), similarity)?;
    let config = match way.algorithm {
        Algorithm::RowBlock => {
            Config::RowBlock(row_block::Config::new(problem, way.height, way.share, way.threads))
        }
        Algorithm::Tensor => Config::Tensor(tensor::Config::new(problem, way.share, way.threads)),
        Algorithm::EvenShares => Config::EvenShares(even_shares::Config::new(problem, &way)),
        _ => Config::Segmented(segmented::Config::new(problem, &way)),
    };
    Ok((config, way.reason))
}
