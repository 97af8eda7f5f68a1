//! Sorting column indices in AVX-512 registers: bitonic networks over up to 256 elements.

use std::arch::x86_64::*;

const LANES: usize = 16;

/// The most elements that [`sort`] takes.
pub(super) const MAX: usize = 16 * LANES;

/// Sorts `len` distinct columns below 2^32 − 1.
///
/// # Safety
/// `list` holds `len` elements, at most [`MAX`], and the machine has AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn sort(list: *mut u32, len: usize) {
    // SAFETY: promised by the caller.
    unsafe {
        match len {
            0..=1 => {}
            2..=16 => sort_vectors::<1>(list, len),
            17..=32 => sort_vectors::<2>(list, len),
            33..=64 => sort_vectors::<4>(list, len),
            65..=128 => sort_vectors::<8>(list, len),
            _ => sort_vectors::<16>(list, len),
        }
    }
}

/// # Safety
/// As [`sort`]; `len` is at most `N` vectors.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn sort_vectors<const N: usize>(list: *mut u32, len: usize) {
    let lanes_of = |k: usize| match len.saturating_sub(k * LANES) {
        left @ 0..LANES => ((1u32 << left) - 1) as __mmask16,
        _ => __mmask16::MAX,
    };
    // Lanes past the end hold the largest value, so they sort behind all columns.
    let mut v = [_mm512_set1_epi32(-1); N];
    for k in 0..N {
        // SAFETY: masked-out lanes are not touched.
        v[k] = unsafe {
            let from = list.wrapping_add(k * LANES).cast();
            sort_lanes(_mm512_mask_loadu_epi32(v[k], lanes_of(k), from))
        };
    }
    let mut run = 1;
    while run < N {
        for start in (0..N).step_by(2 * run) {
            merge(&mut v[start..start + 2 * run]);
        }
        run *= 2;
    }
    for k in 0..N {
        // SAFETY: as above.
        unsafe {
            _mm512_mask_storeu_epi32(list.wrapping_add(k * LANES).cast(), lanes_of(k), v[k]);
        }
    }
}

/// Merges the two sorted halves of `v`.
#[inline]
#[target_feature(enable = "avx512f")]
fn merge(v: &mut [__m512i]) {
    let (len, half) = (v.len(), v.len() / 2);
    for k in 0..half {
        let (low, high) = (v[k], reverse(v[len - 1 - k]));
        v[k] = _mm512_min_epu32(low, high);
        v[len - 1 - k] = _mm512_max_epu32(low, high);
    }
    // The upper half holds its vectors in reverse order, which changes none of the compared pairs.
    let mut distance = half / 2;
    while distance > 0 {
        for k in 0..len {
            if k & distance == 0 {
                let (low, high) = (v[k], v[k + distance]);
                v[k] = _mm512_min_epu32(low, high);
                v[k + distance] = _mm512_max_epu32(low, high);
            }
        }
        distance /= 2;
    }
    for k in 0..len {
        v[k] = merge_lanes(v[k]);
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn reverse(v: __m512i) -> __m512i {
    exchange::<15>(v)
}

/// Lane `k` of the result is lane `k ^ X`.
#[inline]
#[target_feature(enable = "avx512f")]
fn exchange<const X: i32>(v: __m512i) -> __m512i {
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm512_permutexvar_epi32(_mm512_xor_si512(lanes, _mm512_set1_epi32(X)), v)
}

/// Compares lanes `k` and `k ^ X`; lanes with the bits of `UPPER` keep the larger value.
#[inline]
#[target_feature(enable = "avx512f")]
fn compare<const X: i32, const UPPER: u16>(v: __m512i) -> __m512i {
    let other = exchange::<X>(v);
    _mm512_mask_max_epu32(_mm512_min_epu32(v, other), UPPER, v, other)
}

/// Sorts a bitonic vector.
#[inline]
#[target_feature(enable = "avx512f")]
fn merge_lanes(v: __m512i) -> __m512i {
    let v = compare::<8, 0xFF00>(v);
    let v = compare::<4, 0xF0F0>(v);
    let v = compare::<2, 0xCCCC>(v);
    compare::<1, 0xAAAA>(v)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn sort_lanes(v: __m512i) -> __m512i {
    let v = compare::<1, 0xAAAA>(v);
    let v = compare::<3, 0xCCCC>(v);
    let v = compare::<1, 0xAAAA>(v);
    let v = compare::<7, 0xF0F0>(v);
    let v = compare::<2, 0xCCCC>(v);
    let v = compare::<1, 0xAAAA>(v);
    let v = compare::<15, 0xFF00>(v);
    let v = compare::<4, 0xF0F0>(v);
    let v = compare::<2, 0xCCCC>(v);
    compare::<1, 0xAAAA>(v)
}
