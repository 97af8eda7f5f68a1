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
const LONG: f64 = 28.0;
/// Products of fewer microseconds are over before many threads help, at 64 columns in f32; the
/// bound goes with this power of the width.
const BRIEF: f64 = 49.4;
const BRIEF_WIDTH: f64 = -0.25;
/// Rows may vary this much around their mean and still be taken in order.
const EVEN: f64 = 0.106;
/// Short rows are taken in order when none is longer than this.
const EVEN_SHORT: (f64, usize) = (8.06, 54);
/// Lane groups of a full chip, that many times, have no need of long flights.
const PLENTY: f64 = 4.0;
/// Long rows need no cutting when none is longer than this many times the mean.
const WHOLE: f64 = 1.85;
/// Nonzeros of a segment for every microsecond of the product.
const CUT: f64 = 1.68;
/// More of them where loads are in long flights.
const SPEED: f64 = 2.0;
/// Rows up to this many times the mean stay whole where there are many.
const ORDINARY: f64 = 0.81;
/// Rows of thousands of nonzeros are cut at this.
const HUGE_ROWS: u32 = 128;
/// Threads in parts of a full chip below which sub-groups share segments, and long whole rows; at 64
/// columns in f32, going with this power of the width.
const FILL: (f64, f64) = (1.42, 0.9);
const FILL_WIDTH: f64 = -0.5;
/// Long rows that cannot fill this part of a chip whole, however many sub-groups share one, are cut.
const STARVED: (f64, f64) = (0.25, 1024.0);
/// Parts of a row at most, where rows are cut to fill the chip: one group adds them up.
const PARTS: f64 = 512.0;
/// Nonzeros of a segment for each sub-group.
const LENGTH: f64 = 17.7;
/// Rows of fewer nonzeros on average pass through shared memory, in order and by a list.
const STAGED: (f64, f64) = (5.8, 13.0);
/// Nonzeros see rows this many times the mean where few rows hold most of the matrix.
const SKEWED: f64 = 15.0;
/// Such a matrix of shorter rows than this, on average, is dealt in even shares.
const SHORT: (f64, f64) = (4.0, 7.2);
/// Blocks of rows: the longest row in means, and the least mean.
const ALIKE: (f64, f64) = (5.3, 12.4);
/// Distinct columns per nonzero up to which sharing loads of B pays.
const SHARED: f64 = 0.668;
/// Prefer lower blocks unless a row more saves this much.
const PER_ROW: f64 = 0.053;
/// Threads of blocks, in parts of a full chip, that sharing needs; below the second, two sub-groups
/// share a block.
const BLOCKS: (f64, f64) = (0.145, 0.38);
/// Shares of `even-shares` for every lane group of a full chip.
const SHARES: f64 = 2.2;

/// How to multiply.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// `segmented`, `row-block` or `even-shares`.
    pub algorithm: Algorithm,
    /// Rows of a block, of `row-block`.
    pub height: u32,
    /// Sub-groups of lanes that share a segment or block.
    pub share: u32,
    /// Nonzeros of A loaded at once.
    pub chunk: u32,
    /// Chunks of rows of B on their way to shared memory.
    pub ahead: u32,
    /// Rows with as many nonzeros are cut; none takes whole rows in their order. Of `even-shares`,
    /// the row starts and nonzeros of a share.
    pub longest: Option<u32>,
    /// Lanes at most that share a row of B; fewer make narrower panels.
    pub lanes: u32,
    /// Vectors of a row of B that a lane holds, by preference.
    pub tiles: u32,
    /// Threads of a multiprocessor that registers must allow: fewer registers, more threads.
    pub threads: u32,
    /// Why, in one sentence.
    pub reason: String,
}

/// The way for `problem` on a device with `profile`, among `segmented`, `row-block` and
/// `even-shares`.
///
/// # Errors
/// What `rows` and `similarity` return; the first is asked when there are calls enough to pay for
/// it, the second where sharing loads could pay.
pub fn choose<'r>(
    problem: &Problem,
    profile: &DeviceProfile,
    rows: impl FnOnce() -> Result<&'r RowLengths>,
    similarity: impl FnOnce() -> Result<RowSimilarity>,
) -> Result<Way> {
    if problem.calls <= 1 {
        return Ok(even_shares(problem, profile));
    }
    let rows = rows()?;
    let mean = rows.mean_filled();
    let alike = rows.max() as f64 <= ALIKE.0 * mean && mean >= ALIKE.1;
    if alike
        && problem.columns >= 16
        && let Some(way) = row_block(problem, rows, profile, &similarity()?)
    {
        return Ok(way);
    }
    let vectors = vectors(problem);
    let short = if vectors < 64.0 { SHORT.0 } else { SHORT.1 };
    if vectors > 8.0 && mean < short && rows.mean_of_nonzeros() > SKEWED * mean {
        let reason = format!(
            "rows of {:.1} nonzeros on average, {} at most: even shares, for few rows hold much",
            rows.mean(),
            rows.max()
        );
        return Ok(Way { reason, ..even_shares(problem, profile) });
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
    if distinct > SHARED || threads < BLOCKS.0 * full {
        return None;
    }
    Some(Way {
        algorithm: Algorithm::RowBlock,
        height,
        share: if threads < BLOCKS.1 * full && height < 4 { 2 } else { 1 },
        chunk: 4,
        ahead: 0,
        longest: None,
        lanes: 32,
        tiles: 2,
        threads: if problem.columns * problem.dtype.bytes() < 512 { 768 } else { 384 },
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
    let vectors = vectors(problem);
    let width = vectors / 16.0;
    let lanes = (vectors / 2.0).clamp(1.0, 32.0);
    let most = if vectors <= 16.0 {
        8
    } else if vectors <= 32.0 {
        4
    } else {
        2
    };
    let reach = rows.filled() as f64 * lanes * f64::from(most);
    let starved = mean >= STARVED.1 && reach < STARVED.0 * full;
    let short = mean < EVEN_SHORT.0 && rows.variation() < 1.0 && rows.max() <= EVEN_SHORT.1;
    let even = !starved && (rows.variation() < EVEN || short);
    let long = mean >= LONG;
    // Rows enough to fill the chip need no long flights of loads.
    let plenty = even && rows.filled() as f64 * lanes >= PLENTY * full;
    let wide = problem.dtype.bytes() == 8;
    let brief = microseconds < BRIEF * width.powf(BRIEF_WIDTH);

    // Too few segments to fill the chip: let sub-groups share them.
    let whole = even || !starved && long && rows.max() as f64 <= WHOLE * mean;
    let cut = microseconds * CUT;
    let filling = (problem.nnz as f64 * lanes / full).max(mean / PARTS);
    let first = if starved {
        f64::from(nearest_power(filling).clamp(64, 4096))
    } else {
        f64::from(nearest_power(cut).clamp(64, 1024))
    };
    let (segments, length) = if whole {
        (rows.filled() as f64, mean)
    } else {
        (rows.filled() as f64 + problem.nnz as f64 / first, rows.mean_of_nonzeros().min(first))
    };
    let threads = segments * lanes;
    let fill = if long && whole { FILL.1 } else { FILL.0 } * full * width.powf(FILL_WIDTH);
    let fill = if vectors >= 64.0 { 1.2 * fill } else { fill };
    let mut share = 1;
    while share < most && threads * f64::from(share) < fill && length >= LENGTH * f64::from(share) {
        share *= 2;
    }
    let flights = (brief || long && !wide) && !plenty || share > 1;

    // A segment should be a small part of the product's time, and ordinary rows stay whole.
    let longest = if whole {
        (rows.max() + 1).next_power_of_two().clamp(64, 4096) as u32
    } else if starved {
        first as u32
    } else if mean > 1024.0 {
        HUGE_ROWS
    } else {
        let speed = if flights { SPEED } else { 1.0 } * f64::from(share);
        let ordinary = if threads > 0.2 * full { ORDINARY * mean } else { 0.0 };
        let most = if flights || wide { 1024 } else { 256 };
        nearest_power((cut * speed).max(ordinary)).clamp(64, most)
    };

    let at_most = if mean > 1024.0 && vectors >= 32.0 && share == 1 {
        // A few rows: panels make more of them.
        (vectors / 8.0).clamp(2.0, 16.0) as u32
    } else if even && !flights && vectors >= 32.0 {
        8
    } else if panels_pay(problem, profile) {
        16
    } else {
        32
    };
    let staged = if even { STAGED.0 } else { STAGED.1 };
    let lengths = format!("rows of {:.1} nonzeros on average, {} at most", rows.mean(), rows.max());
    let few = if share > 1 { format!(", shared by {share} sub-groups") } else { String::new() };
    Way {
        algorithm: Algorithm::Segmented,
        height: 1,
        share,
        chunk: if flights { 4 } else { 2 },
        ahead: if !flights && vectors >= 16.0 && mean < staged { 2 } else { 0 },
        longest: (!even).then_some(longest),
        lanes: at_most,
        tiles: 2,
        threads: match (flights, wide) {
            // Sub-groups of few lanes hold many tiles, and wide values fill registers.
            (true, _) if wide || share > 2 || share as f64 * vectors > 64.0 => 384,
            (true, _) => 640,
            // Wide sums need more registers.
            (false, true) => 768,
            (false, false) => 1024,
        },
        reason: if even {
            format!("{lengths}: taken whole and in order{few}")
        } else if whole {
            format!("{lengths}: taken whole, long ones first{few}")
        } else {
            format!("{lengths}: cut at {longest}, long ones first{few}")
        },
    }
}

/// The way of `even-shares`, from the numbers of rows and nonzeros alone.
pub fn even_shares(problem: &Problem, profile: &DeviceProfile) -> Way {
    let items = (problem.nnz + problem.output_rows()) as f64;
    let vectors = vectors(problem);
    // Where a row of B is short, more lanes keep the loads of a share together.
    let tiles = if vectors > 8.0 { 2 } else { 1 };
    let lanes = (vectors / f64::from(tiles)).clamp(1.0, 32.0);
    let groups = profile.units as f64 * THREADS / lanes;
    let work = nearest_power(items / groups * SHARES).clamp(32, 128);
    let mean = problem.nnz as f64 / problem.output_rows().max(1) as f64;
    Way {
        algorithm: Algorithm::EvenShares,
        height: 1,
        share: 1,
        chunk: 4,
        ahead: 0,
        longest: Some(work),
        lanes: 32,
        tiles,
        threads: if problem.dtype.bytes() == 8 { 384 } else { 640 },
        reason: format!(
            "rows of {mean:.1} nonzeros on average, not looked at for a single call: shares of \
             {work} row starts and nonzeros"
        ),
    }
}

/// Whether B is so much larger than L2 that panels of its columns pay for reading A again.
fn panels_pay(problem: &Problem, profile: &DeviceProfile) -> bool {
    let bytes = problem.inner() as f64 * (problem.columns * problem.dtype.bytes()) as f64;
    problem.columns > 128 && bytes > 2.0 * profile.l2_bytes as f64
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
        choose(&problem, &device(), || Ok(&rows_of), similar).expect("a way")
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
    fn one_call_asks_nothing_of_the_pattern() {
        let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
        let problem = Problem::spmm(&eye.view()).columns(64).calls(1);
        let unasked = || -> Result<&'static RowLengths> { unreachable!("row lengths") };
        let way = choose(&problem, &device(), unasked, || unreachable!("similarity"));
        assert_eq!(way.expect("a way").algorithm, Algorithm::EvenShares);
    }

    #[test]
    fn few_very_long_rows_are_cut_however_alike() {
        for (rows, length) in [(2, 1 << 20), (32, 1 << 17), (500, 1 << 13)] {
            for columns in [8, 64, 256] {
                let way = way(&[length], rows, columns, 1.0);
                let longest = way.longest.expect("rows are cut") as usize;
                assert!(longest < length && length / longest <= 1024, "{rows}: {way:?}");
            }
        }
        assert_eq!(way(&[1 << 13], 20_000, 64, 1.0).longest, None);
    }

    #[test]
    fn few_long_rows_are_shared() {
        let pruned = way(&[400, 420, 440], 2_000, 32, 1.0);
        assert!(pruned.share > 1, "{pruned:?}");
        assert_eq!(way(&[64], 100_000, 32, 1.0).share, 1);
    }
}
