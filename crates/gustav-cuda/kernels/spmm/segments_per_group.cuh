// Several segments for every subgroup, one after another. While one is summed, the nonzeros of the
// next (one a lane) and the bounds of the one after it are loaded, so that a subgroup waits only for
// rows of B.
//
//   segment k of subgroup s  =  base + k SUBGROUPS_OF_CTA + s
//
// so that the subgroups of a CTA work on neighbours in the list and share their rows of B in L1. All
// segments are whole rows.
//
// Nonzeros are broadcast by shuffles. The subgroups of a warp iterate together, as often as the longest needs.
#pragma once
#include "schedule/segments.cuh"
#include "spmm/group.cuh"

// Nonzeros whose rows of B are loaded together, and the number that the lanes of a subgroup hold, a multiple of that.
constexpr int IN_FLIGHT = GUSTAV_IN_FLIGHT < LANES ? GUSTAV_IN_FLIGHT : LANES;
constexpr int BATCH = LANES / IN_FLIGHT * IN_FLIGHT;
constexpr int SUBGROUPS_OF_CTA = BLOCK / LANES;  // subgroups of a CTA
constexpr bool PREFETCH_B = GUSTAV_PREFETCH_B;   // prefetch the row of B of a segment's last nonzero to L2

// A lane's nonzero.
struct Held {
    Index column;
    Accum value;
};

__device__ __forceinline__ Held hold(const Operands &args, Position position, Position last) {
    const bool has = threadIdx.x % LANES < BATCH && position < last;
    const Index column = tile::load_if<Index, 1>(has, args.indices + position).at[0];
    const auto value = tile::load_if<Value, 1>(has, args.values + position);
    return {column, tile::widen_at(value, 0)};
}

// Prefetches the row of B of the last nonzero: if neighbouring rows of A read neighbouring rows of B, it is the only
// one that is not in a cache yet.
__device__ __forceinline__ void prefetch_last(const Operands &args, const Held &held, u64 count,
                                           u32 panel) {
    const u64 last = count < BATCH ? count : BATCH;
    if (threadIdx.x % LANES + 1 != last) return;
    const u64 first = (u64)panel * PANEL, left = args.columns - first;
    const Value *from = row_of_b(args, args.b + first, held.column);
    ptx::prefetch(from, (left < PANEL ? left : PANEL) * sizeof(Value), 0, 1);
}

// The largest count of a warp. For 32 bits there is one instruction, whose result the compiler
// knows to be uniform.
template <class T>
__device__ __forceinline__ T longest(T mine) {
#if __CUDA_ARCH__ >= 800
    if constexpr (sizeof(T) == 4) return __reduce_max_sync(~0u, mine);
#endif
    for (int distance = LANES; distance < 32; distance *= 2)
        mine = max(mine, __shfl_xor_sync(~0u, mine, distance));
    return mine;
}

// Sums the nonzeros from `first` to `last`; each lane already holds one of the first BATCH.
__device__ __forceinline__ void sum_held(const Operands &args, const Value *b, const Span &span,
                                         Position first, Position last, Held held,
                                         Sum (&sum)[TILES][VECTOR]) {
    const Position count = last - first, most = longest(count);
    const Position mine = first + threadIdx.x % LANES;
    for (Position done = 0; done < most; done += BATCH) {
        const Held next = hold(args, mine + done + BATCH, last);
        const int here = most - done < BATCH ? (int)(most - done) : BATCH;
        // The nonzeros of this subgroup, which may have none left.
        const int own = done > count ? 0 : count - done < BATCH ? (int)(count - done) : BATCH;
#pragma unroll 1
        for (int from = 0; from < here; from += IN_FLIGHT) {
            const int left = own - from;
            Index column[IN_FLIGHT];
            Accum value[IN_FLIGHT];
#pragma unroll
            for (int u = 0; u < IN_FLIGHT; ++u)
                column[u] = __shfl_sync(~0u, held.column, from + u, LANES);
            tile::Pack<Value, VECTOR> row[IN_FLIGHT][TILES];
#pragma unroll
            for (int u = 0; u < IN_FLIGHT; ++u) {
                const Value *at = row_of_b(args, b, column[u]);
#pragma unroll
                for (int k = 0; k < TILES; ++k)
                    row[u][k] = tile::load_if<Value, VECTOR>(u < left && span.has(k), at + k * LANES * VECTOR);
            }
#pragma unroll
            for (int u = 0; u < IN_FLIGHT; ++u)
                value[u] = __shfl_sync(~0u, held.value, from + u, LANES);
#pragma unroll
            for (int u = 0; u < IN_FLIGHT; ++u)
                if (u < left)
#pragma unroll
                    for (int k = 0; k < TILES; ++k)
#pragma unroll
                        for (int v = 0; v < VECTOR; ++v)
                            sum[k][v] = Reduction::mul_add(value[u], tile::widen_at(row[u][k], v),
                                                           first + done + from + u, sum[k][v]);
        }
        held = next;
    }
}

// The `count` segments of this thread's subgroup in one panel, the first of which is segment `base`.
// `segment(i)` is the i-th of the list, or none; `then()` is called when the loads of the first two are issued.
template <class At, class Then>
__device__ __forceinline__ void sum_segments(const Operands &args, Position base, u32 count, u32 panel,
                                             At segment, Then then) {
    base += threadIdx.x / LANES;
    const auto at = [&](u32 k) {
        return k < count ? segment(base + k * SUBGROUPS_OF_CTA) : schedule::no_segment<Position>();
    };
    const u64 column = (u64)panel * PANEL + threadIdx.x % LANES * VECTOR;
    const Span span(args.columns, column);
    const Value *b = own_column(args, column);
    auto now = at(0), next = at(1);
    then();
    Held held = hold(args, now.first + threadIdx.x % LANES, now.last);
    for (u32 k = 0; k < count; ++k) {
        const auto later = at(k + 2);
        const Held coming = hold(args, next.first + threadIdx.x % LANES, next.last);
        if (PREFETCH_B) prefetch_last(args, coming, next.last - next.first, panel);
        Sum sum[TILES][VECTOR];
        clear(sum);
        sum_held(args, b, span, now.first, now.last, held, sum);
        if (!now.none())
#pragma unroll
            for (int k = 0; k < TILES; ++k)
                if (span.has(k)) finish_sums(args, sum[k], now.target(), span.at(k));
        now = next, next = later, held = coming;
    }
}
