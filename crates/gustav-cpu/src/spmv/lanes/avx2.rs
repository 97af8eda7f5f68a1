//! AVX2 with FMA: mask vectors select the lanes of partial vectors.

use std::arch::x86_64::*;

use super::{Element, Kernel, Lanes};

/// # Safety
/// The machine has AVX2 and FMA.
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn run<E: Element, K: Kernel<E>>(kernel: K) -> K::Output {
    // SAFETY: promised by the caller.
    unsafe { kernel.run::<E::Avx2>() }
}

/// The same with arrays for lanes, whose operations become instructions of AVX2, but for gathers.
///
/// # Safety
/// As [`run`].
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn run_plain<E: Element, K: Kernel<E>>(kernel: K) -> K::Output {
    // SAFETY: promised by the caller.
    unsafe { kernel.run::<E::Plain>() }
}

// Eight ones, then eight zeros: a vector read at 8 - n selects the first n lanes.
static MASK32: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
static MASK64: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];

#[derive(Clone, Copy)]
pub(crate) struct F32x8(__m256);

#[derive(Clone, Copy)]
pub(crate) struct F64x4(__m256d);

#[inline(always)]
unsafe fn mask32(n: usize) -> __m256i {
    // SAFETY: n is at most 8; the table holds 16.
    unsafe { _mm256_loadu_si256(MASK32.as_ptr().add(8 - n).cast()) }
}

#[inline(always)]
unsafe fn mask64(n: usize) -> __m256i {
    // SAFETY: n is at most 4; the table holds 8.
    unsafe { _mm256_loadu_si256(MASK64.as_ptr().add(4 - n).cast()) }
}

/// The first `n` of `N` 16-bit indices, zeros behind.
#[inline(always)]
unsafe fn padded<const N: usize>(from: *const u16, n: usize) -> [u16; N] {
    // SAFETY: the caller's pointer is readable for n indices.
    std::array::from_fn(|k| if k < n { unsafe { *from.add(k) } } else { 0 })
}

// SAFETY of every block below: `Lanes` requires the instruction set and valid pointers.
impl Lanes for F32x8 {
    type Elem = f32;
    type Index = __m256i;
    const N: usize = 8;
    const GATHERS: bool = true;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_setzero_ps() })
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_loadu_ps(from) })
    }
    #[inline(always)]
    unsafe fn load_first(from: *const f32, n: usize) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_maskload_ps(from, mask32(n)) })
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_add_ps(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_fmadd_ps(self.0, a.0, b.0) })
    }
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        // SAFETY: see above.
        unsafe {
            let v = _mm_add_ps(_mm256_castps256_ps128(self.0), _mm256_extractf128_ps::<1>(self.0));
            let v = _mm_add_ps(v, _mm_movehl_ps(v, v));
            _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)))
        }
    }
    #[inline(always)]
    fn prefetch<T>(at: *const T) {
        // SAFETY: a prefetch of any address does no harm.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
    #[inline(always)]
    unsafe fn index_u32(from: *const u32) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }
    #[inline(always)]
    unsafe fn index_u32_first(from: *const u32, n: usize) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_maskload_epi32(from.cast(), mask32(n)) }
    }
    #[inline(always)]
    unsafe fn index_u16(from: *const u16) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast())) }
    }
    #[inline(always)]
    unsafe fn index_u16_first(from: *const u16, n: usize) -> __m256i {
        // SAFETY: see above; the padded copy has 8 indices.
        unsafe { Self::index_u16(padded::<8>(from, n).as_ptr()) }
    }
    #[inline(always)]
    unsafe fn gather(from: *const f32, index: __m256i) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_i32gather_ps::<4>(from, index) })
    }
    #[inline(always)]
    unsafe fn gather_first(from: *const f32, index: __m256i, n: usize) -> Self {
        // SAFETY: see above.
        Self(unsafe {
            let mask = _mm256_castsi256_ps(mask32(n));
            _mm256_mask_i32gather_ps::<4>(_mm256_setzero_ps(), from, index, mask)
        })
    }
}

impl Lanes for F64x4 {
    type Elem = f64;
    type Index = __m128i;
    const N: usize = 4;
    const GATHERS: bool = true;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_setzero_pd() })
    }
    #[inline(always)]
    unsafe fn load(from: *const f64) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_loadu_pd(from) })
    }
    #[inline(always)]
    unsafe fn load_first(from: *const f64, n: usize) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_maskload_pd(from, mask64(n)) })
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_add_pd(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn mul_add(self, a: Self, b: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_fmadd_pd(self.0, a.0, b.0) })
    }
    #[inline(always)]
    unsafe fn sum(self) -> f64 {
        // SAFETY: see above.
        unsafe {
            let v = _mm_add_pd(_mm256_castpd256_pd128(self.0), _mm256_extractf128_pd::<1>(self.0));
            _mm_cvtsd_f64(_mm_add_sd(v, _mm_unpackhi_pd(v, v)))
        }
    }
    #[inline(always)]
    fn prefetch<T>(at: *const T) {
        // SAFETY: a prefetch of any address does no harm.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
    #[inline(always)]
    unsafe fn index_u32(from: *const u32) -> __m128i {
        // SAFETY: see above.
        unsafe { _mm_loadu_si128(from.cast()) }
    }
    #[inline(always)]
    unsafe fn index_u32_first(from: *const u32, n: usize) -> __m128i {
        // SAFETY: see above.
        unsafe { _mm_maskload_epi32(from.cast(), _mm256_castsi256_si128(mask32(n))) }
    }
    #[inline(always)]
    unsafe fn index_u16(from: *const u16) -> __m128i {
        // SAFETY: see above.
        unsafe { _mm_cvtepu16_epi32(_mm_loadl_epi64(from.cast())) }
    }
    #[inline(always)]
    unsafe fn index_u16_first(from: *const u16, n: usize) -> __m128i {
        // SAFETY: see above; the padded copy has 4 indices.
        unsafe { Self::index_u16(padded::<4>(from, n).as_ptr()) }
    }
    #[inline(always)]
    unsafe fn gather(from: *const f64, index: __m128i) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_i32gather_pd::<8>(from, index) })
    }
    #[inline(always)]
    unsafe fn gather_first(from: *const f64, index: __m128i, n: usize) -> Self {
        // SAFETY: see above.
        Self(unsafe {
            let mask = _mm256_castsi256_pd(mask64(n));
            _mm256_mask_i32gather_pd::<8>(_mm256_setzero_pd(), from, index, mask)
        })
    }
}
