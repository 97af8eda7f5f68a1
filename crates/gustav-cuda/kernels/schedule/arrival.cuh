// Who adds up a sum whose parts several warps or CTAs computed: the last to arrive. Its loads see
// what all others wrote before they arrived.
//
//   others   write a part   barrier   release at the counter
//   last                              acquire at the counter   barrier   read all parts
//
// Counters are zero before and after.
#pragma once
#include "common/types.cuh"
#include "ptx/memory.cuh"

namespace arrival {

// For the lanes `lanes` of a warp, the first of which is `first_lane`; together they have one of
// `parts` parts.
__device__ __forceinline__ bool is_last(u32 *counter, u32 parts, u32 lanes, int first_lane) {
    __syncwarp(lanes);
    int last = 0;
    if (threadIdx.x % 32 == first_lane) last = ptx::arrives_last(counter, parts - 1);
    last = __shfl_sync(lanes, last, first_lane);
    if (last) __syncwarp(lanes);
    return last;
}

// For all threads of a CTA, which has one of `parts` parts.
__device__ __forceinline__ bool is_last_cta(u32 *counter, u32 parts) {
    __shared__ bool last;
    __syncthreads();
    if (threadIdx.x == 0) last = ptx::arrives_last(counter, parts - 1);
    __syncthreads();
    return last;
}

}  // namespace arrival
