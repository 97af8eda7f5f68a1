//! AVX-512 vectors for plus-times: f32 and f64, and f16 and bf16 widened to f32.

use std::arch::x86_64::*;
use std::mem::transmute;

use gustav_core::{bf16, f16};

use super::avx2::stream_256;
use super::intrinsics::vector;
use super::vector::{Vector, Work};

/// The 512-bit registers.
pub struct Avx512;

/// Compiles `work` for AVX-512.
///
/// # Safety
/// The machine has [`Isa::Avx512`](super::Isa::Avx512).
#[inline(never)]
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"
)]
pub unsafe fn enable<T, W>(work: W)
where
    T: gustav_core::Scalar,
    Avx512: Vector<T>,
    W: Work<T>,
{
    // SAFETY: promised by the caller.
    unsafe { work.run::<Avx512>() }
}

/// Masks cost nothing in AVX-512, so whole vectors use the masked loads and stores too.
macro_rules! vector_512 {
    ($t:ty => $accum:ty, $v:ty, $mask:ty, $lanes:literal, [$($names:ident),*], $fma:ident,
     $totals:ident, $win:ident,
     load: |$lp:ident, $lm:ident| $load:expr,
     store: |$sp:ident, $sm:ident, $sv:ident| $store:expr,
     stream: |$tp:ident, $tv:ident| $stream:expr,
     stream_16: |$qp:ident, $qv:ident| $stream_16:expr) => {
        vector!(Avx512, $t => $accum, $v, $mask, $lanes, 4, [$($names),*],
            mul_add: |a, b, acc| $fma(a, b, acc),
            mask: |count| ((1u32 << count) - 1) as $mask,
            load: |p| <Self as Vector<$t>>::load_masked(p, !0),
            load_masked: |$lp, $lm| $load,
            store: |p, v| <Self as Vector<$t>>::store_masked(p, !0, v),
            store_masked: |$sp, $sm, $sv| $store,
            stream: |$tp, $tv| $stream,
            stream_16: |$qp, $qv| $stream_16,
            prefetch: |p| _mm_prefetch::<_MM_HINT_T0>(p.cast()),
            enter: |work| enable::<$t, _>(work),
            totals: |v| $totals(v),
            win: $win);
    };
}

vector_512!(f32 => f32, __m512, __mmask16, 16,
    [_mm512_set1_ps, _mm512_add_ps, _mm512_mul_ps, _mm512_loadu_ps, _mm512_storeu_ps],
    _mm512_fmadd_ps, totals_f32, win_f32,
    load: |p, m| _mm512_maskz_loadu_ps(m, p),
    store: |p, m, v| _mm512_mask_storeu_ps(p, m, v),
    stream: |p, v| _mm512_stream_ps(p, v),
    stream_16: |p, v| stream_512(p.cast(), _mm512_castps_si512(v)));

vector_512!(f64 => f64, __m512d, __mmask8, 8,
    [_mm512_set1_pd, _mm512_add_pd, _mm512_mul_pd, _mm512_loadu_pd, _mm512_storeu_pd],
    _mm512_fmadd_pd, totals_f64, win_f64,
    load: |p, m| _mm512_maskz_loadu_pd(m, p),
    store: |p, m, v| _mm512_mask_storeu_pd(p, m, v),
    stream: |p, v| _mm512_stream_pd(p, v),
    stream_16: |p, v| stream_512(p.cast(), _mm512_castpd_si512(v)));

vector_512!(f16 => f32, __m512, __mmask16, 16,
    [_mm512_set1_ps, _mm512_add_ps, _mm512_mul_ps, _mm512_loadu_ps, _mm512_storeu_ps],
    _mm512_fmadd_ps, totals_f32, win_f32,
    load: |p, m| _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, p.cast())),
    store: |p, m, v| _mm256_mask_storeu_epi16(p.cast(), m, narrow_f16(v)),
    stream: |p, v| _mm256_stream_si256(p.cast(), narrow_f16(v)),
    stream_16: |p, v| stream_256(p.cast(), narrow_f16(v)));

vector_512!(bf16 => f32, __m512, __mmask16, 16,
    [_mm512_set1_ps, _mm512_add_ps, _mm512_mul_ps, _mm512_loadu_ps, _mm512_storeu_ps],
    _mm512_fmadd_ps, totals_f32, win_f32,
    load: |p, m| widen_bf16(_mm256_maskz_loadu_epi16(m, p.cast())),
    store: |p, m, v| _mm256_mask_storeu_epi16(p.cast(), m, narrow_bf16(v)),
    stream: |p, v| _mm256_stream_si256(p.cast(), narrow_bf16(v)),
    stream_16: |p, v| stream_256(p.cast(), narrow_bf16(v)));

// Functions, not closures: closures are not compiled for the instruction set, so intrinsics would
// not be inlined in them.

/// The sums of the lanes of each: two vectors become one of half sums, twice, and the quarters of
/// the last are added.
#[inline(always)]
unsafe fn totals_f32([a, b, c, d]: [__m512; 4]) -> [f32; 4] {
    // SAFETY: the caller has AVX-512; four values are an array's size.
    unsafe {
        let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
        let (low, high) = (_mm512_shuffle_ps::<0x44>(ab, cd), _mm512_shuffle_ps::<0xee>(ab, cd));
        let quarters = _mm512_add_ps(low, high);
        let upper = _mm512_extractf32x8_ps::<1>(quarters);
        let halves = _mm256_add_ps(_mm512_castps512_ps256(quarters), upper);
        let upper = _mm256_extractf128_ps::<1>(halves);
        transmute(_mm_add_ps(_mm256_castps256_ps128(halves), upper))
    }
}

/// The sums of the lanes of each.
#[inline(always)]
unsafe fn totals_f64([a, b, c, d]: [__m512d; 4]) -> [f64; 4] {
    // SAFETY: the caller has AVX-512; four values are an array's size.
    unsafe {
        let ab = _mm512_add_pd(_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b));
        let cd = _mm512_add_pd(_mm512_unpacklo_pd(c, d), _mm512_unpackhi_pd(c, d));
        // Eighths of a and b, and of c and d, side by side.
        let (low, high) =
            (_mm512_shuffle_f64x2::<0x44>(ab, cd), _mm512_shuffle_f64x2::<0xee>(ab, cd));
        let sums = _mm512_add_pd(low, high);
        let even = _mm512_shuffle_f64x2::<0x88>(sums, sums);
        let odd = _mm512_shuffle_f64x2::<0xdd>(sums, sums);
        let sums = _mm256_add_pd(_mm512_castpd512_pd256(even), _mm512_castpd512_pd256(odd));
        transmute(sums)
    }
}

/// [`Vector::win`].
#[inline(always)]
unsafe fn win_f32<const MAX: bool>(
    product: __m512,
    at: __m512,
    best: __m512,
    winner: __m512,
) -> (__m512, __m512) {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let numbers = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(best, best);
        let wins = match MAX {
            true => _mm512_mask_cmp_ps_mask::<_CMP_NLE_UQ>(numbers, product, best),
            false => _mm512_mask_cmp_ps_mask::<_CMP_NGE_UQ>(numbers, product, best),
        };
        (_mm512_mask_mov_ps(best, wins, product), _mm512_mask_mov_ps(winner, wins, at))
    }
}

/// [`Vector::win`].
#[inline(always)]
unsafe fn win_f64<const MAX: bool>(
    product: __m512d,
    at: __m512d,
    best: __m512d,
    winner: __m512d,
) -> (__m512d, __m512d) {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let numbers = _mm512_cmp_pd_mask::<_CMP_ORD_Q>(best, best);
        let wins = match MAX {
            true => _mm512_mask_cmp_pd_mask::<_CMP_NLE_UQ>(numbers, product, best),
            false => _mm512_mask_cmp_pd_mask::<_CMP_NGE_UQ>(numbers, product, best),
        };
        (_mm512_mask_mov_pd(best, wins, product), _mm512_mask_mov_pd(winner, wins, at))
    }
}

#[inline(always)]
unsafe fn stream_512(p: *mut __m128i, v: __m512i) {
    // SAFETY: the caller has AVX-512, and 64 bytes at a multiple of 16.
    unsafe {
        _mm_stream_si128(p, _mm512_castsi512_si128(v));
        _mm_stream_si128(p.add(1), _mm512_extracti32x4_epi32::<1>(v));
        _mm_stream_si128(p.add(2), _mm512_extracti32x4_epi32::<2>(v));
        _mm_stream_si128(p.add(3), _mm512_extracti32x4_epi32::<3>(v));
    }
}

#[inline(always)]
unsafe fn narrow_f16(v: __m512) -> __m256i {
    // SAFETY: the caller has AVX-512.
    unsafe { _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v) }
}

#[inline(always)]
unsafe fn widen_bf16(v: __m256i) -> __m512 {
    // SAFETY: the caller has AVX-512.
    unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(v))) }
}

/// Rounds to nearest, ties to even; NaN stays NaN.
#[inline(always)]
unsafe fn narrow_bf16(v: __m512) -> __m256i {
    // SAFETY: the caller has AVX-512.
    unsafe {
        let bits = _mm512_castps_si512(v);
        let high = _mm512_srli_epi32::<16>(bits);
        let odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
        let up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
        let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(v, v);
        let quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
        _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(_mm512_srli_epi32::<16>(up), nan, quiet))
    }
}
