//! When blocks of eight rows are for tensor cores.

use gustav_core::Problem;

use super::Way;
use crate::{Algorithm, DeviceProfile, RowLengths, RowSimilarity};

/// Rows of a block, and distinct columns of it that an instruction takes.
const ROWS: f64 = 8.0;
const CHUNK: f64 = 16.0;
/// Calls that pay for merging eight rows.
const CALLS: u64 = 32;
/// Distinct columns per nonzero of blocks up to which tensor cores pay, in 16 bits; f64 gains nothing.
const SHARED: f64 = 0.5;
/// Warps of a multiprocessor that hide each other's loads.
const WARPS: f64 = 9.0;
/// Chunks that each warp of a block has at least.
const CHUNKS: f64 = 1.5;

/// The way of `tensor`, where blocks of rows are alike enough.
pub(super) fn way(
    problem: &Problem,
    rows: &RowLengths,
    profile: &DeviceProfile,
    similarity: &RowSimilarity,
) -> Option<Way> {
    let distinct = similarity.distinct[3];
    if problem.dtype.bytes() != 2 || problem.calls < CALLS || distinct > SHARED {
        return None;
    }
    let chunks = distinct * rows.mean() * ROWS / CHUNK;
    let panels = problem.columns.div_ceil(128) as f64;
    let blocks = rows.rows() as f64 / ROWS * panels;
    let mut share = 1;
    while share < 8
        && blocks * f64::from(share) < WARPS * profile.units as f64
        && chunks >= CHUNKS * 2.0 * f64::from(share)
    {
        share *= 2;
    }
    Some(Way {
        algorithm: Algorithm::Tensor,
        height: ROWS as u32,
        share,
        chunk: CHUNK as u32,
        ahead: 0,
        early: false,
        longest: None,
        lanes: 8,
        tiles: 1,
        threads: if problem.columns > 64 { 512 } else { 768 },
        reason: format!(
            "8 neighbouring rows have {distinct:.2} distinct columns per nonzero: tensor cores \
             take them together"
        ),
    })
}
