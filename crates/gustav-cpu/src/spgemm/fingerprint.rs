//! A short digest of a pattern, so that a plan notices a matrix it was not made for.

use gustav_core::{CsrView, Index, Scalar};
use rayon::prelude::*;

// Odd constants with well-spread bits (the first is 2^64 divided by the golden ratio).
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;
const LANE_SEEDS: [u64; 4] =
    [0x243F_6A88_85A3_08D3, 0x1319_8A2E_0370_7344, 0xA409_3822_299F_31D0, 0x082E_FA98_EC4E_6C89];
const CHUNK: usize = 1 << 16;

/// Digest of the row offsets and column indices of `a`.
pub(super) fn of_pattern<T: Scalar, I: Index, O: Index>(a: &CsrView<'_, T, I, O>) -> u64 {
    parallel(a.offsets()).rotate_left(1) ^ parallel(a.indices())
}

fn parallel<I: Index>(values: &[I]) -> u64 {
    values
        .par_chunks(CHUNK)
        .enumerate()
        .map(|(k, chunk)| of_slice(chunk).rotate_left(k as u32 % 64).wrapping_mul(2 * k as u64 + 1))
        .reduce(|| 0, u64::wrapping_add)
        .wrapping_add(values.len() as u64)
}

/// Digest of a slice; four independent lanes, so that the multiplier's latency is hidden.
pub(super) fn of_slice<I: Index>(values: &[I]) -> u64 {
    let mut lanes = LANE_SEEDS;
    let mut fours = values.chunks_exact(4);
    for four in &mut fours {
        for (lane, v) in lanes.iter_mut().zip(four) {
            *lane = mix(*lane, v.to_usize() as u64);
        }
    }
    for v in fours.remainder() {
        lanes[0] = mix(lanes[0], v.to_usize() as u64);
    }
    lanes.iter().fold(values.len() as u64, |h, lane| mix(h, *lane))
}

#[inline(always)]
fn mix(hash: u64, value: u64) -> u64 {
    (hash ^ value).wrapping_mul(MULTIPLIER).rotate_left(29)
}
