//! When neighbouring rows share loads of B, and how many of them.

use gustav_core::Problem;

use super::{THREADS, Way, vectors};
use crate::{Algorithm, DeviceProfile, RowLengths, RowSimilarity};

/// Blocks of rows: the longest row in means, and the least mean.
const ALIKE: (f64, f64) = (5.3, 12.4);
/// Distinct columns per nonzero up to which sharing loads of B pays; of f64 from 512 bytes of a row on,
/// whose loads are longer, and of 16-bit values, where the sums are what takes time.
const SHARED: (f64, f64, f64) = (0.668, 0.78, 0.38);
/// Rows times distinct columns per nonzero up to which sums are full enough: in f32, which can spare some, and
/// otherwise.
const LOOSE: (f64, f64) = (2.1, 1.6);
/// Prefer lower blocks unless a row more saves this much.
const PER_ROW: f64 = 0.053;
/// Threads of blocks, in parts of a full chip, that sharing needs: in general, below 128 columns, and of
/// 16-bit values.
const BLOCKS: (f64, f64, f64) = (0.145, 0.25, 0.38);
/// Those of f64, for a distinct column per nonzero.
const WIDE_BLOCKS: f64 = 0.3;
/// Threads of blocks below which two sub-groups share one: of up to three rows, of four, and of four that take
/// long or are uneven.
const PAIRS: (f64, f64, f64) = (0.38, 0.42, 2.5);
/// Such rows: their mean, and the longest in means.
const SLOW: (f64, f64) = (80.0, 1.5);

/// Distinct columns per nonzero from which on the loads of B that remain are better made of shared memory.
const LITTLE: f64 = 0.42;

/// Whether blocks would share so little that tiles of B could gain more.
pub(super) fn shares_little(problem: &Problem, similarity: &RowSimilarity) -> bool {
    let height = height(similarity, problem.dtype.bytes());
    similarity.distinct[height as usize - 2] >= LITTLE
}

/// Whether rows have about one length, and are worth merging.
pub(super) fn are_alike(rows: &RowLengths) -> bool {
    let mean = rows.mean_filled();
    rows.max() as f64 <= ALIKE.0 * mean && mean >= ALIKE.1
}

/// The height of block that shares most, for values of so many bytes.
pub fn height(similarity: &RowSimilarity, bytes: usize) -> u32 {
    let distinct = |h: u32| similarity.distinct[h as usize - 2];
    let cost = |h: u32| distinct(h) + PER_ROW * f64::from(h);
    // Registers hold four rows of f32 only.
    let (loose, most) = if bytes == 4 { (LOOSE.0, 4) } else { (LOOSE.1, 3) };
    let fits = |h: &u32| *h <= most && distinct(*h) * f64::from(*h) <= loose;
    let heights = [2, 3, 4].into_iter().filter(fits);
    heights.min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(2)
}

/// The way of `row-block`, where sharing loads pays.
pub(super) fn way(
    problem: &Problem,
    rows: &RowLengths,
    profile: &DeviceProfile,
    similarity: &RowSimilarity,
) -> Option<Way> {
    let bytes = problem.dtype.bytes();
    let height = height(similarity, bytes);
    let distinct = similarity.distinct[height as usize - 2];
    let (few, narrow) = (problem.columns < 128, problem.columns * bytes < 512);
    // Two vectors a lane, but for the narrowest. Panels beyond the first have lanes of their own; the bounds of
    // other types were found without them.
    let pairs = if bytes == 2 { !few } else { !narrow };
    let lanes = vectors(problem) / if pairs { 2.0 } else { 1.0 };
    let panels = if bytes == 8 { (lanes / 32.0).ceil().max(1.0) } else { 1.0 };
    let threads = rows.rows() as f64 / f64::from(height) * lanes.min(32.0) * panels;
    let full = profile.units as f64 * THREADS;
    let (shared, least) = match bytes {
        2 => (SHARED.2, BLOCKS.2),
        8 if narrow => (SHARED.0, WIDE_BLOCKS * distinct),
        8 => (SHARED.1, WIDE_BLOCKS * distinct),
        _ if few => (SHARED.0, BLOCKS.1),
        _ => (SHARED.0, BLOCKS.0),
    };
    if distinct > shared || threads < least * full {
        return None;
    }
    let mean = rows.mean_filled();
    let slow = mean >= SLOW.0 || rows.max() as f64 >= SLOW.1 * mean;
    let paired = match height {
        4 => narrow && threads < if slow { PAIRS.2 } else { PAIRS.1 } * full,
        _ => threads < PAIRS.0 * full,
    };
    Some(Way {
        height,
        share: if paired { 2 } else { 1 },
        threads: match bytes {
            8 if !narrow => 512,
            _ if narrow => 768,
            _ => 384,
        },
        reason: format!(
            "{height} neighbouring rows have {distinct:.2} distinct columns per nonzero: they \
             share loads of B"
        ),
        ..Way::of(Algorithm::RowBlock)
    })
}
