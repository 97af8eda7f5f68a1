//! Which SpMV algorithm on a CPU.

use gustav_core::Problem;

use crate::{Algorithm, RowStats};

/// The algorithm and the reason.
pub fn choose(stats: &RowStats, _problem: &Problem) -> (Algorithm, String) {
    let empty = stats.empty_rows * 4 > stats.rows;
    if empty {
        return (Algorithm::MergePath, "more than a quarter of the rows is empty".into());
    }
    (Algorithm::NonzeroSplit, "every thread gets the same number of nonzeros".into())
}
