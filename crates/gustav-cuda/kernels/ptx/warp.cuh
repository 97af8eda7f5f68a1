// Collectives of a warp.
#pragma once

namespace ptx {

// The bits that any lane has set, in every lane.
__device__ __forceinline__ unsigned or_over_warp(unsigned bits) {
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(0xffffffffu, bits);
#else
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        bits |= __shfl_xor_sync(0xffffffffu, bits, distance);
    return bits;
#endif
}

// The largest number of any lane, in every lane.
__device__ __forceinline__ unsigned largest(unsigned number) {
#if __CUDA_ARCH__ >= 800
    return __reduce_max_sync(0xffffffffu, number);
#else
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        number = max(number, __shfl_xor_sync(0xffffffffu, number, distance));
    return number;
#endif
}

}  // namespace ptx
