//! AVX-512: masks touch partial vectors.

use std::arch::x86_64::*;

use super::{Element, Kernel, Lanes};

/// # Safety
/// The machine has AVX-512 F, BW, DQ and VL.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn run<E: Element, K: Kernel<E>>(kernel: K) -> K::Output {
    // SAFETY: promised by the caller.
    unsafe { kernel.run::<E::Avx512>() }
}

macro_rules! lanes {
    ($name:ident, $elem:ty, $n:literal, $reg:ty, $index:ty, $mask:ty, $zero:ident, $load:ident,
     $maskz_load:ident, $store:ident, $add:ident, $fma:ident, $sum:ident, $gather:ident,
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

        // SAFETY of every block below: `Lanes` demands the instruction set and the pointers.
        impl Lanes for $name {
            type Elem = $elem;
            type Index = $index;
            const N: usize = $n;

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
            unsafe fn store(self, to: *mut $elem) {
                // SAFETY: see above.
                unsafe { $store(to, self.0) }
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
    _mm512_storeu_ps,
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
    _mm512_storeu_pd,
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
