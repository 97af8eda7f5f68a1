// Sums over the lanes of a group, several at once.
#pragma once
#include "common/semiring.cuh"

namespace tile {

// Reduces ALL sums over the lanes of a group together. While their number is even, every step
// halves the lanes of a sum and the sums of a lane: ALL - 1 + log2(LANES / ALL) shuffles for a
// power of two, where separate reductions take ALL log2(LANES).
template <class Accum, int ALL, int LANES>
struct Totals {
    // Steps that halve the sums of a lane.
    static __device__ constexpr int halvings() {
        int count = 0;
        for (int all = ALL, lanes = LANES; all % 2 == 0 && lanes > 1; all /= 2, lanes /= 2) ++count;
        return count;
    }
    static constexpr int COUNT = ALL >> halvings();     // sums that a lane ends with
    static constexpr int COPIES = LANES >> halvings();  // neighbouring lanes that end with the same ones

    // Whether this lane is the first of those with its sums.
    static __device__ __forceinline__ bool mine() { return threadIdx.x % LANES % COPIES == 0; }

    // Leaves totals first .. first + COUNT - 1 in sum[0 .. COUNT - 1] and returns first.
    static __device__ __forceinline__ int add(Accum (&sum)[ALL]) {
        const int lane = threadIdx.x % LANES;
        int first = 0, count = ALL;
#pragma unroll
        for (int step = LANES / 2; step > 0; step /= 2) {
            if (count % 2 == 0) {
                count /= 2;
                const bool upper = lane & step;
                first += upper ? count : 0;
#pragma unroll
                for (int u = 0; u < ALL / 2; ++u) {
                    if (u >= count) continue;
                    const Accum sent = upper ? sum[u] : sum[u + count];
                    const Accum held = upper ? sum[u + count] : sum[u];
                    sum[u] = plus(held, __shfl_xor_sync(~0u, sent, step));
                }
            } else {
#pragma unroll
                for (int u = 0; u < ALL; ++u)
                    if (u < count) sum[u] = plus(sum[u], __shfl_xor_sync(~0u, sum[u], step));
            }
        }
        return first;
    }
};

}  // namespace tile
