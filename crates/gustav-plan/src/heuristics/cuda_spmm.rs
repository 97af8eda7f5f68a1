//! Chooses the SpMM algorithm on a GPU, and its tuning.
//!
//! The thresholds were fitted to sweeps over configurations on an H200, over the real and synthetic
//! matrices of the benchmark; times and numbers of threads are relative to a full device.

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

/// Threads of a multiprocessor with which a device counts as full.
const THREADS: f64 = 1024.0;
/// A few rows hold most of the matrix if the mean over the nonzeros of their row's length is at least this many times
/// the mean row length.
const SKEWED: f64 = 15.0;
/// Such a matrix is multiplied by `even-shares` below this mean row length, ...
const SKEWED_MEAN: f64 = 4.0;
/// ... with rows of B of 64 vectors below this, ...
const SKEWED_MEAN_WIDE: f64 = 7.2;
/// ... if one row is longer than this, in nonzeros, ...
const HUGE: usize = 4096;
/// ... and if the product takes at least so many microseconds.
const LASTING_US: f64 = 25.0;
/// For values of four bytes and rows of B of at least this many vectors, partitions of
/// `even-shares` have ...
const WIDE: f64 = 32.0;
/// ... this many row starts and nonzeros, ...
const WIDE_WORK: u32 = 256;
/// ... this many nonzeros loaded at once, ...
const WIDE_CHUNK: u32 = 8;
/// ... and registers for so many threads of a multiprocessor.
const WIDE_THREADS: u32 = 384;
/// Partitions of `even-shares` for every lane group of a full device.
const PARTITIONS_PER_GROUP: f64 = 2.2;
/// Cost of inspecting the rows, in vectors of 16 bytes that each thread of a full device gathers; ...
const INSPECTION_COST: f64 = 1300.0;
/// ... and what the inspection saves of every execution, even of an empty product.
const INSPECTION_GAIN: f64 = 80.0;

/// A tuning configuration of one algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// `segmented`, `row-block`, `tensor`, `even-shares` or `b-stationary`.
    pub algorithm: Algorithm,
    /// Rows of a block, for `row-block` and `tensor`.
    pub height: u32,
    /// Subgroups of lanes that share a segment or block.
    pub subgroups: u32,
    /// Nonzeros of A loaded together; with several segments per group, nonzeros whose rows of B are in flight.
    pub chunk: u32,
    /// Segments that a group of lanes processes one after another; A of the next one is prefetched.
    pub segments_per_group: u32,
    /// With several segments per group, whether the row of B of the next segment's last nonzero is prefetched to L2.
    pub prefetch_b: bool,
    /// Pipeline stages in shared memory: chunks of rows of B, or tiles of B for `b-stationary`.
    pub stages: u32,
    /// Whether a segment's nonzeros of A are prefetched to L2.
    pub prefetch_a: bool,
    /// Longest segment in nonzeros: longer rows are cut; `None` takes whole rows in their order.
    /// For `even-shares`, row starts and nonzeros of a partition.
    pub longest: Option<u32>,
    /// Nonzeros from which whole rows are in the head of the list, 256 at most; `None` is an eighth
    /// of `longest`, between 32 and 128.
    pub first: Option<u32>,
    /// Rows of a window, inside which the list is sorted by length; 1 lists whole rows in their
    /// order.
    pub window: u32,
    /// Most lanes for a row of B; fewer lanes make narrower panels.
    pub lanes: u32,
    /// Preferred number of vectors of a row of B that a lane holds; with copies of B to shared memory it is exact, if
    /// no lane is idle.
    pub tiles: u32,
    /// Resident threads of a multiprocessor that a kernel's registers must allow.
    pub threads: u32,
    /// Threads of a CTA of `segmented`.
    pub block: u32,
    /// Why, in one sentence.
    pub reason: String,
}

impl Tuning {
    /// Whole rows in their order, one group of lanes each, without a reason.
    pub fn of(algorithm: Algorithm) -> Self {
        Tuning {
            algorithm,
            height: 1,
            subgroups: 1,
            chunk: 4,
            segments_per_group: 1,
            prefetch_b: false,
            stages: 0,
            prefetch_a: false,
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

/// The tuning for `problem` on a device with `profile`, among `segmented`, `row-block`,
/// `even-shares`, `b-stationary` and, if the device has tensor cores for the problem, `tensor`.
///
/// # Errors
/// Those of `rows`, `similarity` and `reuse`. `rows` is called when inspecting the rows [pays](inspects),
/// `similarity` where sharing loads could pay, `reuse` where keeping B in shared memory could.
pub fn choose<'r>(
    problem: &Problem,
    profile: &DeviceProfile,
    has_tensor_cores: bool,
    rows: impl FnOnce() -> Result<&'r RowLengths>,
    similarity: impl FnOnce() -> Result<RowSimilarity>,
    reuse: impl FnOnce() -> Result<TileReuse>,
) -> Result<Tuning> {
    if !inspects(problem, profile) {
        return Ok(even_shares(problem, profile));
    }
    let rows = rows()?;
    let mean = rows.mean_filled();
    let for_tensor = has_tensor_cores && tensor::pays(problem) && tensor::are_alike(rows);
    let for_blocks = row_block::are_alike(rows);
    if (for_tensor || for_blocks) && problem.columns >= 16 {
        let similarity = similarity()?;
        let tensor = || tensor::tuning(problem, rows, profile, &similarity);
        let blocks = || row_block::tuning(problem, rows, profile, &similarity);
        if let Some(tuning) = for_tensor.then(tensor).flatten() {
            return Ok(tuning);
        }
        if let Some(tuning) = for_blocks.then(blocks).flatten() {
            let little = row_block::shares_little(problem, &similarity);
            if !(little && b_stationary::has_one_panel(problem)) {
                return Ok(tuning);
            }
            return Ok(b_stationary::tuning(problem, rows, profile, reuse)?.unwrap_or(tuning));
        }
    }
    let vectors = vectors(problem);
    let short = if vectors < 64.0 { SKEWED_MEAN } else { SKEWED_MEAN_WIDE };
    let few_hold_much =
        mean < short && rows.mean_of_nonzeros() > SKEWED * mean && rows.max() > HUGE;
    let is_long = segmented::microseconds(problem, profile) >= LASTING_US
        && !segmented::is_quick(problem, profile);
    if vectors > 8.0 && few_hold_much && is_long {
        let reason = format!(
            "rows of {mean:.1} nonzeros on average but for empty ones, {} at most: equal partitions, for few \
             rows hold much",
            rows.max()
        );
        let tuning = even_shares(problem, profile);
        if problem.dtype.bytes() == 4 && vectors >= WIDE {
            let (longest, chunk, threads) = (Some(WIDE_WORK), WIDE_CHUNK, WIDE_THREADS);
            return Ok(Tuning { longest, chunk, threads, reason, ..tuning });
        }
        return Ok(Tuning { reason, ..tuning });
    }
    let stationary = b_stationary::tuning(problem, rows, profile, reuse)?;
    Ok(stationary.unwrap_or_else(|| segmented(problem, rows, profile)))
}

/// Whether the expected calls repay inspecting the rows. The inspection takes about the same time
/// for every matrix and saves about the same fraction of every execution, more of a short one.
pub fn inspects(problem: &Problem, profile: &DeviceProfile) -> bool {
    let items = (problem.nnz + problem.output_rows()) as f64;
    let gathered = items * vectors(problem) / (profile.units as f64 * THREADS);
    problem.calls > 1 && problem.calls as f64 * (gathered + INSPECTION_GAIN) >= INSPECTION_COST
}

/// Whether partial sums of a row may be added in any order.
pub fn may_reduce(problem: &Problem) -> bool {
    !problem.deterministic && problem.semiring == Semiring::PlusTimes && !problem.dtype.is_integer()
}

/// The tuning of `even-shares`, from the numbers of rows and nonzeros alone.
pub fn even_shares(problem: &Problem, profile: &DeviceProfile) -> Tuning {
    let items = (problem.nnz + problem.output_rows()) as f64;
    let vectors = vectors(problem);
    // For a short row of B, more lanes keep the loads of a partition together.
    let tiles = if vectors > 8.0 { 2 } else { 1 };
    let lanes = (vectors / f64::from(tiles)).clamp(1.0, 32.0);
    let groups = profile.units as f64 * THREADS / lanes;
    let work = nearest_power(items / groups * PARTITIONS_PER_GROUP).clamp(32, 128);
    let mean = problem.nnz as f64 / problem.output_rows().max(1) as f64;
    Tuning {
        longest: Some(work),
        tiles,
        threads: if problem.dtype.bytes() == 8 { 384 } else { 640 },
        reason: format!(
            "rows of {mean:.1} nonzeros on average{}: partitions of {work} row starts and nonzeros",
            if inspects(problem, profile) { String::new() } else { uninspected(problem.calls) }
        ),
        ..Tuning::of(Algorithm::EvenShares)
    }
}

/// Why the rows are not inspected.
fn uninspected(calls: u64) -> String {
    match calls {
        0 | 1 => ", not inspected for a single call".into(),
        _ => format!(", not inspected for {calls} calls, which would not repay it"),
    }
}

/// Vectors of 16 bytes in a row of B.
fn vectors(problem: &Problem) -> f64 {
    (problem.columns * problem.dtype.bytes()) as f64 / 16.0
}

fn nearest_power(number: f64) -> u32 {
    1 << number.clamp(1.0, 1e6).log2().round() as u32
}
