//! Chooses the SpMM algorithm on a CPU.

use gustav_core::Problem;

use crate::cost::CpuParameters;
use crate::cost::cpu_spmm::Work;
use crate::{Algorithm, DeviceProfile, RowStats};

/// The algorithms that the [cost model](crate::cost) chooses among: every product with rows of B can be computed by
/// each.
pub const CANDIDATES: [Algorithm; 4] =
    [Algorithm::RowSplit, Algorithm::NonzeroSplit, Algorithm::RowBlock, Algorithm::ColumnPanel];

/// Number of threads assumed when the choice must not depend on it; the parameters are of two.
const FIXED_UNITS: usize = 16;

/// Rows of B in a tile that takes half of L2.
pub fn tile_rows(problem: &Problem, profile: &DeviceProfile) -> usize {
    let row_bytes = (problem.columns * problem.dtype.bytes()).max(1);
    (profile.l2_bytes / 2 / row_bytes).max(64)
}

/// The product as the cost model sees it; `stats` are those of op(A).
pub fn work<'a>(stats: &'a RowStats, problem: &'a Problem, profile: &'a DeviceProfile) -> Work<'a> {
    let threads = if problem.deterministic { FIXED_UNITS } else { profile.units };
    let (rates, tile) = (CpuParameters::of_cpus().rates, tile_rows(problem, profile));
    Work { problem, stats, profile, threads, rates, tile }
}

/// The algorithm with the least time by the cost model, and the reason. `stats` are those of op(A).
pub fn choose(stats: &RowStats, problem: &Problem, profile: &DeviceProfile) -> (Algorithm, String) {
    let work = work(stats, problem, profile);
    let (parameters, bytes) = (CpuParameters::of_cpus().spmm.fitted(), problem.dtype.bytes());
    let predicted = |algorithm: Algorithm| {
        Some((algorithm, work.bounds(algorithm)?.predict(parameters, bytes)))
    };
    let mut ranked: Vec<_> = CANDIDATES.into_iter().filter_map(predicted).collect();
    ranked.sort_by(|a, b| a.1.us.total_cmp(&b.1.us));
    let rows = format!(
        "rows of {:.1} nonzeros on average, {} at most",
        stats.mean_row_length, stats.max_row_length
    );
    match &ranked[..] {
        [(best, time), (next, later), ..] => {
            (*best, format!("{rows}: {}", time.beside(Some((*next, later)))))
        }
        _ => (Algorithm::RowSplit, rows),
    }
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
    fn a_row_that_outlasts_the_others_is_cut_between_threads() {
        let (algorithm, reason) = chosen(500_000, 8, |p| p);
        assert_eq!(algorithm, Algorithm::NonzeroSplit);
        assert!(reason.contains("500000 at most: predicted at "), "{reason}");
        let (algorithm, _) = chosen(5, 1, |p| p);
        assert_ne!(algorithm, Algorithm::ColumnPanel);
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
