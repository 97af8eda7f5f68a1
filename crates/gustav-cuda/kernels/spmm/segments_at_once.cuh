// Several short segments for every subgroup, at the same time: their nonzeros of A, rows of B and rows of C are in
// flight together, where a subgroup that takes one after another waits for rows of B once for each.
//
//   segment k of subgroup s  =  base + k SUBGROUPS_OF_CTA + s
//
// All segments are whole rows. A step takes the next IN_FLIGHT nonzeros of each, so that they should be about as long,
// as neighbours in a list that is sorted by length are. The subgroups of a warp iterate together.
#pragma once
#include "spmm/segments_per_group.cuh"

constexpr int AT_ONCE = GUSTAV_AT_ONCE;  // segments that a subgroup sums at the same time

// The AT_ONCE segments of this thread's subgroup in one panel, the first of which is segment `base`.
// `segment(i)` is the i-th of the list, or none; `then()` is called when their loads are issued.
template <class At, class Then>
__device__ __forceinline__ void sum_at_once(const Operands &args, Position base, u32 panel, At segment, Then then) {
    constexpr Position NONE = ~Position(0);
    base += threadIdx.x / LANES;
    Position row[AT_ONCE], first[AT_ONCE], count[AT_ONCE];
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
        const auto own = segment(base + k * SUBGROUPS_OF_CTA);
        row[k] = own.none() ? NONE : (Position)own.target();
        first[k] = own.first;
        count[k] = own.last - own.first;
    }
    then();
    const auto hold_from = [&](int k, Position done) {
        return hold(args, first[k] + done + threadIdx.x % LANES, first[k] + count[k]);
    };
    Held held[AT_ONCE];
    Position most = 0;
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) {
        held[k] = hold_from(k, 0);
        most = max(most, count[k]);
    }
    most = longest(most);
    const u64 column = (u64)panel * PANEL + threadIdx.x % LANES * VECTOR;
    const Span span(args.columns, column);
    const Value *b = own_column(args, column);
    Sum sum[AT_ONCE][TILES][VECTOR];
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k) clear(sum[k]);
    for (Position done = 0; done < most; done += BATCH) {
        const int here = most - done < BATCH ? (int)(most - done) : BATCH;
        // The nonzeros of each segment, which may have none left.
        int own[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k)
            own[k] = done > count[k] ? 0 : count[k] - done < BATCH ? (int)(count[k] - done) : BATCH;
#pragma unroll 1
        for (int from = 0; from < here; from += IN_FLIGHT) {
            Index index[AT_ONCE][IN_FLIGHT];
            Accum value[AT_ONCE][IN_FLIGHT];
            tile::Pack<Value, VECTOR> rows[AT_ONCE][IN_FLIGHT][TILES];
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k)
#pragma unroll
                for (int u = 0; u < IN_FLIGHT; ++u)
                    index[k][u] = __shfl_sync(~0u, held[k].column, from + u, LANES);
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k)
#pragma unroll
                for (int u = 0; u < IN_FLIGHT; ++u) {
                    const Value *at = row_of_b(args, b, index[k][u]);
#pragma unroll
                    for (int t = 0; t < TILES; ++t)
                        rows[k][u][t] =
                            tile::load_if<Value, VECTOR>(u < own[k] - from && span.has(t), at + t * LANES * VECTOR);
                }
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k)
#pragma unroll
                for (int u = 0; u < IN_FLIGHT; ++u)
                    value[k][u] = __shfl_sync(~0u, held[k].value, from + u, LANES);
#pragma unroll
            for (int k = 0; k < AT_ONCE; ++k)
#pragma unroll
                for (int u = 0; u < IN_FLIGHT; ++u)
                    if (u < own[k] - from)
#pragma unroll
                        for (int t = 0; t < TILES; ++t)
#pragma unroll
                            for (int v = 0; v < VECTOR; ++v)
                                sum[k][t][v] = Reduction::mul_add(value[k][u], tile::widen_at(rows[k][u][t], v),
                                                                  first[k] + done + from + u, sum[k][t][v]);
        }
        if (most - done <= BATCH) break;
#pragma unroll
        for (int k = 0; k < AT_ONCE; ++k) held[k] = hold_from(k, done + BATCH);
    }
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k)
        if (row[k] != NONE)
#pragma unroll
            for (int t = 0; t < TILES; ++t)
                if (span.has(t)) finish_sums(args, sum[k][t], row[k], span.at(t));
}
