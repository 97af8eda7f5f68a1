//! Which SpMM algorithm on a GPU, and how it spreads the work.
//!
//! The thresholds were fitted to sweeps over configurations on an H200, over the real and
//! synthetic matrices of the benchmark; lengths of time and numbers of threads are relative to what
//! the device holds.

use gustav_core::{Problem, Result};

use crate::{Algorithm, DeviceProfile, RowLengths, RowSimilarity};

/// Bytes per second that one multiprocessor gathers from L2, roughly.
const GATHERED: f64 = 53e9;
/// Threads of a multiprocessor that a full chip counts with.
const THREADS: f64 = 1024.0;
/// Rows with as many nonzeros are long: their loads hide each other.
const LONG: f64 = 34.0;
/// Products of fewer microseconds are over before many threads help.
const BRIEF: f64 = 18.6;
/// Rows may vary this much around their mean and still be taken in order.
const EVEN: f64 = 0.1;
/// Short rows are taken in order when none is longer than this.
const EVEN_SHORT: (f64, usize) = (8.0, 70);
/// Long rows need no cutting when none is longer than this many times the mean.
const WHOLE: f64 = 2.2;
/// Nonzeros of a segment for every microsecond of the product.
const CUT: f64 = 2.26;
/// Distinct columns per nonzero up to which sharing loads of B pays.
const SHARED: f64 = 0.62;
/// Prefer lower blocks unless a row more saves this much.
const PER_ROW: f64 = 0.029;

/// How to multiply.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// `segmented` or `row-block`.
    pub algorithm: Algorithm,
    /// Rows of a block, of `row-block`.
    pub height: u32,
    /// Sub-groups of lanes that share a segment or block.
    pub share: u32,
    /// Nonzeros of A loaded at once.
    pub chunk: u32,
    /// Chunks of rows of B on their way to shared memory.
    pub ahead: u32,
    /// Rows with as many nonzeros are cut; none takes whole rows in their order.
    pub longest: Option<u32>,
    /// Lanes at most that share a row of B; fewer make narrower panels.
    pub lanes: u32,
    /// Whether registers are kept few, for more threads.
    pub crowded: bool,
    /// Why, in one sentence.
    pub reason: String,
}

/// The way for `problem` on a device with `profile`, among `segmented` and `row-block`.
///
/// # Errors
/// What `similarity` returns; it is asked only where sharing loads could pay.
pub fn choose(
    problem: &Problem,
    rows: &RowLengths,
    profile: &DeviceProfile,
    similarity: impl FnOnce() -> Result<RowSimilarity>,
) -> Result<Way> {
    let alike = rows.max() as f64 <= 6.0 * rows.mean_filled() && rows.mean_filled() >= 11.0;
    if alike
        && problem.columns >= 16
        && problem.calls > 1
        && let Some(way) = row_block(problem, rows, profile, &similarity()?)
    {
        return Ok(way);
    }
    Ok(segmented(problem, rows, profile))
}

/// The height of block that shares most.
pub fn height(similarity: &RowSimilarity) -> u32 {
    let cost = |h: u32| similarity.distinct[h as usize - 2] + PER_ROW * f64::from(h);
    [2, 3, 4].into_iter().min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(2)
}

fn row_block(
    problem: &Problem,
    rows: &RowLengths,
    profile: &DeviceProfile,
    similarity: &RowSimilarity,
) -> Option<Way> {
    let height = height(similarity);
    let distinct = similarity.distinct[height as usize - 2];
    let lanes = (vectors(problem) / if problem.columns < 128 { 1.0 } else { 2.0 }).min(32.0);
    let threads = rows.rows() as f64 / f64::from(height) * lanes;
    let full = profile.units as f64 * THREADS;
    if distinct > SHARED || threads < 0.156 * full {
        return None;
    }
    Some(Way {
        algorithm: Algorithm::RowBlock,
        height,
        share: if threads < 0.38 * full { 2 } else { 1 },
        chunk: 4,
        ahead: 0,
        longest: None,
        lanes: 32,
        crowded: problem.columns < 128,
        reason: format!(
            "{height} neighbouring rows have {distinct:.2} distinct columns per nonzero: they \
             share loads of B"
        ),
    })
}

/// The way of `segmented`.
pub fn segmented(problem: &Problem, rows: &RowLengths, profile: &DeviceProfile) -> Way {
    let mean = rows.mean_filled();
    let full = profile.units as f64 * THREADS;
    let bytes = problem.nnz as f64 * (problem.columns * problem.dtype.bytes()) as f64;
    let microseconds = bytes / (profile.units as f64 * GATHERED) * 1e6;
    let short = mean < EVEN_SHORT.0 && rows.variation() < 1.0 && rows.max() <= EVEN_SHORT.1;
    let even = rows.variation() < EVEN || short;
    let vectors = vectors(problem);
    let lanes = (vectors / 2.0).clamp(1.0, 32.0);
    let long = mean >= LONG;
    // Rows enough to fill the chip need no long flights of loads.
    let plenty = even && rows.filled() as f64 * lanes >= 1.15 * full;
    let wide = problem.dtype.bytes() == 8;
    let flights = (microseconds < BRIEF || long && !wide) && !plenty;

    // Too few segments to fill the chip: let sub-groups share them.
    let whole = even || long && rows.max() as f64 <= WHOLE * mean;
    let first = f64::from(nearest_power(microseconds * CUT).clamp(64, 1024));
    let (segments, length) = if whole {
        (rows.filled() as f64, mean)
    } else {
        (rows.filled() as f64 + problem.nnz as f64 / first, rows.mean_of_nonzeros().min(first))
    };
    let threads = segments * lanes;
    let fill = if long && whole { 1.95 } else { 1.22 } * full;
    let most = if vectors <= 8.0 { 8 } else { 4 };
    let mut share = 1;
    while share < most && threads * f64::from(share) < fill && length >= 16.0 * f64::from(share) {
        share *= 2;
    }

    // A segment should be a small part of the product's time, and ordinary rows stay whole.
    let longest = if whole {
        (rows.max() + 1).next_power_of_two().clamp(64, 4096) as u32
    } else if mean > 1024.0 {
        256
    } else {
        let speed = if flights { 1.24 } else { 1.0 } * f64::from(share);
        let ordinary = if threads > 0.2 * full { 1.72 * mean } else { 0.0 };
        let most = if flights || wide { 1024 } else { 256 };
        nearest_power((microseconds * CUT * speed).max(ordinary)).clamp(64, most)
    };

    let b_bytes = problem.inner() as f64 * (problem.columns * problem.dtype.bytes()) as f64;
    let lanes_at_most = if even && !flights && share == 1 && vectors >= 32.0 {
        8
    } else if problem.columns > 128 && (flights || b_bytes > 2.0 * profile.l2_bytes as f64) {
        16
    } else {
        32
    };
    let lengths = format!("rows of {:.1} nonzeros on average, {} at most", rows.mean(), rows.max());
    let few = if share > 1 { format!(", shared by {share} sub-groups") } else { String::new() };
    Way {
        algorithm: Algorithm::Segmented,
        height: 1,
        share,
        chunk: if flights { 4 } else { 2 },
        ahead: if even && !flights && mean < 8.0 && vectors >= 16.0 { 2 } else { 0 },
        longest: (!even).then_some(longest),
        lanes: lanes_at_most,
        crowded: !flights,
        reason: if even {
            format!("{lengths}: taken whole and in order{few}")
        } else if whole {
            format!("{lengths}: taken whole, long ones first{few}")
        } else {
            format!("{lengths}: cut at {longest}, long ones first{few}")
        },
    }
}

/// Vectors of 16 bytes in a row of B.
fn vectors(problem: &Problem) -> f64 {
    (problem.columns * problem.dtype.bytes()) as f64 / 16.0
}

fn nearest_power(number: f64) -> u32 {
    1 << number.clamp(1.0, 1e6).log2().round() as u32
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;
    use crate::facts::row_lengths::{BINS, COUNTS, CUTS, FIRST_CUT_BITS};

    fn device() -> DeviceProfile {
        DeviceProfile {
            name: "a GPU".into(),
            units: 132,
            lanes: 32,
            l2_bytes: 60 << 20,
            llc_bytes: 60 << 20,
        }
    }

    /// The way for rows of these lengths, repeated.
    fn way(lengths: &[usize], times: usize, columns: usize, distinct: f64) -> Way {
        let mut counts = vec![0; COUNTS];
        for &length in lengths {
            counts[RowLengths::bin(length as u64)] += times as u64;
            for cut in 0..CUTS {
                let parts = length >> (FIRST_CUT_BITS as usize + cut);
                counts[BINS + cut] += (parts * times) as u64;
            }
        }
        counts[COUNTS - 1] = lengths.iter().copied().max().unwrap_or(0) as u64;
        let (rows, nnz) = (lengths.len() * times, lengths.iter().sum::<usize>() * times);
        let rows_of = RowLengths::new(rows, nnz, counts).expect("counts");
        let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
        let problem =
            Problem { rows, nnz, calls: 100, ..Problem::spmm(&eye.view()).columns(columns) };
        let similar = || Ok(RowSimilarity { distinct: [distinct.sqrt(), distinct, 0.9] });
        choose(&problem, &rows_of, &device(), similar).expect("a way")
    }

    #[test]
    fn rows_alike_go_in_order_and_skewed_ones_are_cut() {
        let grid = way(&[5], 1_000_000, 128, 1.0);
        assert_eq!((grid.algorithm, grid.longest), (Algorithm::Segmented, None));
        let graph = way(&[1, 2, 3, 3, 4, 9, 70, 900], 20_000, 128, 1.0);
        assert_eq!(graph.algorithm, Algorithm::Segmented);
        assert!(graph.longest.is_some());
    }

    #[test]
    fn similar_rows_share_loads() {
        let mesh = way(&[60, 66, 72], 20_000, 128, 0.35);
        assert_eq!((mesh.algorithm, mesh.height), (Algorithm::RowBlock, 3));
        assert_eq!(way(&[60, 66, 72], 20_000, 128, 0.9).algorithm, Algorithm::Segmented);
    }

    #[test]
    fn few_long_rows_are_shared() {
        let pruned = way(&[400, 420, 440], 2_000, 32, 1.0);
        assert!(pruned.share > 1, "{pruned:?}");
        assert_eq!(way(&[64], 100_000, 32, 1.0).share, 1);
    }
}
