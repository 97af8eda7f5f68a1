//! Chooses the SpMV algorithm on a GPU, and how rows are distributed over lanes.
//!
//! The thresholds were fitted to sweeps over configurations on an H200, over the real and
//! synthetic matrices of the benchmark.

use std::ops::Range;

use gustav_core::{Problem, Result};

use crate::{Algorithm, DeviceProfile, RowLengths};

/// Least nonzeros per lane if rows have similar lengths.
const PER_LANE: f64 = 2.9;
/// Nonzeros per resident thread of the device from which the product is long.
const LONG: usize = 8;
/// Coefficient of variation of the row lengths above which rows are uneven.
const UNEVEN: f64 = 0.5;
/// Mean nonzeros from which an uneven row has two lanes, ...
const TWO_LANES: f64 = 4.5;
/// ... and four.
const FOUR_LANES: f64 = 9.0;
/// Mean nonzeros of a row from which a list of segments pays; rows of thousands have whole warps.
const LISTED: f64 = 48.0;
const LONGER: f64 = 100.0;
const LONGEST: f64 = 1000.0;
/// `even-shares` pays for these mean row lengths, from this variation on.
struct Skewed {
    /// Mean nonzeros of a row.
    means: Range<f64>,
    /// Least variation of the row lengths.
    variation: f64,
}
const SKEWED: Skewed = Skewed { means: 3.0..30.0, variation: 0.9 };
/// The same for long products.
const LONG_SKEWED: Skewed = Skewed { means: 30.0..100.0, variation: 2.0 };
/// Variation above which a few rows hold most of a matrix: each would be cut by very many
/// partitions.
const HUBS: f64 = 15.0;
/// Cost of inspecting the rows, in nonzeros and row starts of each thread of the device; ...
const INSPECTION_COST: f64 = 600.0;
/// ... and what the inspection saves of every execution, even of an empty product.
const INSPECTION_GAIN: f64 = 24.0;
/// Row starts and nonzeros of a thread of `even-shares`.
const ITEMS: u32 = 4;
/// Threads of a CTA of `even-shares`.
const THREADS: u32 = 256;
/// Resident threads of a multiprocessor that registers must allow, with values of eight bytes and with narrower ones.
const RESIDENT_8_BYTES: u32 = 1536;
const RESIDENT: u32 = 2048;
/// Rows up to this length are not cut.
const UNCUT: u32 = 32;
/// How rows in their order are cut.
struct Cut {
    /// A row with more than this many nonzeros per lane is cut.
    per_lane: u32,
    /// Most nonzeros of a part of a cut row.
    part: u32,
}
/// For a long product.
const CUT_LONG: Cut = Cut { per_lane: 32, part: 1024 };
/// For a short product, whose time is that of its longest row.
const CUT_SHORT: Cut = Cut { per_lane: 16, part: 256 };

/// A tuning configuration of `segmented`.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// Lanes that share a row or segment.
    pub lanes: u32,
    /// Nonzeros that a lane loads before it uses the first, with rows in their order.
    pub loads_in_flight: u32,
    /// Rows with more nonzeros than this are cut.
    pub longest: u32,
    /// Most nonzeros of a part of a cut row, with rows in their order.
    pub part: u32,
    /// Whether segments are taken from a list, in place of rows in their order.
    pub listed: bool,
    /// Why, in one sentence.
    pub reason: String,
}

impl Tuning {
    /// Rows in their order with `lanes` lanes each, for a long product or a short one.
    pub fn in_order(lanes: u32, long: bool) -> Self {
        let Cut { per_lane, part } = if long { CUT_LONG } else { CUT_SHORT };
        let longest = (per_lane * lanes).max(UNCUT);
        Tuning { lanes, loads_in_flight: 4, longest, part, listed: false, reason: String::new() }
    }
}

/// A tuning configuration of `even-shares`.
#[derive(Clone, Debug, PartialEq)]
pub struct EvenSharesTuning {
    /// Row starts and nonzeros for each thread.
    pub items: u32,
    /// Threads of a CTA.
    pub threads: u32,
    /// Threads of a multiprocessor that the registers of a kernel must allow.
    pub resident: u32,
    /// Why, in one sentence.
    pub reason: String,
}

/// The algorithm for `problem` on a device with `profile` whose multiprocessors hold `threads`
/// each: `even-shares` if warps would wait for a few of their rows, or if there are only a few
/// rows.
///
/// # Errors
/// Those of `rows`, which is called when inspecting the rows pays.
pub fn choose<'r>(
    problem: &Problem,
    profile: &DeviceProfile,
    threads: usize,
    rows: impl FnOnce() -> Result<&'r RowLengths>,
) -> Result<Algorithm> {
    let resident = profile.units * threads;
    let long = problem.nnz >= LONG * resident;
    let mean = problem.nnz as f64 / problem.output_rows().max(1) as f64;
    if !inspects(problem, resident) {
        return Ok(Algorithm::Segmented);
    }
    let least = if SKEWED.means.contains(&mean) {
        SKEWED.variation
    } else if long && LONG_SKEWED.means.contains(&mean) {
        LONG_SKEWED.variation
    } else if !long && mean >= LONGEST && problem.dtype.bytes() < 8 {
        UNEVEN
    } else {
        return Ok(Algorithm::Segmented);
    };
    let uneven = (least..HUBS).contains(&rows()?.variation());
    Ok(if uneven { Algorithm::EvenShares } else { Algorithm::Segmented })
}

/// Whether the expected calls repay inspecting the rows, on a device with `resident` resident
/// threads. The inspection takes about the same time for every matrix and saves about the same
/// fraction of every execution, more of a short one.
fn inspects(problem: &Problem, resident: usize) -> bool {
    let items = (problem.nnz + problem.output_rows()) as f64 / resident as f64;
    problem.calls > 1 && problem.calls as f64 * (items + INSPECTION_GAIN) >= INSPECTION_COST
}

/// The tuning of `even-shares` for `problem`, from the numbers of rows and nonzeros alone.
pub fn even_shares(problem: &Problem) -> EvenSharesTuning {
    let (items, threads) = (ITEMS, THREADS);
    let resident = if problem.dtype.bytes() == 8 { RESIDENT_8_BYTES } else { RESIDENT };
    let mean = problem.nnz as f64 / problem.output_rows().max(1) as f64;
    let work = items * threads - 4;
    let reason = format!(
        "rows of {mean:.1} nonzeros on average: partitions of {work} row starts and nonzeros"
    );
    EvenSharesTuning { items, threads, resident, reason }
}

/// The tuning of `segmented` for `problem`, as [`choose`].
///
/// # Errors
/// Those of `rows`, which is called when inspecting the rows pays.
pub fn segmented<'r>(
    problem: &Problem,
    profile: &DeviceProfile,
    threads: usize,
    rows: impl FnOnce() -> Result<&'r RowLengths>,
) -> Result<Tuning> {
    let resident = profile.units * threads;
    let mean = problem.nnz as f64 / problem.output_rows().max(1) as f64;
    let long = problem.nnz >= LONG * resident;
    let wide = problem.dtype.bytes() == 8;
    // A few rows are inspected only if they are long.
    let inspect = inspects(problem, resident) && (long || mean >= LISTED);
    let uneven = inspect && rows()?.variation() >= UNEVEN;
    let listed = inspect && mean >= LISTED && (uneven || wide && (long || mean >= LONGER));
    let tuning = if listed {
        let lanes = match (long, wide) {
            (true, _) if mean >= LONGEST => 32,
            (true, true) if mean >= LONGER && !uneven => 16,
            (true, _) => 8,
            (false, true) if mean >= LONGER => 32,
            (false, _) => 16,
        };
        let longest = if long && (mean >= LONGEST || !uneven) { 1024 } else { 256 };
        Tuning { longest, listed, ..Tuning::in_order(lanes, long) }
    } else if uneven && mean >= TWO_LANES {
        let lanes = if mean < FOUR_LANES || wide && mean < 2.0 * FOUR_LANES { 2 } else { 4 };
        let tuning = Tuning::in_order(lanes, long);
        match wide {
            true => Tuning { loads_in_flight: 1, ..tuning },
            false => Tuning { longest: 64, ..tuning },
        }
    } else {
        let few = |lanes: u32| problem.output_rows() * (lanes as usize) < resident / 2;
        let mut lanes = 1;
        while lanes < 32 && (2.0 * PER_LANE * f64::from(lanes) <= mean || few(lanes)) {
            lanes *= 2;
        }
        Tuning::in_order(lanes, long)
    };
    let kind = match (inspect, uneven) {
        (true, true) => ", uneven",
        (true, false) => ", alike",
        (false, _) => "",
    };
    let order = if listed { "in segments, long ones first" } else { "in their order" };
    let cut = tuning.longest;
    let reason = format!("rows of {mean:.1} nonzeros on average{kind}: {order}, cut beyond {cut}");
    Ok(Tuning { reason, ..tuning })
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;
    use crate::facts::row_lengths::COUNTS;

    /// The result of `rule` for rows of these lengths, repeated.
    fn ruled<R>(
        lengths: &[usize],
        times: usize,
        calls: u64,
        rule: impl FnOnce(&Problem, &DeviceProfile, &RowLengths) -> R,
    ) -> R {
        let mut counts = vec![0; COUNTS];
        for &length in lengths {
            counts[RowLengths::bin(length as u64)] += times as u64;
        }
        counts[COUNTS - 1] = lengths.iter().copied().max().unwrap_or(0) as u64;
        let (rows, nnz) = (lengths.len() * times, lengths.iter().sum::<usize>() * times);
        let rows_of = RowLengths::new(rows, nnz, counts).expect("counts");
        let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
        let problem = Problem { rows, nnz, calls, ..Problem::spmv(&eye.view()) };
        let device = DeviceProfile {
            name: "a GPU".into(),
            units: 132,
            lanes: 32,
            l2_bytes: 60 << 20,
            llc_bytes: 60 << 20,
        };
        rule(&problem, &device, &rows_of)
    }

    fn tuning(lengths: &[usize], times: usize, calls: u64) -> Tuning {
        ruled(lengths, times, calls, |problem, device, rows| {
            segmented(problem, device, 2048, || Ok(rows)).expect("a tuning")
        })
    }

    fn algorithm(lengths: &[usize], times: usize, calls: u64) -> Algorithm {
        ruled(lengths, times, calls, |problem, device, rows| {
            choose(problem, device, 2048, || Ok(rows)).expect("an algorithm")
        })
    }

    #[test]
    fn skewed_rows_are_shared_evenly() {
        let skewed = [1, 1, 2, 2, 3, 5, 9, 90];
        assert_eq!(algorithm(&skewed, 40_000, 100), Algorithm::EvenShares);
        assert_eq!(algorithm(&skewed, 40_000, 1), Algorithm::Segmented);
        assert_eq!(algorithm(&skewed, 1_000, 100), Algorithm::EvenShares);
        assert_eq!(algorithm(&skewed, 1_000, 2), Algorithm::Segmented);
        assert_eq!(algorithm(&[12, 14, 16], 100_000, 100), Algorithm::Segmented);
        let long = [10, 12, 14, 16, 20, 25, 30, 600];
        assert_eq!(algorithm(&long, 10_000, 100), Algorithm::EvenShares);
        assert_eq!(algorithm(&long, 1_000, 100), Algorithm::Segmented);
    }

    #[test]
    fn inspecting_the_rows_has_to_pay() {
        let skewed = [1, 1, 2, 2, 3, 5, 9, 90];
        assert_eq!(algorithm(&skewed, 40_000, 12), Algorithm::Segmented);
        assert_eq!(algorithm(&skewed, 40_000, 20), Algorithm::EvenShares);
        assert_eq!(algorithm(&skewed, 1_000, 20), Algorithm::Segmented);
        assert_eq!(algorithm(&skewed, 1_000, 25), Algorithm::EvenShares);
        let lengths = [3, 5, 8, 20, 900];
        assert!(!tuning(&lengths, 20_000, 4).listed);
        assert!(tuning(&lengths, 20_000, 10).listed && tuning(&lengths, 200_000, 4).listed);
    }

    #[test]
    fn a_few_long_rows_are_shared_evenly() {
        assert_eq!(algorithm(&[4_000, 40_000], 16, 100), Algorithm::EvenShares);
        assert_eq!(algorithm(&[4_000, 4_100], 16, 100), Algorithm::Segmented);
    }

    #[test]
    fn lanes_follow_the_rows() {
        assert_eq!(tuning(&[4], 1_000_000, 100).lanes, 1);
        assert_eq!(tuning(&[77], 190_000, 100).lanes, 16);
        assert_eq!(tuning(&[2, 3, 4, 40], 100_000, 100).longest, 64);
    }

    #[test]
    fn uneven_long_rows_go_by_a_list_unless_it_is_for_one_call() {
        let lengths = [3, 5, 8, 20, 900];
        assert!(tuning(&lengths, 20_000, 100).listed);
        assert!(!tuning(&lengths, 20_000, 1).listed);
        assert!(!tuning(&[60, 64], 20_000, 100).listed);
    }
}
