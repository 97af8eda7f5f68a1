// The mark of "no entry" in a dense row of C: minus zero.
//
// It compares equal to zero, so a dense C is correct as it stands, and no entry ever holds it:
// minus zero plus zero is plus zero, and every sum passes through `entry`. Dense memory thus keeps
// the pattern, stored zeros included.
#pragma once
#include "common/types.cuh"

__device__ __forceinline__ bool is_absent(f32 v) { return __float_as_uint(v) == 0x80000000u; }
__device__ __forceinline__ bool is_absent(f64 v) {
    return (u64)__double_as_longlong(v) == 0x8000000000000000ull;
}

template <class T>
__device__ __forceinline__ T absent() {
    return T(-0.0);
}

// The value as an entry holds it: minus zero becomes plus zero.
template <class T>
__device__ __forceinline__ T entry(T value) {
    return value + T(0);
}

// The value that is stored for a finished sum.
template <class T>
__device__ __forceinline__ T scaled(T alpha, T sum) {
    return is_absent(sum) ? sum : entry(alpha * sum);
}
