// Collectives of a warp; all lanes take part.
#pragma once
#include "common/types.cuh"

namespace warp {

constexpr u32 ALL = 0xffffffffu;

// The sum of all lanes, in every lane.
template <class T>
__device__ __forceinline__ T sum(T mine) {
    for (u32 step = 16; step > 0; step /= 2) mine += __shfl_xor_sync(ALL, mine, step);
    return mine;
}

// The largest of all lanes, in every lane.
__device__ __forceinline__ u32 largest(u32 mine) {
    for (u32 step = 16; step > 0; step /= 2) mine = max(mine, __shfl_xor_sync(ALL, mine, step));
    return mine;
}

// Inclusive prefix sum.
template <class T>
__device__ __forceinline__ T sum_up_to(T mine) {
    const u32 lane = threadIdx.x % 32;
    for (u32 step = 1; step < 32; step *= 2) {
        const T other = __shfl_up_sync(ALL, mine, step);
        if (lane >= step) mine += other;
    }
    return mine;
}

// A mask of the lanes of this lane's thread group, where groups of `GROUP` lanes share a warp.
template <int GROUP>
__device__ __forceinline__ u32 lanes_of_group() {
    static_assert(GROUP <= 32 && 32 % GROUP == 0, "a group lies in one warp");
    return (GROUP == 32 ? ALL : (1u << GROUP % 32) - 1) << threadIdx.x % 32 / GROUP * GROUP;
}

// A mask of the lanes before this one.
__device__ __forceinline__ u32 lanes_before() { return (1u << threadIdx.x % 32) - 1; }

}  // namespace warp

// A barrier of a thread group, after which its threads see what the others wrote. Thread groups of one warp pass it
// together.
template <int GROUP>
__device__ __forceinline__ void sync_group() {
    if constexpr (GROUP > 32)
        __syncthreads();
    else
        __syncwarp();
}
