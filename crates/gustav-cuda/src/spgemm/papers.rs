//! What the GPU kernels of Chen et al. (2025) take: f32 and f64, u32 indices, plus-times, A as
//! stored.

use gustav_core::{Operation, Problem, Result};
use gustav_plan::Algorithm;

/// Refuses what the source of `algorithm` does not define.
pub(super) fn supports(problem: &Problem, algorithm: Algorithm) -> Result<()> {
    use crate::spmm::papers::{ROW_MAJOR, supports};
    supports(problem, algorithm, Operation::Spgemm, ROW_MAJOR, Algorithm::Binned)
}
