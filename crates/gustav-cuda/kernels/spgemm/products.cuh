// The products of a row of C, dealt to the threads of a team.
//
//   nonzeros of A's row   a0        a1        a2        a3   ...
//   lanes of the team     0 1 2 3 | 4 5 6 7 | 0 1 2 3 | ...       a group of lanes per row of B
//
// Three rows of B are under way at a time: the entries of the next, the bounds of the one after it,
// the column of A of the one after that are loaded while a row is worked on.
#pragma once
#include "spgemm/arguments.cuh"

// All threads of the team are here, and see what the others wrote.
template <int TEAM>
__device__ __forceinline__ void meet() {
    if constexpr (TEAM > 32) {
        __syncthreads();
    } else if constexpr (TEAM == 32) {
        __syncwarp();
    } else {
        __syncwarp(((1u << TEAM) - 1) << (threadIdx.x % 32 / TEAM * TEAM));
    }
}

// Lanes of a group, as a power of two: as many as a mean row of B fills, at most 2^`most`.
__device__ __forceinline__ u32 log_lanes(u32 products, u64 nonzeros, u32 most) {
    const u32 mean = (u32)(products / (nonzeros == 0 ? 1 : nonzeros));
    const u32 wanted = mean <= 1 ? 0 : 32 - __clz(mean - 1);
    return min(wanted, most);
}

// Calls `visit(column, a, b)` for every product of nonzeros `begin..end` of A, `after_row()` after
// every row of B. Values are read where VALUES says so.
template <int TEAM, bool VALUES, class Visit, class AfterRow>
__device__ __forceinline__ void each_product(const Arguments &g, u64 begin, u64 end, u32 thread,
                                             u32 log_lanes, Visit visit, AfterRow after_row) {
    struct Range {
        Offset from, to;
        Value factor;
    };
    const u32 lanes = 1u << log_lanes, lane = thread & (lanes - 1);
    const u32 step = TEAM >> log_lanes;
    const auto range = [&](u64 at, u64 k) {
        Range r = {0, 0, Value()};
        if (at < end) {
            r.from = __ldg(g.b_offsets + k), r.to = __ldg(g.b_offsets + k + 1);
            if constexpr (VALUES) r.factor = g.a_values[at];
        }
        return r;
    };
    const auto column = [&](u64 at) -> u64 { return at < end ? g.a_indices[at] : 0; };
    u64 at = begin + (thread >> log_lanes);
    Range now = range(at, column(at)), next = range(at + step, column(at + step));
    u64 k = column(at + 2 * step);
    u32 c = 0;
    Value b = Value();
    if (now.from + lane < now.to) {
        c = (u32)g.b_indices[now.from + lane];
        if constexpr (VALUES) b = g.b_values[now.from + lane];
    }
    // Every group goes as many rounds as the first, so that all threads meet in `after_row`.
    for (u64 round = begin; round < end; round += step, at += step) {
        const u64 later_k = column(at + 3 * step);
        const Range later = range(at + 2 * step, k);
        u32 next_c = 0;
        Value next_b = Value();
        if (next.from + lane < next.to) {
            next_c = (u32)g.b_indices[next.from + lane];
            if constexpr (VALUES) next_b = g.b_values[next.from + lane];
        }
        if (now.from + lane < now.to) visit(c, now.factor, b);
        Offset j = now.from + lane + lanes;
        for (; j + 3 * lanes < now.to; j += 4 * lanes) {
            u32 columns[4];
            Value values[4];
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
                columns[i] = (u32)g.b_indices[j + i * lanes];
                if constexpr (VALUES) values[i] = g.b_values[j + i * lanes];
            }
#pragma unroll
            for (u32 i = 0; i < 4; ++i) visit(columns[i], now.factor, values[i]);
        }
        for (; j < now.to; j += lanes) {
            Value value = Value();
            if constexpr (VALUES) value = g.b_values[j];
            visit((u32)g.b_indices[j], now.factor, value);
        }
        after_row();
        now = next, next = later, k = later_k, c = next_c, b = next_b;
    }
}

template <int TEAM, bool VALUES, class Visit>
__device__ __forceinline__ void each_product(const Arguments &g, u64 begin, u64 end, u32 thread,
                                             u32 log_lanes, Visit visit) {
    each_product<TEAM, VALUES>(g, begin, end, thread, log_lanes, visit, [] {});
}

// Base-2 logarithm of a power of two.
__host__ __device__ constexpr u32 log2_of(u32 power) { return power <= 1 ? 0 : 1 + log2_of(power / 2); }
