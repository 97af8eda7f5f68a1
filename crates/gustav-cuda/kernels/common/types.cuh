// Scalars under the host's names, and the type that each is summed in.
//
// 16-bit values are held as bits and widened by ptx/convert.cuh, so that no header of the CUDA
// toolkit is needed at run time.
//
// `#include "gustav_cuda::M::B"` declares the parameter block B, which src/M.rs declares and documents.
#pragma once
#include "ptx/convert.cuh"

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

typedef float f32;
typedef double f64;
typedef int i32;
typedef long long i64;

struct f16 {
    unsigned short bits;
};
struct bf16 {
    unsigned short bits;
};

template <class T>
struct Accumulator {
    using Type = T;
};
template <>
struct Accumulator<f16> {
    using Type = f32;
};
template <>
struct Accumulator<bf16> {
    using Type = f32;
};

template <class T>
__device__ __forceinline__ T widen(T value) {
    return value;
}
__device__ __forceinline__ f32 widen(f16 value) { return ptx::widen_f16(value.bits); }
__device__ __forceinline__ f32 widen(bf16 value) { return ptx::widen_bf16(value.bits); }

// Rounds a sum to the stored type, to nearest even.
template <class T>
struct Narrow {
    static __device__ __forceinline__ T from(T sum) { return sum; }
};
template <>
struct Narrow<f16> {
    static __device__ __forceinline__ f16 from(f32 sum) { return {ptx::narrow_f16(sum)}; }
};
template <>
struct Narrow<bf16> {
    static __device__ __forceinline__ bf16 from(f32 sum) { return {ptx::narrow_bf16(sum)}; }
};

// A kernel's scalar argument: its bits in the low bytes of 64.
template <class A>
__device__ __forceinline__ A from_bits(u64 bits) {
    A value;
    memcpy(&value, &bits, sizeof(A));
    return value;
}
