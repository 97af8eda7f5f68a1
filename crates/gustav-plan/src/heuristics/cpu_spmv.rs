//! Chooses the SpMV algorithm on a CPU.

use gustav_core::{DType, IndexType, Problem, Semiring};

use crate::{Algorithm, DeviceProfile, RowStats};

/// Expected calls from which compressing the column indices pays. Compression takes as long as 10
/// to 60 executions and saves a tenth to two thirds of each.
const COMPRESS_FROM: u64 = 100;
/// Lanes of f32 of vectors with masks, those of AVX-512. Encodings that need masks save work as well as bytes.
const MASKED_LANES: usize = 16;
/// Largest ratio of the longest row to the mean with which equal numbers of whole rows balance the
/// threads.
const EVEN: f64 = 4.0;

/// The algorithm and the reason.
pub fn choose(stats: &RowStats, problem: &Problem, profile: &DeviceProfile) -> (Algorithm, String) {
    if problem.transpose_a {
        return (Algorithm::Csb, "its blocks multiply as Aᵀ without writing to shared rows".into());
    }
    let vectors = matches!(problem.dtype, DType::F32 | DType::F64)
        && problem.semiring == Semiring::PlusTimes
        && problem.index_type == IndexType::U32
        && problem.cols <= i32::MAX as usize;
    // Bytes are worth saving where they come from memory.
    let bytes = stats.nnz * (problem.dtype.bytes() + problem.index_type.bytes());
    let saves = profile.lanes >= MASKED_LANES || bytes > profile.llc_bytes;
    if vectors && saves && problem.calls >= COMPRESS_FROM {
        let reason = format!("{} calls repay the compression of the column indices", problem.calls);
        return (Algorithm::CompressedIndex, reason);
    }
    let (mean, max) = (stats.mean_row_length, stats.max_row_length);
    if max as f64 <= EVEN * mean.max(1.0) {
        let reason = format!("no row is longer than {EVEN} times the mean of {mean:.1} entries");
        return (Algorithm::RowSplit, reason);
    }
    if stats.empty_rows * 4 > stats.rows {
        let reason = format!("{} of {} rows are empty", stats.empty_rows, stats.rows);
        return (Algorithm::MergePath, reason);
    }
    let reason = format!("the longest row, of {max} entries, is far above the mean of {mean:.1}");
    (Algorithm::NonzeroSplit, reason)
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;

    fn chosen(lengths: &[usize], refine: fn(Problem) -> Problem) -> Algorithm {
        chosen_on(MASKED_LANES, lengths, refine)
    }

    fn chosen_on(lanes: usize, lengths: &[usize], refine: fn(Problem) -> Problem) -> Algorithm {
        let (l2_bytes, llc_bytes) = (1 << 10, 1 << 12);
        let profile = DeviceProfile { name: "CPU".into(), units: 1, lanes, l2_bytes, llc_bytes };
        let (mut offsets, mut indices) = (vec![0u32], Vec::new());
        for &length in lengths {
            indices.extend(0..length as u32);
            offsets.push(indices.len() as u32);
        }
        let values = vec![1.0f32; indices.len()];
        let a = Csr::new(lengths.len(), 1000, offsets, indices, values).unwrap();
        let problem = refine(Problem::spmv(&a.view()));
        let stats = RowStats::new(&a.pattern().view());
        let (algorithm, reason) = choose(&stats, &problem, &profile);
        assert!(!reason.is_empty());
        algorithm
    }

    #[test]
    fn row_lengths_and_calls_decide() {
        assert_eq!(chosen(&[5; 40], |p| p), Algorithm::RowSplit);
        let mut hub = [5; 40];
        hub[7] = 900;
        assert_eq!(chosen(&hub, |p| p), Algorithm::NonzeroSplit);
        let mut empty = [0; 40];
        empty[7] = 900;
        assert_eq!(chosen(&empty, |p| p), Algorithm::MergePath);
        assert_eq!(chosen(&hub, |p| p.calls(1000)), Algorithm::CompressedIndex);
        // In the caches, and not.
        assert_eq!(chosen_on(8, &[5; 40], |p| p.calls(1000)), Algorithm::RowSplit);
        assert_eq!(chosen_on(8, &hub, |p| p.calls(1000)), Algorithm::CompressedIndex);
        assert_eq!(chosen(&[5; 40], |p| p.transpose_a(true)), Algorithm::Csb);
        let min_plus = |p: Problem| p.calls(1000).semiring(Semiring::MinPlus);
        assert_eq!(chosen(&hub, min_plus), Algorithm::NonzeroSplit);
    }
}
