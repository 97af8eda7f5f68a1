//! AVX-512: mask registers select the lanes of partial vectors.

use std::arch::x86_64::*;

use super::{Element, Kernel, Lanes, MaskLanes};

/// # Safety
/// The machine has AVX-512 F, BW, DQ and VL.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn run<E: Element, K: Kernel<E>>(kernel: K) -> K::Output {
    // SAFETY: promised by the caller.
    unsafe { kernel.run_masked::<E::Avx512>() }
}

macro_rules! lanes {
    ($name:ident, $elem:ty, $n:literal, $reg:ty, $index:ty, $mask:ty, $zero:ident, $load:ident,
     $maskz_load:ident, $add:ident, $fma:ident, $sum:ident, $gather:ident,
     $mask_gather:ident, $scale:literal, $index_load:expr, $index_maskz:ident, $widen:ident,
     $half_load:expr, $half_maskz:ident) => {
        #[derive(Clone, Copy)]
        pub(crate) struct $name($reg);

        impl $name {
            #[inline(always)]
            fn mask(n: usize) -> $mask {
                ((1u32 << n) - 1) as $mask
            }
        }

        // SAFETY of every block below: `Lanes` requires the instruction set and valid pointers.
        impl Lanes for $name {
            type Elem = $elem;
            type Index = $index;
            const N: usize = $n;
            const GATHERS: bool = true;

            #[inline(always)]
            unsafe fn zero() -> Self {
                // SAFETY: see above.
                Self(unsafe { $zero() })
            }
            #[inline(always)]
            unsafe fn load(from: *const $elem) -> Self {
                // SAFETY: see above.
                Self(unsafe { $load(from) })
            }
            #[inline(always)]
            unsafe fn load_first(from: *const $elem, n: usize) -> Self {
                // SAFETY: see above.
                Self(unsafe { $maskz_load(Self::mask(n), from) })
            }
            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $add(self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn mul_add(self, a: Self, b: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $fma(self.0, a.0, b.0) })
            }
            #[inline(always)]
            unsafe fn sum(self) -> $elem {
                // SAFETY: see above.
                unsafe { $sum(self.0) }
            }
            #[inline(always)]
            fn prefetch<T>(at: *const T) {
                // SAFETY: a prefetch of any address does no harm.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
            }
            #[inline(always)]
            unsafe fn index_u32(from: *const u32) -> $index {
                // SAFETY: see above.
                unsafe { $index_load(from.cast()) }
            }
            #[inline(always)]
            unsafe fn index_u32_first(from: *const u32, n: usize) -> $index {
                // SAFETY: see above.
                unsafe { $index_maskz(Self::mask(n), from.cast()) }
            }
            #[inline(always)]
            unsafe fn index_u16(from: *const u16) -> $index {
                // SAFETY: see above.
                unsafe { $widen($half_load(from.cast())) }
            }
            #[inline(always)]
            unsafe fn index_u16_first(from: *const u16, n: usize) -> $index {
                // SAFETY: see above.
                unsafe { $widen($half_maskz(Self::mask(n), from.cast())) }
            }
            #[inline(always)]
            unsafe fn gather(from: *const $elem, index: $index) -> Self {
                // SAFETY: see above.
                Self(unsafe { $gather::<$scale>(index, from) })
            }
            #[inline(always)]
            unsafe fn gather_first(from: *const $elem, index: $index, n: usize) -> Self {
                // SAFETY: see above.
                Self(unsafe { $mask_gather::<$scale>($zero(), Self::mask(n), index, from) })
            }
        }
    };
}

lanes!(
    F32x16,
    f32,
    16,
    __m512,
    __m512i,
    __mmask16,
    _mm512_setzero_ps,
    _mm512_loadu_ps,
    _mm512_maskz_loadu_ps,
    _mm512_add_ps,
    _mm512_fmadd_ps,
    _mm512_reduce_add_ps,
    _mm512_i32gather_ps,
    _mm512_mask_i32gather_ps,
    4,
    _mm512_loadu_si512,
    _mm512_maskz_loadu_epi32,
    _mm512_cvtepu16_epi32,
    _mm256_loadu_si256,
    _mm256_maskz_loadu_epi16
);
lanes!(
    F64x8,
    f64,
    8,
    __m512d,
    __m256i,
    __mmask8,
    _mm512_setzero_pd,
    _mm512_loadu_pd,
    _mm512_maskz_loadu_pd,
    _mm512_add_pd,
    _mm512_fmadd_pd,
    _mm512_reduce_add_pd,
    _mm512_i32gather_pd,
    _mm512_mask_i32gather_pd,
    8,
    _mm256_loadu_si256,
    _mm256_maskz_loadu_epi32,
    _mm256_cvtepu16_epi32,
    _mm_loadu_si128,
    _mm_maskz_loadu_epi16
);

macro_rules! mask_lanes {
    ($name:ident, $elem:ty, $columns:literal, $mask:ty, $set1:ident, $mul:ident, $mask_store:ident, $store:ident,
     $maskz_load:ident, $expand:ident, $compress:ident, $mask_add:ident, $splat_last:expr,
     $up:expr, $index_maskz:ident, $half_maskz:ident, $widen:ident, $mask_gather:ident,
     $scale:literal, $zero:ident, $transpose:ident, $mask_fma:ident, $lengths:ident,
     $longer:ident, $than:ident) => {
        // SAFETY of every block below: `MaskLanes` requires the instruction set and valid pointers.
        impl MaskLanes for $name {
            const COLUMNS: usize = $columns;
            type Columns = [Self; $columns];

            #[inline(always)]
            unsafe fn splat(value: $elem) -> Self {
                // SAFETY: see above.
                Self(unsafe { $set1(value) })
            }
            #[inline(always)]
            unsafe fn mul(self, other: Self) -> Self {
                // SAFETY: see above.
                Self(unsafe { $mul(self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn store_first(self, to: *mut $elem, n: usize) {
                // SAFETY: see above.
                unsafe { $mask_store(to, Self::mask(n), self.0) }
            }
            #[inline(always)]
            unsafe fn load_mask(from: *const $elem, mask: u32) -> Self {
                // SAFETY: see above.
                Self(unsafe { $maskz_load(mask as $mask, from) })
            }
            #[inline(always)]
            unsafe fn expand(from: *const $elem, mask: u32) -> Self {
                // SAFETY: see above.
                Self(unsafe { $expand(mask as $mask, from) })
            }
            #[inline(always)]
            unsafe fn compress(self, to: *mut $elem, mask: u32) {
                // SAFETY: see above.
                unsafe { $store(to, $compress(mask as $mask, self.0)) }
            }
            #[inline(always)]
            unsafe fn add_mask(self, other: Self, mask: u32) -> Self {
                // SAFETY: see above.
                Self(unsafe { $mask_add(self.0, mask as $mask, self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn splat_last(self, mask: u32) -> Self {
                // SAFETY: see above.
                Self(unsafe { $splat_last(mask as $mask, self.0) })
            }
            #[inline(always)]
            unsafe fn add_earlier<const STEP: usize>(self, mask: u32) -> Self {
                // SAFETY: see above.
                Self(unsafe { $mask_add(self.0, mask as $mask, self.0, $up(self.0, 1 << STEP)) })
            }
            #[inline(always)]
            unsafe fn index_u32_mask(from: *const u32, mask: u32) -> Self::Index {
                // SAFETY: see above.
                unsafe { $index_maskz(mask as $mask, from.cast()) }
            }
            #[inline(always)]
            unsafe fn index_u16_mask(from: *const u16, mask: u32) -> Self::Index {
                // SAFETY: see above.
                unsafe { $widen($half_maskz(mask as $mask, from.cast())) }
            }
            #[inline(always)]
            unsafe fn gather_mask(from: *const $elem, index: Self::Index, mask: u32) -> Self {
                // SAFETY: see above.
                Self(unsafe { $mask_gather::<$scale>($zero(), mask as $mask, index, from) })
            }
            #[inline(always)]
            unsafe fn mul_add_mask(self, a: Self, b: Self, mask: u32) -> Self {
                // SAFETY: see above.
                Self(unsafe { $mask_fma(self.0, a.0, b.0, mask as $mask) })
            }
            #[inline(always)]
            unsafe fn columns(row: impl Fn(usize) -> *const $elem) -> [Self; $columns] {
                // SAFETY: see above.
                unsafe { $transpose(row) }
            }
            #[inline(always)]
            unsafe fn longest(lengths: &[u32; 16]) -> usize {
                // SAFETY: see above.
                unsafe {
                    _mm512_reduce_max_epi32(_mm512_loadu_epi32(lengths.as_ptr().cast())) as usize
                }
            }
            #[inline(always)]
            unsafe fn longer(lengths: &[u32; 16], than: usize) -> u32 {
                // SAFETY: see above.
                unsafe {
                    let lengths = $lengths(lengths.as_ptr().cast());
                    u32::from($longer(lengths, $than(than as i32)))
                }
            }
        }
    };
}

mask_lanes!(
    F32x16,
    f32,
    4,
    __mmask16,
    _mm512_set1_ps,
    _mm512_mul_ps,
    _mm512_mask_storeu_ps,
    _mm512_storeu_ps,
    _mm512_maskz_loadu_ps,
    _mm512_maskz_expandloadu_ps,
    _mm512_maskz_compress_ps,
    _mm512_mask_add_ps,
    |m, v| _mm512_maskz_permutexvar_ps(m, _mm512_set1_epi32(15), v),
    up_f32,
    _mm512_maskz_loadu_epi32,
    _mm256_maskz_loadu_epi16,
    _mm512_cvtepu16_epi32,
    _mm512_mask_i32gather_ps,
    4,
    _mm512_setzero_ps,
    columns_f32,
    _mm512_mask3_fmadd_ps,
    _mm512_loadu_epi32,
    _mm512_cmpgt_epu32_mask,
    _mm512_set1_epi32
);
mask_lanes!(
    F64x8,
    f64,
    2,
    __mmask8,
    _mm512_set1_pd,
    _mm512_mul_pd,
    _mm512_mask_storeu_pd,
    _mm512_storeu_pd,
    _mm512_maskz_loadu_pd,
    _mm512_maskz_expandloadu_pd,
    _mm512_maskz_compress_pd,
    _mm512_mask_add_pd,
    |m, v| _mm512_maskz_permutexvar_pd(m, _mm512_set1_epi64(7), v),
    up_f64,
    _mm256_maskz_loadu_epi32,
    _mm_maskz_loadu_epi16,
    _mm256_cvtepu16_epi32,
    _mm512_mask_i32gather_pd,
    8,
    _mm512_setzero_pd,
    columns_f64,
    _mm512_mask3_fmadd_pd,
    _mm256_loadu_epi32,
    _mm256_cmpgt_epu32_mask,
    _mm256_set1_epi32
);

/// Lanes moved up by `lanes` (1, 2, 4 or 8), zeros below.
#[inline(always)]
unsafe fn up_f32(v: __m512, lanes: usize) -> __m512 {
    // SAFETY: called where AVX-512 is available.
    unsafe {
        let (v, zero) = (_mm512_castps_si512(v), _mm512_setzero_si512());
        _mm512_castsi512_ps(match lanes {
            1 => _mm512_alignr_epi32::<15>(v, zero),
            2 => _mm512_alignr_epi32::<14>(v, zero),
            4 => _mm512_alignr_epi32::<12>(v, zero),
            _ => _mm512_alignr_epi32::<8>(v, zero),
        })
    }
}

/// Lanes moved up by `lanes` (1, 2 or 4), zeros below.
#[inline(always)]
unsafe fn up_f64(v: __m512d, lanes: usize) -> __m512d {
    // SAFETY: called where AVX-512 is available.
    unsafe {
        let (v, zero) = (_mm512_castpd_si512(v), _mm512_setzero_si512());
        _mm512_castsi512_pd(match lanes {
            1 => _mm512_alignr_epi64::<7>(v, zero),
            2 => _mm512_alignr_epi64::<6>(v, zero),
            _ => _mm512_alignr_epi64::<4>(v, zero),
        })
    }
}

/// Four columns of sixteen rows. Quarter q of a register takes the rows 4 q + k, so that the
/// transposition of 4 × 4 within quarters leaves the rows in order.
#[inline(always)]
unsafe fn columns_f32(row: impl Fn(usize) -> *const f32) -> [F32x16; 4] {
    // SAFETY: called where AVX-512 is available, with rows readable for 4 values.
    unsafe {
        let rows = |k: usize| {
            let v = _mm512_castps128_ps512(_mm_loadu_ps(row(k)));
            let v = _mm512_mask_broadcast_f32x4(v, 0x00f0, _mm_loadu_ps(row(4 + k)));
            let v = _mm512_mask_broadcast_f32x4(v, 0x0f00, _mm_loadu_ps(row(8 + k)));
            _mm512_mask_broadcast_f32x4(v, 0xf000, _mm_loadu_ps(row(12 + k)))
        };
        let (a, b, c, d) = (rows(0), rows(1), rows(2), rows(3));
        let pair = |lo, hi| (_mm512_castps_pd(lo), _mm512_castps_pd(hi));
        let (ab01, ab23) = pair(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        let (cd01, cd23) = pair(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
        [
            F32x16(_mm512_castpd_ps(_mm512_unpacklo_pd(ab01, cd01))),
            F32x16(_mm512_castpd_ps(_mm512_unpackhi_pd(ab01, cd01))),
            F32x16(_mm512_castpd_ps(_mm512_unpacklo_pd(ab23, cd23))),
            F32x16(_mm512_castpd_ps(_mm512_unpackhi_pd(ab23, cd23))),
        ]
    }
}

/// Two columns of eight rows, in the same way.
#[inline(always)]
unsafe fn columns_f64(row: impl Fn(usize) -> *const f64) -> [F64x8; 2] {
    // SAFETY: called where AVX-512 is available, with rows readable for 2 values.
    unsafe {
        let rows = |k: usize| {
            let v = _mm512_castpd128_pd512(_mm_loadu_pd(row(k)));
            let v = _mm512_mask_broadcast_f64x2(v, 0x0c, _mm_loadu_pd(row(2 + k)));
            let v = _mm512_mask_broadcast_f64x2(v, 0x30, _mm_loadu_pd(row(4 + k)));
            _mm512_mask_broadcast_f64x2(v, 0xc0, _mm_loadu_pd(row(6 + k)))
        };
        let (a, b) = (rows(0), rows(1));
        [F64x8(_mm512_unpacklo_pd(a, b)), F64x8(_mm512_unpackhi_pd(a, b))]
    }
}
