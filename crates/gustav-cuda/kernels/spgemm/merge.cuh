// The rows of B of a short row of A, merged by one thread in registers: columns are visited in
// order. B's rows increase strictly.
//
//   heads     4  9  7  4      the next column of every row of B
//   least     4               visited, with the products of the rows that have it
//   heads     8  9  7  6
#pragma once
#include "spgemm/operands.cuh"

namespace merge {

// No column: the host refuses matrices so wide.
constexpr u32 NONE = 0xffffffffu;

// The most nonzeros of a row in the two bins.
constexpr u32 FEW = 8, MANY = 16;

// `first` or `first + 1`, the bin for at most FEW or MANY nonzeros, or `none`.
template <class Arguments>
__device__ __forceinline__ u32 bin_of(const Arguments &g, u32 nonzeros, u64 products, u32 first,
                                      u32 none) {
    if (!g.ordered || nonzeros > MANY) return none;
    if (nonzeros <= FEW) return products <= g.merged_few ? first : none;
    return products <= g.merged_many ? first + 1 : none;
}

// One row a thread. Calls `product(n, b)` for every product of the thread's row: nonzero number `n`
// times B's value `b`, which is read with VALUES. After every column, all threads of a warp
// together call `column(c)`, with NONE for threads that are done. The loads of the LISTS rows of B
// do not depend on each other.
template <u32 LISTS, bool VALUES, class Arguments, class Product, class Column>
__device__ __forceinline__ void columns(const Arguments &g, u64 begin, u32 count, Product product,
                                        Column column) {
    u32 heads[LISTS];
    Value values[LISTS];
    Offset at[LISTS], end[LISTS];
#pragma unroll
    for (u32 n = 0; n < LISTS; ++n) {
        at[n] = end[n] = 0;
        if (n < count) {
            const Index k = g.a.indices[begin + n];
            at[n] = __ldg(g.b.offsets + k);
            end[n] = __ldg(g.b.offsets + k + 1);
        }
    }
#pragma unroll
    for (u32 n = 0; n < LISTS; ++n) {
        heads[n] = at[n] < end[n] ? (u32)g.b.indices[at[n]] : NONE;
        values[n] = VALUES && at[n] < end[n] ? g.b.values[at[n]] : Value();
    }
    for (;;) {
        u32 least = heads[0];
#pragma unroll
        for (u32 n = 1; n < LISTS; ++n) least = min(least, heads[n]);
        if (__ballot_sync(0xffffffffu, least != NONE) == 0) break;
        bool takes[LISTS];
#pragma unroll
        for (u32 n = 0; n < LISTS; ++n) {
            takes[n] = least != NONE && heads[n] == least;
            if (takes[n]) product(n, values[n]);
        }
#pragma unroll
        for (u32 n = 0; n < LISTS; ++n) {
            at[n] += takes[n];
            const bool more = at[n] < end[n];
            if (takes[n]) heads[n] = more ? (u32)g.b.indices[at[n]] : NONE;
            if (VALUES && takes[n] && more) values[n] = g.b.values[at[n]];
        }
        column(least);
    }
}

}  // namespace merge
