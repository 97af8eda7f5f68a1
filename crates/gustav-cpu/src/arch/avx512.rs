//! AVX-512 vectors for plus-times: f32 and f64, and f16 and bf16 widened to f32.

use std::arch::x86_64::*;

use gustav_core::{bf16, f16};

use super::avx2::stream_256;
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

macro_rules! vector {
    ($t:ty, $accum:ty, $v:ty, $mask:ty, $lanes:literal,
     $splat:ident, $add:ident, $mul:ident, $fma:ident, $load:ident, $store:ident,
     load: |$lp:ident, $lm:ident| $load_masked:expr,
     store: |$sp:ident, $sm:ident, $sv:ident| $store_masked:expr,
     stream: |$tp:ident, $tv:ident| $stream:expr,
     pieces: |$qp:ident, $qv:ident| $pieces:expr) => {
        impl Vector<$t> for Avx512 {
            type V = $v;
            type Mask = $mask;
            const LANES: usize = $lanes;
            const WIDTH: usize = 8;
            const WHOLE: bool = true;
            const GROUP_WIDTH: usize = 4;

            #[inline(always)]
            unsafe fn splat(a: $accum) -> $v {
                // SAFETY: this and every other intrinsic below: the caller has AVX-512, and
                // says which lanes behind the pointers may be touched.
                unsafe { $splat(a) }
            }
            #[inline(always)]
            unsafe fn mask(count: usize) -> $mask {
                ((1u32 << count) - 1) as $mask
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> $v {
                // SAFETY: as above.
                unsafe { Self::load_masked(p, !0) }
            }
            #[inline(always)]
            unsafe fn load_masked($lp: *const $t, $lm: $mask) -> $v {
                // SAFETY: as above.
                unsafe { $load_masked }
            }
            #[inline(always)]
            unsafe fn store(p: *mut $t, v: $v) {
                // SAFETY: as above.
                unsafe { Self::store_masked(p, !0, v) }
            }
            #[inline(always)]
            unsafe fn store_masked($sp: *mut $t, $sm: $mask, $sv: $v) {
                // SAFETY: as above.
                unsafe { $store_masked }
            }
            #[inline(always)]
            unsafe fn stream($tp: *mut $t, $tv: $v) {
                // SAFETY: as above; aligned, says the caller.
                unsafe { $stream }
            }
            #[inline(always)]
            unsafe fn stream_pieces($qp: *mut $t, $qv: $v) {
                // SAFETY: as above; aligned to 16 bytes, says the caller.
                unsafe { $pieces }
            }
            #[inline(always)]
            unsafe fn fetch(p: *const $t) {
                // SAFETY: as above; a prefetch never faults.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
            }
            #[inline(always)]
            unsafe fn load_sums(p: *const $accum) -> $v {
                // SAFETY: as above.
                unsafe { $load(p) }
            }
            #[inline(always)]
            unsafe fn store_sums(p: *mut $accum, v: $v) {
                // SAFETY: as above.
                unsafe { $store(p, v) }
            }
            #[inline(always)]
            unsafe fn mul_add(a: $v, b: $v, acc: $v) -> $v {
                // SAFETY: as above.
                unsafe { $fma(a, b, acc) }
            }
            #[inline(always)]
            unsafe fn add(a: $v, b: $v) -> $v {
                // SAFETY: as above.
                unsafe { $add(a, b) }
            }
            #[inline(always)]
            unsafe fn scale(factor: $v, sum: $v) -> $v {
                // SAFETY: as above.
                unsafe { $mul(factor, sum) }
            }
            #[inline(always)]
            unsafe fn enter<W: Work<$t>>(work: W) {
                // SAFETY: as above.
                unsafe { enable::<$t, W>(work) }
            }
        }
    };
}

vector!(f32, f32, __m512, __mmask16, 16,
    _mm512_set1_ps, _mm512_add_ps, _mm512_mul_ps, _mm512_fmadd_ps,
    _mm512_loadu_ps, _mm512_storeu_ps,
    load: |p, m| _mm512_maskz_loadu_ps(m, p),
    store: |p, m, v| _mm512_mask_storeu_ps(p, m, v),
    stream: |p, v| _mm512_stream_ps(p, v),
    pieces: |p, v| stream_512(p.cast(), _mm512_castps_si512(v)));

vector!(f64, f64, __m512d, __mmask8, 8,
    _mm512_set1_pd, _mm512_add_pd, _mm512_mul_pd, _mm512_fmadd_pd,
    _mm512_loadu_pd, _mm512_storeu_pd,
    load: |p, m| _mm512_maskz_loadu_pd(m, p),
    store: |p, m, v| _mm512_mask_storeu_pd(p, m, v),
    stream: |p, v| _mm512_stream_pd(p, v),
    pieces: |p, v| stream_512(p.cast(), _mm512_castpd_si512(v)));

vector!(f16, f32, __m512, __mmask16, 16,
    _mm512_set1_ps, _mm512_add_ps, _mm512_mul_ps, _mm512_fmadd_ps,
    _mm512_loadu_ps, _mm512_storeu_ps,
    load: |p, m| _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, p.cast())),
    store: |p, m, v| _mm256_mask_storeu_epi16(p.cast(), m, narrow_f16(v)),
    stream: |p, v| _mm256_stream_si256(p.cast(), narrow_f16(v)),
    pieces: |p, v| stream_256(p.cast(), narrow_f16(v)));

vector!(bf16, f32, __m512, __mmask16, 16,
    _mm512_set1_ps, _mm512_add_ps, _mm512_mul_ps, _mm512_fmadd_ps,
    _mm512_loadu_ps, _mm512_storeu_ps,
    load: |p, m| widen_bf16(_mm256_maskz_loadu_epi16(m, p.cast())),
    store: |p, m, v| _mm256_mask_storeu_epi16(p.cast(), m, narrow_bf16(v)),
    stream: |p, v| _mm256_stream_si256(p.cast(), narrow_bf16(v)),
    pieces: |p, v| stream_256(p.cast(), narrow_bf16(v)));

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
