// A scan over tiles in one pass: a CTA sums its tile, then looks back at the tiles before it until
// it finds one whose whole sum is known (decoupled look-back, Merrill & Garland 2016). Tiles are
// taken in order, and their words are zero at the start.
#pragma once
#include "common/warp.cuh"
#include "ptx/memory.cuh"

namespace look_back {

// A tile's word: its state in the two highest bits, a sum in the others. Nothing else is passed
// between tiles, so relaxed accesses suffice.
constexpr u64 OWN = 1ull << 62, ALL = 2ull << 62, SUM = OWN - 1;

// The sum of all tiles before `tile`, whose own sum is `total`, by the first warp of its CTA.
__device__ __forceinline__ u64 before(u64 *tiles, u32 tile, u64 total) {
    const u32 lane = threadIdx.x;
    if (lane == 0 && tile > 0) ptx::store_relaxed(tiles + tile, OWN | total);
    u64 sum = 0;
    for (long long last = (long long)tile - 1; last >= 0; last -= 32) {
        const long long mine = last - lane;
        u64 word = ALL;
        if (mine >= 0)
            do word = ptx::load_relaxed(tiles + mine);
            while (word == 0);
        // Add the words of tiles back to the nearest one whose whole sum is known.
        const u32 known = __ballot_sync(0xffffffffu, word >= ALL);
        const u32 nearest = known == 0 ? 31 : __ffs(known) - 1;
        sum += warp::sum(lane <= nearest ? word & SUM : 0);
        if (known != 0) break;
    }
    if (lane == 0) ptx::store_relaxed(tiles + tile, ALL | (sum + total));
    return sum;
}

// The sum of `mine` of the threads before this one, of a CTA of THREADS; `total` of all of them.
template <u32 THREADS>
__device__ __forceinline__ u64 within(u64 mine, u64 &total) {
    __shared__ u64 warps[THREADS / 32];
    const u64 up_to = warp::sum_up_to(mine);
    if (threadIdx.x % 32 == 31) warps[threadIdx.x / 32] = up_to;
    __syncthreads();
    u64 start = 0;
    total = 0;
    for (u32 w = 0; w < THREADS / 32; ++w) {
        if (w == threadIdx.x / 32) start = total;
        total += warps[w];
    }
    return start + up_to - mine;
}

}  // namespace look_back
