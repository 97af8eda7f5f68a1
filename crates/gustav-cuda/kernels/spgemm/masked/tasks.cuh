// Sums in tables at the positions of whole rows, or of tasks, which are taken from a counter.
#pragma once
#include "spgemm/masked/tables.cuh"

namespace tasks {

// The sums at some positions; returns, in every lane, how many of the warp's positions have a
// product.
template <u32 GROUP, u32 LOG>
__device__ u32 sum_at(const Arguments &g, Memory<GROUP, LOG> &t, const Positions &p) {
    constexpr u32 STEP = 32 * IN_FLIGHT;
    const u32 thread = threadIdx.x % GROUP, own = thread / 32;
    Sums<GROUP, LOG> sums{g, t, p, thread, 0, 0, 0, false};
    sums.clear();
    const u64 end = g.a.offsets[p.row + 1];
    for (u64 at = g.a.offsets[p.row]; at < end; at += GROUP) {
        u64 products;
        const u32 rows = sums.lay_out(at, end, products);
        u64 share = products;
        if (GROUP > 32) share = (products / (2 * GROUP / 32) + STEP) / STEP * STEP;
        for (u64 from = own * share; from < products; from += GROUP / 32 * share)
            sums.add(rows, from, min(from + share, products));
        sync_group<GROUP>();
    }
    const u32 present = (u32)warp::sum(sums.finish());
    sync_group<GROUP>();
    return present;
}

// The sums at the positions of a task; the last task of a row may have fewer.
template <u32 GROUP, u32 LOG>
__device__ void take(const Arguments &g, Memory<GROUP, LOG> &t, u64 task) {
    const u64 row = task >> 32;
    const u32 log = task & 15;
    const u64 first = g.position_offsets[row], all = g.position_offsets[row + 1] - first;
    const u64 before = (u64)((u32)task >> 4) << log;
    if (before >= all) return;
    const u32 count = (u32)min(1ull << log, all - before);
    const u32 present = sum_at(g, t, Positions(g, row, first + before, count, all > count));
    if (g.present != nullptr && threadIdx.x % 32 == 0 && present > 0)
        atomicAdd(g.c.offsets + row + 1, (Offset)present);
}

// One row a warp.
__device__ void take_rows(const Arguments &g, Memory<32, FEW + 1> &t) {
    const u64 step = (u64)gridDim.x * WARPS, rows = g.counters[TABLE];
    for (u64 i = (u64)blockIdx.x * WARPS + threadIdx.x / 32; i < rows; i += step) {
        const u64 row = *listed(g, TABLE, i), from = g.position_offsets[row];
        const u32 count = (u32)(g.position_offsets[row + 1] - from);
        u32 present = 0;
        if (count > 0) present = sum_at(g, t, Positions(g, row, from, count, false));
        if (g.present != nullptr && threadIdx.x % 32 == 0) g.c.offsets[row + 1] = (Offset)present;
    }
}

// Warps take tasks.
__device__ void take_by_warps(const Arguments &g, Memory<32, FEW + 1> &t) {
    const u64 tasks = g.counters[TASKS];
    for (;;) {
        u64 i = 0;
        if (threadIdx.x % 32 == 0) i = atomicAdd(g.counters + TAKEN, 1ull);
        i = __shfl_sync(warp::ALL, i, 0);
        if (i >= tasks) return;
        take(g, t, g.tasks[i]);
    }
}

// CTAs take tasks.
__device__ void take_by_ctas(const Arguments &g, Memory<SHARING, MANY + 1> &t) {
    __shared__ u64 taken;
    const u64 tasks = g.counters[TASKS];
    for (;;) {
        if (threadIdx.x == 0) taken = atomicAdd(g.counters + TAKEN, 1ull);
        __syncthreads();
        const u64 i = taken;
        __syncthreads();
        if (i >= tasks) return;
        take(g, t, g.tasks[i]);
    }
}

}  // namespace tasks
