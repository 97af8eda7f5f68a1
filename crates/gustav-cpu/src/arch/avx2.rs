//! AVX2 vectors for plus-times: f32 and f64, and f16 and bf16 widened to f32.

use std::arch::x86_64::*;
use std::mem::transmute;

use gustav_core::{Scalar, bf16, f16};

use super::intrinsics::vector;
use super::vector::{Vector, Work};

/// The 256-bit registers.
pub struct Avx2;

/// Compiles `work` over vectors `V` for AVX2.
///
/// # Safety
/// The machine has [`Isa::Avx2`](super::Isa::Avx2).
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c")]
pub unsafe fn enable<T: Scalar, V: Vector<T>, W: Work<T>>(work: W) {
    // SAFETY: promised by the caller.
    unsafe { work.run::<V>() }
}

macro_rules! vector_256 {
    ($t:ty => $accum:ty, $v:ty, $mask:ty, $lanes:literal, [$($names:ident),*], $fma:ident,
     $totals:ident, $win:ident, $($how:tt)*) => {
        vector!(Avx2, $t => $accum, $v, $mask, $lanes, 2, [$($names),*],
            mul_add: |a, b, acc| $fma(a, b, acc),
            $($how)*,
            prefetch: |p| _mm_prefetch::<_MM_HINT_T0>(p.cast()),
            enter: |work| enable::<$t, Self, _>(work),
            totals: |v| $totals(v),
            win: $win);
    };
}

vector_256!(f32 => f32, __m256, __m256i, 8,
    [_mm256_set1_ps, _mm256_add_ps, _mm256_mul_ps, _mm256_loadu_ps, _mm256_storeu_ps],
    _mm256_fmadd_ps, totals_f32, win_f32,
    mask: |count| _mm256_cmpgt_epi32(
        _mm256_set1_epi32(count as i32),
        transmute::<[i32; 8], __m256i>([0, 1, 2, 3, 4, 5, 6, 7]),
    ),
    load: |p| _mm256_loadu_ps(p),
    load_masked: |p, m| _mm256_maskload_ps(p, m),
    store: |p, v| _mm256_storeu_ps(p, v),
    store_masked: |p, m, v| _mm256_maskstore_ps(p, m, v),
    stream: |p, v| _mm256_stream_ps(p, v),
    stream_16: |p, v| stream_256(p.cast(), _mm256_castps_si256(v)));

vector_256!(f64 => f64, __m256d, __m256i, 4,
    [_mm256_set1_pd, _mm256_add_pd, _mm256_mul_pd, _mm256_loadu_pd, _mm256_storeu_pd],
    _mm256_fmadd_pd, totals_f64, win_f64,
    mask: |count| _mm256_cmpgt_epi64(
        _mm256_set1_epi64x(count as i64),
        transmute::<[i64; 4], __m256i>([0, 1, 2, 3]),
    ),
    load: |p| _mm256_loadu_pd(p),
    load_masked: |p, m| _mm256_maskload_pd(p, m),
    store: |p, v| _mm256_storeu_pd(p, v),
    store_masked: |p, m, v| _mm256_maskstore_pd(p, m, v),
    stream: |p, v| _mm256_stream_pd(p, v),
    stream_16: |p, v| stream_256(p.cast(), _mm256_castpd_si256(v)));

vector_256!(f16 => f32, __m256, usize, 8,
    [_mm256_set1_ps, _mm256_add_ps, _mm256_mul_ps, _mm256_loadu_ps, _mm256_storeu_ps],
    _mm256_fmadd_ps, totals_f32, win_f32,
    mask: |count| count,
    load: |p| _mm256_cvtph_ps(_mm_loadu_si128(p.cast())),
    load_masked: |p, m| _mm256_cvtph_ps(load_some(p.cast(), m)),
    store: |p, v| _mm_storeu_si128(p.cast(), narrow_f16(v)),
    store_masked: |p, m, v| store_some(p.cast(), m, narrow_f16(v)),
    stream: |p, v| _mm_stream_si128(p.cast(), narrow_f16(v)),
    stream_16: |p, v| _mm_stream_si128(p.cast(), narrow_f16(v)));

vector_256!(bf16 => f32, __m256, usize, 8,
    [_mm256_set1_ps, _mm256_add_ps, _mm256_mul_ps, _mm256_loadu_ps, _mm256_storeu_ps],
    _mm256_fmadd_ps, totals_f32, win_f32,
    mask: |count| count,
    load: |p| widen_bf16(_mm_loadu_si128(p.cast())),
    load_masked: |p, m| widen_bf16(load_some(p.cast(), m)),
    store: |p, v| _mm_storeu_si128(p.cast(), narrow_bf16(v)),
    store_masked: |p, m, v| store_some(p.cast(), m, narrow_bf16(v)),
    stream: |p, v| _mm_stream_si128(p.cast(), narrow_bf16(v)),
    stream_16: |p, v| _mm_stream_si128(p.cast(), narrow_bf16(v)));

/// The sums of the lanes of each.
#[inline(always)]
pub(super) unsafe fn totals_f32([a, b, c, d]: [__m256; 4]) -> [f32; 4] {
    // SAFETY: the caller has AVX2; four values are an array's size.
    unsafe {
        let pairs = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
        transmute(_mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps::<1>(pairs)))
    }
}

/// The sums of the lanes of each.
#[inline(always)]
pub(super) unsafe fn totals_f64([a, b, c, d]: [__m256d; 4]) -> [f64; 4] {
    // SAFETY: the caller has AVX2; four values are an array's size.
    unsafe {
        let (ab, cd) = (_mm256_hadd_pd(a, b), _mm256_hadd_pd(c, d));
        let lower = _mm256_permute2f128_pd::<0x20>(ab, cd);
        transmute(_mm256_add_pd(lower, _mm256_permute2f128_pd::<0x31>(ab, cd)))
    }
}

/// [`Vector::win`].
#[inline(always)]
unsafe fn win_f32<const MAX: bool>(
    product: __m256,
    at: __m256,
    best: __m256,
    winner: __m256,
) -> (__m256, __m256) {
    // SAFETY: the caller has AVX2.
    unsafe {
        let beats = match MAX {
            true => _mm256_cmp_ps::<_CMP_NLE_UQ>(product, best),
            false => _mm256_cmp_ps::<_CMP_NGE_UQ>(product, best),
        };
        let wins = _mm256_and_ps(beats, _mm256_cmp_ps::<_CMP_ORD_Q>(best, best));
        (_mm256_blendv_ps(best, product, wins), _mm256_blendv_ps(winner, at, wins))
    }
}

/// [`Vector::win`].
#[inline(always)]
unsafe fn win_f64<const MAX: bool>(
    product: __m256d,
    at: __m256d,
    best: __m256d,
    winner: __m256d,
) -> (__m256d, __m256d) {
    // SAFETY: the caller has AVX2.
    unsafe {
        let beats = match MAX {
            true => _mm256_cmp_pd::<_CMP_NLE_UQ>(product, best),
            false => _mm256_cmp_pd::<_CMP_NGE_UQ>(product, best),
        };
        let wins = _mm256_and_pd(beats, _mm256_cmp_pd::<_CMP_ORD_Q>(best, best));
        (_mm256_blendv_pd(best, product, wins), _mm256_blendv_pd(winner, at, wins))
    }
}

// AVX2 has no masked load of 16-bit values.
#[inline(always)]
unsafe fn load_some(p: *const u16, count: usize) -> __m128i {
    let mut lanes = [0u16; 8];
    // SAFETY: the caller guarantees `count` readable values, at most 8; the array is a vector's
    // size.
    unsafe {
        std::ptr::copy_nonoverlapping(p, lanes.as_mut_ptr(), count);
        _mm_loadu_si128(lanes.as_ptr().cast())
    }
}

#[inline(always)]
unsafe fn store_some(p: *mut u16, count: usize, v: __m128i) {
    let mut lanes = [0u16; 8];
    // SAFETY: the caller guarantees `count` writable values, at most 8; the array is a vector's
    // size.
    unsafe {
        _mm_storeu_si128(lanes.as_mut_ptr().cast(), v);
        std::ptr::copy_nonoverlapping(lanes.as_ptr(), p, count);
    }
}

#[inline(always)]
pub(super) unsafe fn stream_256(p: *mut __m128i, v: __m256i) {
    // SAFETY: the caller has AVX2, and 32 bytes at a multiple of 16.
    unsafe {
        _mm_stream_si128(p, _mm256_castsi256_si128(v));
        _mm_stream_si128(p.add(1), _mm256_extracti128_si256::<1>(v));
    }
}

#[inline(always)]
unsafe fn narrow_f16(v: __m256) -> __m128i {
    // SAFETY: the caller has F16C.
    unsafe { _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v) }
}

#[inline(always)]
unsafe fn widen_bf16(v: __m128i) -> __m256 {
    // SAFETY: the caller has AVX2.
    unsafe { _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(v))) }
}

/// Rounds to nearest, ties to even; NaN stays NaN.
#[inline(always)]
unsafe fn narrow_bf16(v: __m256) -> __m128i {
    // SAFETY: the caller has AVX2.
    unsafe {
        let bits = _mm256_castps_si256(v);
        let high = _mm256_srli_epi32::<16>(bits);
        let odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
        let up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
        let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(v, v));
        let quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
        let rounded = _mm256_blendv_epi8(_mm256_srli_epi32::<16>(up), quiet, nan);
        _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256::<1>(rounded))
    }
}
