//! When blocks of eight rows on tensor cores pay.

use gustav_core::Problem;

use super::Tuning;
use crate::{Algorithm, DeviceProfile, RowLengths, RowSimilarity};

/// Rows of a block, and distinct columns of it that an instruction takes.
const ROWS: f64 = 8.0;
const CHUNK: f64 = 16.0;
/// Fewest expected calls that repay merging eight rows.
const CALLS: u64 = 32;
/// Largest ratio of the longest row to the mean, ...
const ALIKE: f64 = 7.0;
/// ... and least mean nonzeros of a row.
const ALIKE_MEAN: f64 = 12.4;
/// Distinct columns per nonzero of a block up to which tensor cores pay in 16 bits; ...
const SHARED: f64 = 0.75;
/// ... the same with fewer than 128 columns. f64 gains nothing.
const SHARED_NARROW: f64 = 0.62;
/// Blocks are shared by more subgroups while a multiprocessor has fewer than `warps` warps and each
/// keeps at least `chunks` chunks.
struct Warps {
    /// Warps of a multiprocessor.
    warps: f64,
    /// Least chunks of a warp.
    chunks: f64,
}
/// Either condition is enough.
const WARPS: [Warps; 2] = [Warps { warps: 9.0, chunks: 1.5 }, Warps { warps: 12.0, chunks: 2.2 }];
/// Most chunks of a warp in the longest block, which is not cut, ...
const LONGEST: f64 = 160.0;
/// ... or this many times the mean of all warps of the device.
const LONGEST_RATIO: f64 = 4.0;

/// Whether rows have similar lengths and are long enough to merge.
pub(super) fn are_alike(rows: &RowLengths) -> bool {
    let mean = rows.mean_filled();
    rows.max() as f64 <= ALIKE * mean && mean >= ALIKE_MEAN
}

/// Whether the type and the expected calls allow it.
pub(super) fn pays(problem: &Problem) -> bool {
    problem.dtype.bytes() == 2 && problem.calls >= CALLS
}

/// The tuning of `tensor`, if the rows of blocks are similar enough.
pub(super) fn tuning(
    problem: &Problem,
    rows: &RowLengths,
    profile: &DeviceProfile,
    similarity: &RowSimilarity,
) -> Option<Tuning> {
    let distinct = similarity.distinct[3];
    if distinct > if problem.columns < 128 { SHARED_NARROW } else { SHARED } {
        return None;
    }
    let chunks = distinct * rows.mean() * ROWS / CHUNK;
    let panels = problem.columns.div_ceil(128) as f64;
    let blocks = rows.rows() as f64 / ROWS * panels;
    let has_work = |subgroups: f64, w: &Warps| {
        let few = blocks * subgroups < w.warps * profile.units as f64;
        few && chunks >= w.chunks * 2.0 * subgroups
    };
    let mut subgroups = 1;
    while subgroups < 8 && WARPS.iter().any(|w| has_work(f64::from(subgroups), w)) {
        subgroups *= 2;
    }
    let longest = distinct * rows.max() as f64 * ROWS / CHUNK / f64::from(subgroups);
    let even = chunks * blocks / (WARPS[0].warps * profile.units as f64);
    if longest > LONGEST.max(LONGEST_RATIO * even) {
        return None;
    }
    Some(Tuning {
        height: ROWS as u32,
        subgroups,
        chunk: CHUNK as u32,
        lanes: 8,
        tiles: 1,
        threads: if problem.columns > 64 { 512 } else { 768 },
        reason: format!(
            "8 neighbouring rows have {distinct:.2} distinct columns per nonzero: tensor cores \
             take them together"
        ),
        ..Tuning::of(Algorithm::Tensor)
    })
}
