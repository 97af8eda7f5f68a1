// The products of a row of C, distributed over the threads of a thread group.
//
//   nonzeros of A's row   a0        a1        a2        a3   ...
//   lanes of a warp       0 1 2 3 | 4 5 6 7 | 8 9 .. | ...         a subgroup of lanes per row of B
//
// A warp reads as many nonzeros of A as it has lanes, with the bounds of their rows of B, and
// distributes them to its subgroups by shuffles. The first entries of the next row of B are loaded
// ahead. The warps of a CTA take every WARPS-th nonzero.
#pragma once
#include "common/warp.cuh"
#include "spgemm/arguments.cuh"

// Base-2 logarithm of a power of two.
__host__ __device__ constexpr u32 log2_of(u32 power) { return power <= 1 ? 0 : 1 + log2_of(power / 2); }

// The largest value of the warp's thread groups.
template <int GROUP>
__device__ __forceinline__ u32 largest_of_groups(u32 value) {
    for (u32 step = GROUP; step < 32; step *= 2)
        value = max(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

// Lanes of a subgroup, as a power of two: as many as a mean row of B fills, the same for all thread
// groups of a warp. At most a warp, or several warps of a CTA if rows of B are long and too few for
// all warps.
template <int GROUP>
__device__ __forceinline__ u32 log_lanes(u32 products, u32 nonzeros) {
    constexpr u32 LOG_GROUP = log2_of(GROUP), MOST = LOG_GROUP < 5 ? LOG_GROUP : 5;
    const u32 mean = (u32)__fdividef((float)products, (float)max(nonzeros, 1u));
    u32 lanes = mean <= 1 ? 0 : min(32 - __clz(mean - 1), MOST);
    if constexpr (GROUP > 32)
        while (lanes >= 5 && lanes < LOG_GROUP && nonzeros << lanes < 2 * GROUP && mean >= 2u << lanes)
            ++lanes;
    return largest_of_groups<GROUP>(lanes);
}

// Calls `visit(column, a, b)` for every product of `count` nonzeros of A from `begin` on, and
// `after_row()` after every row of B of each subgroup. Values are read with VALUES. Thread groups
// smaller than a warp all run as many rounds as the longest needs, for the shuffles.
template <int GROUP, bool VALUES, class Visit, class AfterRow>
__device__ __forceinline__ void each_product(const Arguments &g, u64 begin, u32 count, u32 thread,
                                             u32 log_lanes, Visit visit, AfterRow after_row) {
    constexpr u32 WIDTH = GROUP < 32 ? GROUP : 32, WARPS = GROUP / WIDTH;
    const u32 lane = thread % WIDTH;
    const u32 most = largest_of_groups<GROUP>(count);
    const u32 lanes = 1u << log_lanes, subgroups = max(WIDTH >> log_lanes, 1u);
    const u32 sub = thread & (lanes - 1), subgroup = WARPS > 1 && lanes >= 32 ? 0 : lane >> log_lanes;
    // A crew: warps that share rows of B.
    const u32 crews = WARPS == 1 ? 1 : min(WARPS, (u32)GROUP >> log_lanes);
    const u32 crew = WARPS == 1 ? 0 : thread / (GROUP / crews);
    for (u32 base = crew; base < most; base += WIDTH * crews) {
        const u32 mine = base + lane * crews;
        Offset from = 0;
        u32 length = 0;
        Sum factor = Sum();
        if (mine < count) {
            const Index k = g.a.indices[begin + mine];
            from = __ldg(g.b.offsets + k);
            length = (u32)(__ldg(g.b.offsets + k + 1) - from);
            if constexpr (VALUES) factor = widen(g.a.values[begin + mine]);
        }
        const u32 valid = min(WIDTH, (most - base + crews - 1) / crews);
        Offset at = __shfl_sync(0xffffffffu, from, subgroup, WIDTH) + sub;
        u32 size = __shfl_sync(0xffffffffu, length, subgroup, WIDTH);
        u32 c = 0;
        Value b = Value();
        if (sub < size) {
            c = (u32)g.b.indices[at];
            if constexpr (VALUES) b = g.b.values[at];
        }
        for (u32 j = 0; j < valid; j += subgroups) {
            const u32 next = j + subgroups + subgroup;
            const Offset next_at = __shfl_sync(0xffffffffu, from, next % WIDTH, WIDTH) + sub;
            u32 next_size = __shfl_sync(0xffffffffu, length, next % WIDTH, WIDTH);
            if (next >= WIDTH) next_size = 0;
            u32 next_c = 0;
            Value next_b = Value();
            if (sub < next_size) {
                next_c = (u32)g.b.indices[next_at];
                if constexpr (VALUES) next_b = g.b.values[next_at];
            }
            Sum a = Sum();
            if constexpr (VALUES) a = __shfl_sync(0xffffffffu, factor, j + subgroup, WIDTH);
            if (sub < size) {
                visit(c, a, b);
                const Offset stop = at - sub + size;
                Offset i = at + lanes;
                for (; i + 3 * lanes < stop; i += 4 * lanes) {
                    u32 columns[4];
                    Value values[4];
#pragma unroll
                    for (u32 u = 0; u < 4; ++u) {
                        columns[u] = (u32)g.b.indices[i + u * lanes];
                        if constexpr (VALUES) values[u] = g.b.values[i + u * lanes];
                    }
#pragma unroll
                    for (u32 u = 0; u < 4; ++u) visit(columns[u], a, values[u]);
                }
                for (; i < stop; i += lanes) {
                    Value value = Value();
                    if constexpr (VALUES) value = g.b.values[i];
                    visit((u32)g.b.indices[i], a, value);
                }
            }
            after_row();
            at = next_at, size = next_size, c = next_c, b = next_b;
        }
    }
}

template <int GROUP, bool VALUES, class Visit>
__device__ __forceinline__ void each_product(const Arguments &g, u64 begin, u32 count, u32 thread,
                                             u32 log_lanes, Visit visit) {
    each_product<GROUP, VALUES>(g, begin, count, thread, log_lanes, visit, [] {});
}
