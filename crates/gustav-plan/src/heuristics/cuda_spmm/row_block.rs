//! Whether neighbouring rows should share loads of B, and how many rows.

use gustav_core::Problem;

use super::{THREADS, Tuning, vectors};
use crate::{Algorithm, DeviceProfile, RowLengths, RowSimilarity};

/// Blocks need: at most this ratio of the longest row to the mean, ...
const ALIKE: f64 = 5.3;
/// ... and at least this mean row length.
const ALIKE_MEAN: f64 = 12.4;
/// Distinct columns per nonzero up to which sharing loads of B pays; ...
const SHARED: f64 = 0.668;
/// ... for f64 with rows of B of at least 512 bytes, whose loads are longer; ...
const SHARED_WIDE: f64 = 0.78;
/// ... and for 16-bit values, whose sums take most of the time.
const SHARED_16_BIT: f64 = 0.38;
/// Limit of rows × distinct columns per nonzero, in f32: above it too many of the computed sums are
/// not needed; ...
const LOOSE_F32: f64 = 2.1;
/// ... and for other types.
const LOOSE: f64 = 1.6;
/// By how much another row of a block must reduce the distinct columns per nonzero.
const PER_ROW: f64 = 0.053;
/// Smallest fraction of a full device that the threads of all blocks must fill; ...
const BLOCKS: f64 = 0.145;
/// ... with fewer than 128 columns; ...
const BLOCKS_NARROW: f64 = 0.25;
/// ... for 16-bit values; ...
const BLOCKS_16_BIT: f64 = 0.38;
/// ... and for f64, multiplied by the distinct columns per nonzero.
const BLOCKS_F64: f64 = 0.3;
/// Fractions of a full device below which two subgroups share a block of up to three rows, ...
const PAIRS: f64 = 0.38;
/// ... of four, ...
const PAIRS_OF_FOUR: f64 = 0.42;
/// ... and of four slow rows.
const PAIRS_OF_SLOW: f64 = 2.5;
/// Rows are slow from this mean row length ...
const SLOW_MEAN: f64 = 80.0;
/// ... or from this ratio of the longest row to the mean on.
const SLOW_RATIO: f64 = 1.5;
/// Distinct columns per nonzero above which `b-stationary` serves the remaining loads of B better.
const LITTLE: f64 = 0.42;

/// Whether blocks share so little that tiles of B in shared memory could save more.
pub(super) fn shares_little(problem: &Problem, similarity: &RowSimilarity) -> bool {
    let height = height(similarity, problem.dtype.bytes());
    similarity.distinct[height as usize - 2] >= LITTLE
}

/// Whether rows have similar lengths and are long enough to merge.
pub(super) fn are_alike(rows: &RowLengths) -> bool {
    let mean = rows.mean_filled();
    rows.max() as f64 <= ALIKE * mean && mean >= ALIKE_MEAN
}

/// The height of blocks that share most, for values of `bytes` bytes.
pub fn height(similarity: &RowSimilarity, bytes: usize) -> u32 {
    let distinct = |h: u32| similarity.distinct[h as usize - 2];
    let cost = |h: u32| distinct(h) + PER_ROW * f64::from(h);
    // Registers hold four rows only for f32.
    let (loose, most) = if bytes == 4 { (LOOSE_F32, 4) } else { (LOOSE, 3) };
    let fits = |h: &u32| *h <= most && distinct(*h) * f64::from(*h) <= loose;
    let heights = [2, 3, 4].into_iter().filter(fits);
    heights.min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(2)
}

/// The tuning of `row-block`, if sharing loads pays.
pub(super) fn tuning(
    problem: &Problem,
    rows: &RowLengths,
    profile: &DeviceProfile,
    similarity: &RowSimilarity,
) -> Option<Tuning> {
    let bytes = problem.dtype.bytes();
    let height = height(similarity, bytes);
    let distinct = similarity.distinct[height as usize - 2];
    let (few, narrow) = (problem.columns < 128, problem.columns * bytes < 512);
    // Two vectors per lane, except for the narrowest rows of B. Further panels have lanes of their
    // own; the thresholds of other types were fitted without them.
    let pairs = if bytes == 2 { !few } else { !narrow };
    let lanes = vectors(problem) / if pairs { 2.0 } else { 1.0 };
    let panels = if bytes == 8 { (lanes / 32.0).ceil().max(1.0) } else { 1.0 };
    let threads = rows.rows() as f64 / f64::from(height) * lanes.min(32.0) * panels;
    let full = profile.units as f64 * THREADS;
    let (shared, least) = match bytes {
        2 => (SHARED_16_BIT, BLOCKS_16_BIT),
        8 if narrow => (SHARED, BLOCKS_F64 * distinct),
        8 => (SHARED_WIDE, BLOCKS_F64 * distinct),
        _ if few => (SHARED, BLOCKS_NARROW),
        _ => (SHARED, BLOCKS),
    };
    if distinct > shared || threads < least * full {
        return None;
    }
    let mean = rows.mean_filled();
    let slow = mean >= SLOW_MEAN || rows.max() as f64 >= SLOW_RATIO * mean;
    let paired = match height {
        4 => narrow && threads < if slow { PAIRS_OF_SLOW } else { PAIRS_OF_FOUR } * full,
        _ => threads < PAIRS * full,
    };
    Some(Tuning {
        height,
        subgroups: if paired { 2 } else { 1 },
        threads: match bytes {
            8 if !narrow => 512,
            _ if narrow => 768,
            _ => 384,
        },
        reason: format!(
            "{height} neighbouring rows have {distinct:.2} distinct columns per nonzero: they \
             share loads of B"
        ),
        ..Tuning::of(Algorithm::RowBlock)
    })
}
