// 16-bit floating point to and from f32.
#pragma once

namespace ptx {

__device__ __forceinline__ float widen_f16(unsigned short bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

// The lower and the upper half of a word. They are split in PTX, as not every compiler folds a
// shift into the conversion.
__device__ __forceinline__ float widen_f16_lower(unsigned word) {
    float value;
    asm("{ .reg .b16 lower, upper; mov.b32 {lower, upper}, %1; cvt.f32.f16 %0, lower; }"
        : "=f"(value)
        : "r"(word));
    return value;
}
__device__ __forceinline__ float widen_f16_upper(unsigned word) {
    float value;
    asm("{ .reg .b16 lower, upper; mov.b32 {lower, upper}, %1; cvt.f32.f16 %0, upper; }"
        : "=f"(value)
        : "r"(word));
    return value;
}

__device__ __forceinline__ unsigned short narrow_f16(float value) {
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}

__device__ __forceinline__ float widen_bf16(unsigned short bits) {
    return __uint_as_float((unsigned)bits << 16);
}

// The lower and the upper half of a word.
__device__ __forceinline__ float widen_bf16_lower(unsigned word) {
    return __uint_as_float(word << 16);
}
__device__ __forceinline__ float widen_bf16_upper(unsigned word) {
    return __uint_as_float(word & 0xffff0000u);
}

__device__ __forceinline__ unsigned short narrow_bf16(float value) {
#if __CUDA_ARCH__ >= 800
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    // There is no instruction before sm_80: add half a unit in the last place, ties to even.
    unsigned bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
#endif
}

}  // namespace ptx
