//! NEON vectors for plus-times: f32 and f64, and f16 and bf16 widened to f32.

use std::arch::aarch64::*;

use gustav_core::{Scalar, bf16, f16};

use super::vector::{Vector, Work};

/// The 128-bit registers.
pub struct Neon;

macro_rules! vector {
    ($t:ty, $accum:ty, $v:ty, $lanes:literal,
     $splat:ident, $add:ident, $mul:ident, $fma:ident, $load:ident, $store:ident) => {
        impl Vector<$t> for Neon {
            type V = $v;
            type Mask = usize;
            const LANES: usize = $lanes;
            const WIDTH: usize = 8;
            const WHOLE: bool = true;
            const GROUP_WIDTH: usize = 4;

            #[inline(always)]
            unsafe fn splat(a: $accum) -> $v {
                // SAFETY: this and every other block below: NEON is part of AArch64, and the
                // caller says which lanes behind the pointers may be touched.
                unsafe { $splat(a) }
            }
            #[inline(always)]
            unsafe fn mask(count: usize) -> usize {
                count
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> $v {
                // SAFETY: as above.
                unsafe { Self::load_masked(p, $lanes) }
            }
            #[inline(always)]
            unsafe fn load_masked(p: *const $t, count: usize) -> $v {
                let mut lanes = [<$accum as Scalar>::zero(); $lanes];
                for k in 0..count {
                    // SAFETY: as above.
                    lanes[k] = unsafe { p.add(k).read() }.to_accum();
                }
                // SAFETY: as above.
                unsafe { $load(lanes.as_ptr()) }
            }
            #[inline(always)]
            unsafe fn store(p: *mut $t, v: $v) {
                // SAFETY: as above.
                unsafe { Self::store_masked(p, $lanes, v) }
            }
            #[inline(always)]
            unsafe fn store_masked(p: *mut $t, count: usize, v: $v) {
                let mut lanes = [<$accum as Scalar>::zero(); $lanes];
                // SAFETY: as above.
                unsafe { $store(lanes.as_mut_ptr(), v) };
                for k in 0..count {
                    // SAFETY: as above.
                    unsafe { p.add(k).write(<$t as Scalar>::from_accum(lanes[k])) }
                }
            }
            #[inline(always)]
            unsafe fn stream(p: *mut $t, v: $v) {
                // SAFETY: as above.
                unsafe { Self::store_masked(p, $lanes, v) }
            }
            #[inline(always)]
            unsafe fn stream_pieces(p: *mut $t, v: $v) {
                // SAFETY: as above.
                unsafe { Self::store_masked(p, $lanes, v) }
            }
            // Stable Rust has no prefetch for this instruction set.
            #[inline(always)]
            unsafe fn fetch(_p: *const $t) {}
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
                unsafe { $fma(acc, a, b) }
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
                unsafe { work.run::<Self>() }
            }
        }
    };
}

vector!(
    f32,
    f32,
    float32x4_t,
    4,
    vdupq_n_f32,
    vaddq_f32,
    vmulq_f32,
    vfmaq_f32,
    vld1q_f32,
    vst1q_f32
);
vector!(
    f64,
    f64,
    float64x2_t,
    2,
    vdupq_n_f64,
    vaddq_f64,
    vmulq_f64,
    vfmaq_f64,
    vld1q_f64,
    vst1q_f64
);
vector!(
    f16,
    f32,
    float32x4_t,
    4,
    vdupq_n_f32,
    vaddq_f32,
    vmulq_f32,
    vfmaq_f32,
    vld1q_f32,
    vst1q_f32
);
vector!(
    bf16,
    f32,
    float32x4_t,
    4,
    vdupq_n_f32,
    vaddq_f32,
    vmulq_f32,
    vfmaq_f32,
    vld1q_f32,
    vst1q_f32
);
