//! Which SpMM algorithm on a CPU.

use gustav_core::Problem;

use crate::{Algorithm, DeviceProfile, RowStats};

/// Share of row pairs with the same columns from which sharing loads of B pays.
const SAME: f64 = 0.4;
/// Nonzeros of a row in one tile from which tiles of B pay for fetching the sums again.
const PER_TILE: f64 = 48.0;
/// Part of all nonzeros in one row, times the number of threads, from which rows must be cut.
const LONGEST: f64 = 0.25;

/// Rows of B in a tile that takes half of L2.
pub fn tile_rows(problem: &Problem, profile: &DeviceProfile) -> usize {
    let row_bytes = (problem.columns * problem.dtype.bytes()).max(1);
    (profile.l2_bytes / 2 / row_bytes).max(64)
}

/// The algorithm and the reason. `stats` are those of op(A).
pub fn choose(stats: &RowStats, problem: &Problem, profile: &DeviceProfile) -> (Algorithm, String) {
    let longest = stats.max_row_length as f64 * profile.units as f64 / stats.nnz.max(1) as f64;
    if profile.units > 1 && longest > LONGEST && stats.nnz > 10_000 {
        return (
            Algorithm::NonzeroSplit,
            format!(
                "the longest row has {} of {} nonzeros: rows must be cut",
                stats.max_row_length, stats.nnz
            ),
        );
    }
    let tile = tile_rows(problem, profile);
    let per_tile = stats.mean_row_length * tile as f64 / stats.mean_row_span.max(1.0);
    if stats.mean_row_span > 1.5 * tile as f64 && per_tile >= PER_TILE {
        return (
            Algorithm::ColumnPanel,
            format!(
                "a row spans {:.0} rows of B on average, L2 holds {tile}, and {per_tile:.0} nonzeros of a row fall into one tile",
                stats.mean_row_span
            ),
        );
    }
    if stats.same_as_next >= SAME && problem.columns > 1 {
        return (
            Algorithm::RowBlock,
            format!(
                "{:.0}% of the rows have the columns of the next row",
                100.0 * stats.same_as_next
            ),
        );
    }
    (
        Algorithm::RowSplit,
        "no row is long enough to be cut, and none has its neighbour's columns".into(),
    )
}
