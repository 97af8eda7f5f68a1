// Sums at all positions of a row, by LANES lanes: each searches the rows of B for a position.
#pragma once
#include "spgemm/masked/arguments.cuh"

namespace search {

template <u32 LANES>
__device__ void rows(const Arguments &g, List list) {
    constexpr u32 GROUPS = BLOCK / LANES;
    const u64 count = g.counters[list];
    const u32 lane = threadIdx.x % LANES;
    const Sum alpha = from_bits<Sum>(g.alpha);
    const u64 step = (u64)gridDim.x * GROUPS, first_group = (u64)blockIdx.x * GROUPS;
    // Thread groups of a warp iterate together.
    for (u64 group = first_group; group < count; group += step) {
        const u64 i = group + threadIdx.x / LANES, row = i < count ? *listed(g, list, i) : 0;
        const u64 a_begin = g.a.offsets[row], from = g.position_offsets[row];
        const u64 a_end = i < count ? (u64)g.a.offsets[row + 1] : a_begin;
        const u64 to = i < count ? (u64)g.position_offsets[row + 1] : from;
        const u32 nonzeros = warp::largest((u32)(a_end - a_begin));
        const u32 positions = warp::largest((u32)(to - from));
        u32 mine = 0;
        for (u32 base = 0; base < positions; base += LANES) {
            const u64 position = from + base + lane;
            const bool here = position < to;
            const Index column = here ? g.positions[position] : 0;
            Sum sum = S::zero();
            u8 present = 0;
            for (u32 first = 0; first < nonzeros; first += LANES) {
                const u64 at = a_begin + first + lane;
                Offset start = 0;
                u32 length = 0;
                Sum factor = Sum();
                if (at < a_end) {
                    const Index k = g.a.indices[at];
                    start = g.b.offsets[k];
                    length = (u32)(g.b.offsets[k + 1] - start);
                    factor = widen(g.a.values[at]);
                }
                const u32 bits = 32 - __clz(warp::largest(length));
                for (u32 j = 0; j < min(LANES, nonzeros - first); j += IN_FLIGHT) {
                    // The number of entries before the position, in IN_FLIGHT rows of B.
                    Offset begin[IN_FLIGHT];
                    u32 below[IN_FLIGHT], size[IN_FLIGHT];
#pragma unroll
                    for (u32 n = 0; n < IN_FLIGHT; ++n) {
                        begin[n] = __shfl_sync(warp::ALL, start, j + n, LANES);
                        size[n] = __shfl_sync(warp::ALL, length, j + n, LANES);
                        below[n] = 0;
                        if (!here) size[n] = 0;
                    }
                    for (u32 bit = bits; bit-- > 0;) {
                        const u32 more = 1u << bit;
#pragma unroll
                        for (u32 n = 0; n < IN_FLIGHT; ++n)
                            if (below[n] + more <= size[n] &&
                                g.b.indices[begin[n] + below[n] + more - 1] < column)
                                below[n] += more;
                    }
#pragma unroll
                    for (u32 n = 0; n < IN_FLIGHT; ++n) {
                        const Sum a = __shfl_sync(warp::ALL, factor, j + n, LANES);
                        const Offset entry = begin[n] + below[n];
                        if (below[n] < size[n] && g.b.indices[entry] == column) {
                            sum = S::mul_add(a, widen(g.b.values[entry]), sum);
                            present = 1;
                        }
                    }
                }
            }
            if (here) {
                g.values[position] = Narrow<Out>::from(S::scale(alpha, sum));
                if (g.present != nullptr) g.present[position] = present;
                mine += present;
            }
        }
        for (u32 distance = LANES / 2; distance > 0; distance /= 2)
            mine += __shfl_xor_sync(warp::ALL, mine, distance);
        if (g.present != nullptr && lane == 0 && i < count) g.c.offsets[row + 1] = (Offset)mine;
    }
}

}  // namespace search
