//! Chooses the SpGEMM algorithm on a CPU.

use gustav_core::Problem;

use crate::Algorithm;

/// The algorithm and the reason, from the number of intermediate products.
///
/// The algorithms of Chen et al. are baselines and never chosen here; `gustavson` chooses its
/// accumulator row by row.
pub fn choose(problem: &Problem, products: u64) -> (Algorithm, String) {
    let rows = problem.output_rows().max(1);
    let reason = format!(
        "{:.1} intermediate products in a mean row of {} columns: each row picks its accumulator",
        products as f64 / rows as f64,
        problem.columns,
    );
    (Algorithm::Gustavson, reason)
}
