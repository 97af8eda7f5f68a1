//! When blocks of eight rows are for tensor cores.

use gustav_core::Problem;

use super::Way;
use crate::{Algorithm, DeviceProfile, RowLengths, RowSimilarity};

/// Rows of a block, and distinct columns of it that an instruction takes.
const ROWS: f64 = 8.0;
const CHUNK: f64 = 16.0;
/// Calls that pay for merging eight rows.
const CALLS: u64 = 32;
/// The longest row in means, and the least mean.
const ALIKE: (f64, f64) = (7.0, 12.4);
/// Distinct columns per nonzero of blocks up to which tensor cores pay, in 16 bits: of fewer than 128
/// columns, and of more. f64 gains nothing.
const SHARED: (f64, f64) = (0.62, 0.75);
/// Warps of a multiprocessor that hide each other's loads, and the chunks that each of them has at least:
/// more warps where there is more for them to do.
const WARPS: [(f64, f64); 2] = [(9.0, 1.5), (12.0, 2.2)];
/// Chunks of the longest block that a warp may have, or so many times what it has in the mean of all
/// that a device holds: blocks are not cut.
const LONGEST: (f64, f64) = (160.0, 4.0);

/// Whether rows have about one length, and are worth merging.
pub(super) fn are_alike(rows: &RowLengths) -> bool {
    let mean = rows.mean_filled();
    rows.max() as f64 <= ALIKE.0 * mean && mean >= ALIKE.1
}

/// Whether so many calls in this type pay.
pub(super) fn pays(problem: &Problem) -> bool {
    problem.dtype.bytes() == 2 && problem.calls >= CALLS
}

/// The way of `tensor`, where blocks of rows are alike enough.
pub(super) fn way(
    problem: &Problem,
    rows: &RowLengths,
    profile: &DeviceProfile,
    similarity: &RowSimilarity,
) -> Option<Way> {
    let distinct = similarity.distinct[3];
    if distinct > if problem.columns < 128 { SHARED.0 } else { SHARED.1 } {
        return None;
    }
    let chunks = distinct * rows.mean() * ROWS / CHUNK;
    let panels = problem.columns.div_ceil(128) as f64;
    let blocks = rows.rows() as f64 / ROWS * panels;
    let has_work = |share: f64, (warps, least): (f64, f64)| {
        blocks * share < warps * profile.units as f64 && chunks >= least * 2.0 * share
    };
    let mut share = 1;
    while share < 8 && WARPS.iter().any(|&least| has_work(f64::from(share), least)) {
        share *= 2;
    }
    let longest = distinct * rows.max() as f64 * ROWS / CHUNK / f64::from(share);
    let even = chunks * blocks / (WARPS[0].0 * profile.units as f64);
    if longest > LONGEST.0.max(LONGEST.1 * even) {
        return None;
    }
    Some(Way {
        height: ROWS as u32,
        share,
        chunk: CHUNK as u32,
        lanes: 8,
        tiles: 1,
        threads: if problem.columns > 64 { 512 } else { 768 },
        reason: format!(
            "8 neighbouring rows have {distinct:.2} distinct columns per nonzero: tensor cores \
             take them together"
        ),
        ..Way::of(Algorithm::Tensor)
    })
}
