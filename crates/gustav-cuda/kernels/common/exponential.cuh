// Exponentials, and the maximum that a softmax subtracts.
#pragma once
#include "common/semiring.cuh"

__device__ __forceinline__ f32 exponential(f32 x) { return exp2f(x * 1.4426950408889634f); }
__device__ __forceinline__ f64 exponential(f64 x) { return exp(x); }
__device__ __forceinline__ f32 logarithm(f32 x) { return logf(x); }
__device__ __forceinline__ f64 logarithm(f64 x) { return log(x); }
// Ignores NaN.
__device__ __forceinline__ f32 larger(f32 a, f32 b) { return fmaxf(a, b); }
__device__ __forceinline__ f64 larger(f64 a, f64 b) { return fmax(a, b); }

// The value subtracted from scores; finite even where all of them are -infinity.
template <class Accum>
__device__ __forceinline__ Accum base_of(Accum largest) {
    return largest == Limits<Accum>::lowest() ? Accum(0) : largest;
}
