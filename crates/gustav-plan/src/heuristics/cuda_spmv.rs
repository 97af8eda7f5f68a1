//! How SpMV spreads the rows of a matrix over the lanes of a GPU.
//!
//! The thresholds were fitted to sweeps over configurations on an H200, over the real and
//! synthetic matrices of the benchmark.

use std::ops::Range;

use gustav_core::{Problem, Result};

use crate::{Algorithm, DeviceProfile, RowLengths};

/// Nonzeros that a lane should have at least, where rows are alike.
const PER_LANE: f64 = 2.9;
/// Nonzeros for every thread of the chip from which the product is long.
const LONG: usize = 8;
/// Rows that vary more than this around their mean are uneven.
const UNEVEN: f64 = 0.5;
/// Means from which rows get two lanes, then four, where they are uneven.
const MORE: (f64, f64) = (4.5, 9.0);
/// Mean from which a list of segments pays for being read; rows of thousands take whole warps.
const LISTED: f64 = 48.0;
const LONGER: f64 = 100.0;
const LONGEST: f64 = 1000.0;
/// Mean row lengths of which even shares pay, from this variation on: of any product, and of a long one
/// where rows are long.
const SKEWED: (Range<f64>, f64) = (3.0..30.0, 0.9);
const LONG_SKEWED: (Range<f64>, f64) = (30.0..100.0, 2.0);
/// A few rows that hold most of a matrix vary more than this: each would be in very many shares.
const HUBS: f64 = 15.0;
/// What looking at the rows costs, and what every execution of a product without work gains by it, both
/// as nonzeros and row starts that each thread of the chip takes.
const LOOK: (f64, f64) = (600.0, 24.0);
/// Nonzeros of a thread, threads of a CTA and of a multiprocessor, of shares of values of eight bytes and
/// of narrower ones.
const WIDE: (u32, u32, u32) = (4, 256, 1536);
const NARROW: (u32, u32, u32) = (4, 256, 2048);
/// Rows up to this length are not cut.
const UNCUT: u32 = 32;
/// Nonzeros for each lane of a row beyond which it is cut, and of a part of it, of a short product
/// and of a long one: short ones end with their longest row, so that it is cut sooner.
const CUT: [(u32, u32); 2] = [(16, 256), (32, 1024)];

/// How to multiply.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// Lanes that share a row or segment.
    pub lanes: u32,
    /// Nonzeros of a lane that are read before the first is used, of rows in their order.
    pub ahead: u32,
    /// Rows with more nonzeros are cut.
    pub longest: u32,
    /// Most nonzeros of a part of a cut row, of rows in their order.
    pub part: u32,
    /// Segments in the order of a list, not rows in theirs.
    pub listed: bool,
    /// Why, in one sentence.
    pub reason: String,
}

impl Way {
    /// Rows in their order, `lanes` each, for a long product or a short one.
    pub fn in_order(lanes: u32, long: bool) -> Self {
        let (cut, part) = CUT[usize::from(long)];
        let longest = (cut * lanes).max(UNCUT);
        Way { lanes, ahead: 4, longest, part, listed: false, reason: String::new() }
    }
}

/// The shares of `even-shares`.
#[derive(Clone, Debug, PartialEq)]
pub struct Shares {
    /// Row starts and nonzeros for each thread.
    pub items: u32,
    /// Threads of a CTA.
    pub threads: u32,
    /// Threads of a multiprocessor that the registers of a kernel must allow.
    pub resident: u32,
    /// Why, in one sentence.
    pub reason: String,
}

/// The algorithm for `problem` on a device with `profile` whose multiprocessors hold `threads` each:
/// `even-shares` where a warp of rows would wait for a few of them, or where a few rows are all there is.
///
/// # Errors
/// What `rows` returns; it is asked when a look at the rows pays.
pub fn choose<'r>(
    problem: &Problem,
    profile: &DeviceProfile,
    threads: usize,
    rows: impl FnOnce() -> Result<&'r RowLengths>,
) -> Result<Algorithm> {
    let resident = profile.units * threads;
    let long = problem.nnz >= LONG * resident;
    let mean = problem.nnz as f64 / problem.output_rows().max(1) as f64;
    if !looks(problem, resident) {
        return Ok(Algorithm::Segmented);
    }
    let least = if SKEWED.0.contains(&mean) {
        SKEWED.1
    } else if long && LONG_SKEWED.0.contains(&mean) {
        LONG_SKEWED.1
    } else if !long && mean >= LONGEST && problem.dtype.bytes() < 8 {
        UNEVEN
    } else {
        return Ok(Algorithm::Segmented);
    };
    let uneven = (least..HUBS).contains(&rows()?.variation());
    Ok(if uneven { Algorithm::EvenShares } else { Algorithm::Segmented })
}

/// Whether the expected calls gain more by a plan for the rows than the plan costs, on a chip that holds
/// `resident` threads: it takes about the same time for every matrix, and gains about the same part of
/// an execution, of a short one more.
fn looks(problem: &Problem, resident: usize) -> bool {
    let items = (problem.nnz + problem.output_rows()) as f64 / resident as f64;
    problem.calls > 1 && problem.calls as f64 * (items + LOOK.1) >= LOOK.0
}

/// The shares of `even-shares` for `problem`, from the numbers of rows and nonzeros alone.
pub fn even_shares(problem: &Problem) -> Shares {
    let (items, threads, resident) = if problem.dtype.bytes() == 8 { WIDE } else { NARROW };
    let mean = problem.nnz as f64 / problem.output_rows().max(1) as f64;
    let share = items * threads - 4;
    let reason =
        format!("rows of {mean:.1} nonzeros on average: shares of {share} row starts and nonzeros");
    Shares { items, threads, resident, reason }
}

/// The way of `segmented` for `problem`, as [`choose`].
///
/// # Errors
/// What `rows` returns; it is asked when a look at the rows pays.
pub fn segmented<'r>(
    problem: &Problem,
    profile: &DeviceProfile,
    threads: usize,
    rows: impl FnOnce() -> Result<&'r RowLengths>,
) -> Result<Way> {
    let resident = profile.units * threads;
    let mean = problem.nnz as f64 / problem.output_rows().max(1) as f64;
    let long = problem.nnz >= LONG * resident;
    let wide = problem.dtype.bytes() == 8;
    // Few rows are worth a look only where they are long.
    let look = looks(problem, resident) && (long || mean >= LISTED);
    let uneven = look && rows()?.variation() >= UNEVEN;
    let listed = look && mean >= LISTED && (uneven || wide && (long || mean >= LONGER));
    let way = if listed {
        let lanes = match (long, wide) {
            (true, _) if mean >= LONGEST => 32,
            (true, true) if mean >= LONGER && !uneven => 16,
            (true, _) => 8,
            (false, true) if mean >= LONGER => 32,
            (false, _) => 16,
        };
        let longest = if long && (mean >= LONGEST || !uneven) { 1024 } else { 256 };
        Way { longest, listed, ..Way::in_order(lanes, long) }
    } else if uneven && mean >= MORE.0 {
        let lanes = if mean < MORE.1 || wide && mean < 2.0 * MORE.1 { 2 } else { 4 };
        let way = Way::in_order(lanes, long);
        match wide {
            true => Way { ahead: 1, ..way },
            false => Way { longest: 64, ..way },
        }
    } else {
        let few = |lanes: u32| problem.output_rows() * (lanes as usize) < resident / 2;
        let mut lanes = 1;
        while lanes < 32 && (2.0 * PER_LANE * f64::from(lanes) <= mean || few(lanes)) {
            lanes *= 2;
        }
        Way::in_order(lanes, long)
    };
    let kind = match (look, uneven) {
        (true, true) => ", uneven",
        (true, false) => ", alike",
        (false, _) => "",
    };
    let order = if listed { "in segments, long ones first" } else { "in their order" };
    let cut = way.longest;
    let reason = format!("rows of {mean:.1} nonzeros on average{kind}: {order}, cut beyond {cut}");
    Ok(Way { reason, ..way })
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;
    use crate::facts::row_lengths::COUNTS;

    /// What `ask` says of rows of these lengths, repeated.
    fn asked<R>(
        lengths: &[usize],
        times: usize,
        calls: u64,
        ask: impl FnOnce(&Problem, &DeviceProfile, &RowLengths) -> R,
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
        ask(&problem, &device, &rows_of)
    }

    fn way(lengths: &[usize], times: usize, calls: u64) -> Way {
        asked(lengths, times, calls, |problem, device, rows| {
            segmented(problem, device, 2048, || Ok(rows)).expect("a way")
        })
    }

    fn algorithm(lengths: &[usize], times: usize, calls: u64) -> Algorithm {
        asked(lengths, times, calls, |problem, device, rows| {
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
    fn a_look_at_the_rows_has_to_pay() {
        let skewed = [1, 1, 2, 2, 3, 5, 9, 90];
        assert_eq!(algorithm(&skewed, 40_000, 12), Algorithm::Segmented);
        assert_eq!(algorithm(&skewed, 40_000, 20), Algorithm::EvenShares);
        assert_eq!(algorithm(&skewed, 1_000, 20), Algorithm::Segmented);
        assert_eq!(algorithm(&skewed, 1_000, 25), Algorithm::EvenShares);
        let lengths = [3, 5, 8, 20, 900];
        assert!(!way(&lengths, 20_000, 4).listed);
        assert!(way(&lengths, 20_000, 10).listed && way(&lengths, 200_000, 4).listed);
    }

    #[test]
    fn a_few_long_rows_are_shared_evenly() {
        assert_eq!(algorithm(&[4_000, 40_000], 16, 100), Algorithm::EvenShares);
        assert_eq!(algorithm(&[4_000, 4_100], 16, 100), Algorithm::Segmented);
    }

    #[test]
    fn lanes_follow_the_rows() {
        assert_eq!(way(&[4], 1_000_000, 100).lanes, 1);
        assert_eq!(way(&[77], 190_000, 100).lanes, 16);
        assert_eq!(way(&[2, 3, 4, 40], 100_000, 100).longest, 64);
    }

    #[test]
    fn uneven_long_rows_go_by_a_list_unless_it_is_for_one_call() {
        let lengths = [3, 5, 8, 20, 900];
        assert!(way(&lengths, 20_000, 100).listed);
        assert!(!way(&lengths, 20_000, 1).listed);
        assert!(!way(&[60, 64], 20_000, 100).listed);
    }
}
