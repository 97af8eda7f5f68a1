//! The algorithms that support row orders. C is in the caller's order.

use gustav_core::{Problem, Result, validate};
use gustav_plan::{Algorithm, RowOrder};

use super::unsupported;

/// Algorithms that support other row orders than the stored one.
const ALGORITHMS: [Algorithm; 2] = [Algorithm::OutputStationary, Algorithm::Segmented];

/// Whether `algorithm` supports other row orders than the stored one.
pub fn takes_orders(algorithm: Algorithm) -> bool {
    ALGORITHMS.contains(&algorithm)
}

/// Checks that the row order fits the matrix, and that the algorithm supports it.
///
/// # Errors
/// [`Error::Length`], [`Error::Unsupported`].
pub(crate) fn check(problem: &Problem, algorithm: Algorithm, order: &RowOrder) -> Result<()> {
    validate::length("rows of the order", problem.output_rows(), order.rows())?;
    if takes_orders(algorithm) {
        return Ok(());
    }
    let backend = format!("{algorithm} with the row order {}", order.order());
    let nearest = ALGORITHMS.map(Algorithm::name).join(", ");
    Err(unsupported(problem, &backend, "it takes rows as they are stored", &nearest))
}
