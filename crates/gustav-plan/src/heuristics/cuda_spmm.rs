//! Which SpMM algorithm on a GPU, and how it spreads the work.
//!
//! The thresholds were fitted to sweeps over configurations on an H200, over the real and
//! synthetic matrices of the benchmark; lengths of time and numbers of threads are relative to what
//! the device holds.

mod b_stationary;
mod row_block;
mod segmented;
mod tensor;
#[cfg(test)]
mod tests;

use gustav_core::{Problem, Result, Semiring};

use crate::{Algorithm, DeviceProfile, RowLengths, RowSimilarity, TileReuse};

pub use b_stationary::b_stationary;
pub use row_block::height;
pub use segmented::{segmented, segmented_as_stored, segmented_in_order};

/// Threads of a multiprocessor that a full chip counts with.
const THREADS: f64 = 1024.0;
/// Nonzeros see rows this many times the mean where few rows hold most of the matrix.
const SKEWED: f64 = 15.0;
/// Such a matrix of shorter rows than this, on average, is dealt in even shares where one is longer than
/// `HUGE` and the product takes `LASTING` microseconds; the second of rows of B of 64 vectors.
const SHORT: (f64, f64) = (4.0, 7.2);
const HUGE: usize = 4096;
const LASTING: f64 = 25.0;
/// There, of values of four bytes and from rows of B of so many vectors on: the nonzeros of a share, loads at
/// once, and threads.
const WIDE: f64 = 32.0;
const WIDE_SHARES: (u32, u32, u32) = (256, 8, 384);
/// Shares of `even-shares` for every lane group of a full chip.
const SHARES: f64 = 2.2;
/// What looking at the rows costs, and what every execution of a product without work gains by it, both
/// as vectors of 16 bytes that each thread of a full chip gathers.
const LOOK: (f64, f64) = (1300.0, 80.0);

/// How to multiply.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// `segmented`, `row-block`, `tensor`, `even-shares` or `b-stationary`.
    pub algorithm: Algorithm,
    /// Rows of a block, of `row-block` and `tensor`.
    pub height: u32,
    /// Sub-groups of lanes that share a segment or block.
    pub share: u32,
    /// Nonzeros of A loaded at once; in a run, those whose rows of B are.
    pub chunk: u32,
    /// Segments that a group of lanes takes one after another, with A of the next on its way.
    pub run: u32,
    /// In a run, whether the row of B of the next segment's last nonzero is asked for in L2.
    pub fetch: bool,
    /// Chunks of rows of B on their way to shared memory; of `b-stationary`, tiles held or on their way.
    pub ahead: u32,
    /// Whether a segment's part of A is asked for in L2 before any of it is used.
    pub early: bool,
    /// Rows with as many nonzeros are cut; none takes whole rows in their order. Of `even-shares`,
    /// the row starts and nonzeros of a share; of `b-stationary`, the nonzeros of a piece at most.
    pub longest: Option<u32>,
    /// Whole rows of a list with as many nonzeros come first, 256 at most; an eighth of `longest`, but 32 to 128,
    /// where none is said.
    pub first: Option<u32>,
    /// Rows of a window, of which the longest come first; 1 lists whole rows as they are.
    pub window: u32,
    /// Lanes at most that share a row of B; fewer make narrower panels.
    pub lanes: u32,
    /// Vectors of a row of B that a lane holds, by preference; exactly so many where copies of them are on
    /// their way and none is idle.
    pub tiles: u32,
    /// Threads of a multiprocessor that registers must allow: fewer registers, more threads.
    pub threads: u32,
    /// Threads of a CTA of `segmented`.
    pub block: u32,
    /// Why, in one sentence.
    pub reason: String,
}

impl Way {
    /// Whole rows in their order, each by lanes of its own, with nothing said for it.
    pub fn of(algorithm: Algorithm) -> Self {
        Way {
            algorithm,
            height: 1,
            share: 1,
            chunk: 4,
            run: 1,
            fetch: false,
            ahead: 0,
            early: false,
            longest: None,
            first: None,
            window: 1024,
            lanes: 32,
            tiles: 2,
            threads: 1024,
            block: 64,
            reason: String::new(),
        }
    }
}

/// The way for `problem` on a device with `profile`, among `segmented`, `row-block`, `even-shares`,
/// `b-stationary` and, where it has tensor cores for the problem, `tensor`.
///
/// # Errors
/// What `rows`, `similarity` and `reuse` return; the first is asked when a look at the rows
/// [pays](looks), the second where sharing loads could pay, the third where keeping B in shared memory could.
pub fn choose<'r>(
    problem: &Problem,
    profile: &DeviceProfile,
    has_tensor_cores: bool,
    rows: impl FnOnce() -> Result<&'r RowLengths>,
    similarity: impl FnOnce() -> Result<RowSimilarity>,
    reuse: impl FnOnce() -> Result<TileReuse>,
) -> Result<Way> {
    if !looks(problem, profile) {
        return Ok(even_shares(problem, profile));
    }
    let rows = rows()?;
    let mean = rows.mean_filled();
    let for_tensor = has_tensor_cores && tensor::pays(problem) && tensor::are_alike(rows);
    let for_blocks = row_block::are_alike(rows);
    if (for_tensor || for_blocks) && problem.columns >= 16 {
        let similarity = similarity()?;
        let tensor = || tensor::way(problem, rows, profile, &similarity);
        let blocks = || row_block::way(problem, rows, profile, &similarity);
        if let Some(way) = for_tensor.then(tensor).flatten() {
            return Ok(way);
        }
        if let Some(way) = for_blocks.then(blocks).flatten() {
            let little = row_block::shares_little(problem, &similarity);
            if !(little && b_stationary::has_one_panel(problem)) {
                return Ok(way);
            }
            return Ok(b_stationary::way(problem, rows, profile, reuse)?.unwrap_or(way));
        }
    }
    let vectors = vectors(problem);
    let short = if vectors < 64.0 { SHORT.0 } else { SHORT.1 };
    let few_hold_much =
        mean < short && rows.mean_of_nonzeros() > SKEWED * mean && rows.max() > HUGE;
    let lasts = segmented::microseconds(problem, profile) >= LASTING
        && !segmented::is_quick(problem, profile);
    if vectors > 8.0 && few_hold_much && lasts {
        let reason = format!(
            "rows of {mean:.1} nonzeros on average but for empty ones, {} at most: even shares, for few \
             rows hold much",
            rows.max()
        );
        let way = even_shares(problem, profile);
        if problem.dtype.bytes() == 4 && vectors >= WIDE {
            let (longest, chunk, threads) = WIDE_SHARES;
            return Ok(Way { longest: Some(longest), chunk, threads, reason, ..way });
        }
        return Ok(Way { reason, ..way });
    }
    let stationary = b_stationary::way(problem, rows, profile, reuse)?;
    Ok(stationary.unwrap_or_else(|| segmented(problem, rows, profile)))
}

/// Whether the expected calls gain more by a plan for the rows than the plan costs: it takes about the
/// same time for every matrix, and gains about the same part of an execution, of a short one more.
pub fn looks(problem: &Problem, profile: &DeviceProfile) -> bool {
    let items = (problem.nnz + problem.output_rows()) as f64;
    let gathered = items * vectors(problem) / (profile.units as f64 * THREADS);
    problem.calls > 1 && problem.calls as f64 * (gathered + LOOK.1) >= LOOK.0
}

/// Whether parts of a row may be added one by one, as they come.
pub fn may_reduce(problem: &Problem) -> bool {
    !problem.deterministic && problem.semiring == Semiring::PlusTimes && !problem.dtype.is_integer()
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
        longest: Some(work),
        tiles,
        threads: if problem.dtype.bytes() == 8 { 384 } else { 640 },
        reason: format!(
            "rows of {mean:.1} nonzeros on average{}: shares of {work} row starts and nonzeros",
            if looks(problem, profile) { String::new() } else { unseen(problem.calls) }
        ),
        ..Way::of(Algorithm::EvenShares)
    }
}

/// Why nobody looks at the rows.
fn unseen(calls: u64) -> String {
    match calls {
        0 | 1 => ", not looked at for a single call".into(),
        _ => format!(", not looked at for {calls} calls, which would not pay for it"),
    }
}

/// Vectors of 16 bytes in a row of B.
fn vectors(problem: &Problem) -> f64 {
    (problem.columns * problem.dtype.bytes()) as f64 / 16.0
}

fn nearest_power(number: f64) -> u32 {
    1 << number.clamp(1.0, 1e6).log2().round() as u32
}
