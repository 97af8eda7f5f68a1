//! Chooses the SpMM algorithm on a CPU.

use gustav_core::Problem;

use crate::{Algorithm, DeviceProfile, RowStats};

/// Fraction of row pairs with the same columns from which sharing loads of B pays.
const SAME: f64 = 0.4;
/// Mean nonzeros of a row in one tile from which tiles of B repay loading the sums once more for
/// each tile.
const PER_TILE: f64 = 48.0;
/// Rows must be cut if (nonzeros of the longest row ÷ all nonzeros) × threads exceeds this.
const LONGEST: f64 = 0.25;
/// Nonzeros up to which cutting rows costs more than it saves.
const FEW: usize = 10_000;
/// Number of threads assumed when the choice must not depend on it.
const FIXED_UNITS: usize = 16;

/// Rows of B in a tile that takes half of L2.
pub fn tile_rows(problem: &Problem, profile: &DeviceProfile) -> usize {
    let row_bytes = (problem.columns * problem.dtype.bytes()).max(1);
    (profile.l2_bytes / 2 / row_bytes).max(64)
}

/// The algorithm and the reason. `stats` are those of op(A).
pub fn choose(stats: &RowStats, problem: &Problem, profile: &DeviceProfile) -> (Algorithm, String) {
    let units = if problem.deterministic { FIXED_UNITS } else { profile.units };
    let RowStats { nnz, max_row_length, .. } = *stats;
    let cut_from = LONGEST * nnz as f64 / units as f64;
    if units > 1 && max_row_length as f64 > cut_from && nnz > FEW {
        let reason = format!(
            "the longest row has {max_row_length} of {nnz} nonzeros: rows are cut from {cut_from:.0}"
        );
        return (Algorithm::NonzeroSplit, reason);
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
    let long = match () {
        () if units <= 1 => "one thread needs no row cut".into(),
        () if nnz <= FEW => format!("{nnz} nonzeros are too few to cut rows of"),
        () => format!(
            "the longest row has {max_row_length} of {nnz} nonzeros, rows are cut from {cut_from:.0}"
        ),
    };
    let alike = match problem.columns {
        0 | 1 => "with one column no loads of B can be shared".into(),
        _ => format!(
            "{:.0}% of the rows have the columns of the next row, sharing pays from {:.0}%",
            100.0 * stats.same_as_next,
            100.0 * SAME,
        ),
    };
    (Algorithm::RowSplit, format!("{long}; {alike}"))
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;

    /// The choice for rows of 5 nonzeros and one of `longest`, on `units` threads.
    fn chosen(longest: usize, units: usize, refine: fn(Problem) -> Problem) -> (Algorithm, String) {
        let (mut offsets, mut indices) = (vec![0u32], Vec::new());
        for row in 0..4000usize {
            let length = if row == 7 { longest } else { 5 };
            indices.extend((0..length).map(|k| ((row * 13 + k) % 20_000) as u32));
            offsets.push(indices.len() as u32);
        }
        let values = vec![1.0f32; indices.len()];
        let a = Csr::new(4000, 20_000, offsets, indices, values).unwrap();
        let problem = refine(Problem::spmm(&a.view()).columns(8));
        let (l2_bytes, llc_bytes, name) = (1 << 20, 1 << 25, "a CPU".into());
        let profile = DeviceProfile { name, units, lanes: 8, l2_bytes, llc_bytes };
        choose(&RowStats::new(&a.pattern().view()), &problem, &profile)
    }

    #[test]
    fn reasons_state_numbers_and_thresholds() {
        let (algorithm, reason) = chosen(2000, 8, |p| p);
        assert_eq!(algorithm, Algorithm::NonzeroSplit);
        let words = "the longest row has 2000 of 21995 nonzeros: rows are cut from 687";
        assert_eq!(reason, words);
        let (algorithm, reason) = chosen(500, 8, |p| p);
        assert_eq!(algorithm, Algorithm::RowSplit);
        let words = "the longest row has 500 of 20495 nonzeros, rows are cut from 640; 0% of the \
                     rows have the columns of the next row, sharing pays from 40%";
        assert_eq!(reason, words);
        let (algorithm, reason) = chosen(2000, 1, |p| p);
        assert_eq!(algorithm, Algorithm::RowSplit);
        assert!(reason.starts_with("one thread needs no row cut; "), "{reason}");
    }

    #[test]
    fn a_deterministic_choice_is_the_same_for_any_number_of_threads() {
        for longest in [5, 300, 500, 1000, 2000, 20_000] {
            let first = chosen(longest, 1, |p| p.deterministic(true));
            for units in 2..=64 {
                let other = chosen(longest, units, |p| p.deterministic(true));
                assert_eq!(first, other, "{units} threads");
            }
        }
    }
}
