//! NEON vectors for plus-times: f32 and f64, and f16 and bf16 widened to f32.

use std::arch::aarch64::*;

use gustav_core::{Scalar, bf16, f16};

use super::intrinsics::vector;
use super::vector::{Vector, Work};

/// The 128-bit registers.
pub struct Neon;

macro_rules! vector_128 {
    ($t:ty => $accum:ty, $v:ty, $lanes:literal, [$($names:ident),*], $fma:ident) => {
        vector!(Neon, $t => $accum, $v, usize, $lanes, 4, [$($names),*],
            mul_add: |a, b, acc| $fma(acc, a, b),
            mask: |count| count,
            load: |p| <Self as Vector<$t>>::load_masked(p, $lanes),
            load_masked: |p, count| {
                let mut lanes = [<$accum as Scalar>::zero(); $lanes];
                for k in 0..count {
                    lanes[k] = p.add(k).read().to_accum();
                }
                <Self as Vector<$t>>::load_sums(lanes.as_ptr())
            },
            store: |p, v| <Self as Vector<$t>>::store_masked(p, $lanes, v),
            store_masked: |p, count, v| {
                let mut lanes = [<$accum as Scalar>::zero(); $lanes];
                <Self as Vector<$t>>::store_sums(lanes.as_mut_ptr(), v);
                for k in 0..count {
                    p.add(k).write(<$t as Scalar>::from_accum(lanes[k]));
                }
            },
            stream: |p, v| <Self as Vector<$t>>::store_masked(p, $lanes, v),
            stream_16: |p, v| <Self as Vector<$t>>::store_masked(p, $lanes, v),
            // Stable Rust has no prefetch for this instruction set.
            prefetch: |_p| (),
            enter: |work| work.run::<Self>());
    };
}

vector_128!(f32 => f32, float32x4_t, 4,
    [vdupq_n_f32, vaddq_f32, vmulq_f32, vld1q_f32, vst1q_f32], vfmaq_f32);
vector_128!(f64 => f64, float64x2_t, 2,
    [vdupq_n_f64, vaddq_f64, vmulq_f64, vld1q_f64, vst1q_f64], vfmaq_f64);
vector_128!(f16 => f32, float32x4_t, 4,
    [vdupq_n_f32, vaddq_f32, vmulq_f32, vld1q_f32, vst1q_f32], vfmaq_f32);
vector_128!(bf16 => f32, float32x4_t, 4,
    [vdupq_n_f32, vaddq_f32, vmulq_f32, vld1q_f32, vst1q_f32], vfmaq_f32);
