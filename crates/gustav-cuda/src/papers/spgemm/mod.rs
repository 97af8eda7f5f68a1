//! SpGEMM, after Chen et al. (2025).

pub mod dense_naive;
pub(crate) mod dense_rows;
pub mod pipeline;
pub mod shared_row;

use gustav_core::{Operation, Problem, Result};
use gustav_plan::Algorithm;

/// Checks that the paper of `algorithm` defines `problem`.
pub(crate) fn supports(problem: &Problem, algorithm: Algorithm) -> Result<()> {
    super::supports(problem, algorithm, Operation::Spgemm, super::ROW_MAJOR, Algorithm::Binned)
}
