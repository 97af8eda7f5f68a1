// Sums over the lanes of a group, several at once.
#pragma once
#include "common/semiring.cuh"

namespace tile {

// Adds COUNT sums up over LANES lanes: every step halves the lanes of a sum and the sums of a lane,
// COUNT - 1 + log2(LANES / COUNT) shuffles in all, where one after another takes COUNT log2(LANES).
//
// Lane l ends with the sums first.. of the first max(COUNT / LANES, 1) elements; returns first. Lanes that
// differ in the bits below LANES / COUNT have the same. The order of a sum is that of the lanes.
template <int LANES, int COUNT, class Accum>
__device__ __forceinline__ int lane_sums(Accum (&sum)[COUNT]) {
    const int lane = threadIdx.x % LANES;
    int first = 0;
    int count = COUNT;
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) {
        if (count > 1) {
            count /= 2;
            const bool upper = lane & step;
            first += upper ? count : 0;
#pragma unroll
            for (int u = 0; u < COUNT / 2; ++u) {
                if (u >= count) continue;
                const Accum sent = upper ? sum[u] : sum[u + count];
                const Accum held = upper ? sum[u + count] : sum[u];
                sum[u] = plus(held, __shfl_xor_sync(~0u, sent, step));
            }
        } else {
            sum[0] = plus(sum[0], __shfl_xor_sync(~0u, sum[0], step));
        }
    }
    return first;
}

}  // namespace tile
