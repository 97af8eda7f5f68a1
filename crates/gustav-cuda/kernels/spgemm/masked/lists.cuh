// Assigns rows to kernels, and cuts rows into tasks.
//
// The work of a list, to which its time is proportional, is its number of products; of the lists
// SEARCHED_8 and SEARCHED_32, the entries of B that are read.
#pragma once
#include "csr/descents.cuh"
#include "spgemm/masked/arguments.cuh"
#include "spgemm/merge.cuh"

namespace lists {

// Cost model: the most searches of a row (positions times rows of B), the most rows of B of a
// searched row, the entries read in searches that cost as much as a product, and the products that
// cost as much as a table.
constexpr u32 SEARCHES = 1024, SEARCHED = 64, READS = 6, PRODUCTS_OF_TABLE = 512;
// Fewest and most products of a task, of a warp and of a CTA.
constexpr u64 LEAST_IN_ORDER = 2048, MOST_IN_ORDER = 16384;
constexpr u64 LEAST_TOGETHER = 16384, MOST_TOGETHER = 131072;
// At most LONG nonzeros of A for 8 lanes of `weigh`; a warp takes longer rows, and a CTA the
// longest.
constexpr u32 LONG = 64, LONGEST = 1024;

__device__ __forceinline__ u64 length_of(const Arguments &g, u64 k) {
    return g.b.offsets[k + 1] - g.b.offsets[k];
}

// The products of every `step`th nonzero from `at` on.
__device__ __forceinline__ u64 products_of(const Arguments &g, u64 at, u64 end, u32 step) {
    u64 products = 0;
#pragma unroll 4
    for (; at < end; at += step) products += length_of(g, g.a.indices[at]);
    return products;
}

// The list of a row with `count` positions, and its work.
__device__ __forceinline__ u32 list_of(const Arguments &g, u64 nonzeros, u64 products, u64 count,
                                       u64 &work) {
    work = products;
    if (count == 0) return LISTS;
    const u32 merged = merge::bin_of(g, (u32)min(nonzeros, (u64)merge::MANY + 1), products,
                                     MERGED_FEW, LISTS);
    if (merged != LISTS) return merged;
    const u64 searches = count * nonzeros, mean = products / max(nonzeros, (u64)1);
    const u64 reads = searches * (66 - __clzll(mean));
    if (g.ordered && nonzeros <= SEARCHED && searches <= SEARCHES &&
        reads <= READS * (products + PRODUCTS_OF_TABLE)) {
        work = reads;
        return count <= 8 ? SEARCHED_8 : SEARCHED_32;
    }
    return count <= 1u << FEW && products <= g.alone ? TABLE : CUT;
}

// What each warp of a CTA adds to each list, and where.
struct Shares {
    u32 rows[SHARING / 32][LISTS];
    u64 work[SHARING / 32][LISTS], products[SHARING / 32];
    u64 first[SHARING / 32][LISTS];
};

// Puts the row of every thread, if it has one, in its list; each counter is added to once per CTA.
__device__ void put(const Arguments &g, Shares &t, bool here, u64 row, u64 nonzeros,
                    u64 products) {
    const u32 thread = threadIdx.x, lane = thread % 32, own_warp = thread / 32;
    u64 work = 0;
    u32 own = LISTS, before = 0;
    if (here) {
        const u64 count = g.position_offsets[row + 1] - g.position_offsets[row];
        own = list_of(g, nonzeros, products, count, work);
    }
    const u64 all = warp::sum(products);
    if (lane == 0) t.products[own_warp] = all;
#pragma unroll
    for (u32 list = 0; list < LISTS; ++list) {
        const u32 rows = __ballot_sync(warp::ALL, own == list);
        const u64 sum = rows == 0 ? 0 : warp::sum(own == list ? work : 0);
        if (lane == 0) t.rows[own_warp][list] = __popc(rows), t.work[own_warp][list] = sum;
        if (own == list) before = __popc(rows & warp::lanes_before());
    }
    __syncthreads();
    if (thread <= LISTS) {
        u64 rows = 0, sum = 0;
        for (u32 w = 0; w < SHARING / 32; ++w) {
            sum += thread < LISTS ? t.work[w][thread] : t.products[w];
            if (thread == LISTS) continue;
            t.first[w][thread] = rows;
            rows += t.rows[w][thread];
        }
        if (thread < LISTS && rows > 0) {
            const u64 at = atomicAdd(g.counters + thread, rows);
            for (u32 w = 0; w < SHARING / 32; ++w) t.first[w][thread] += at;
        }
        if (sum > 0) atomicAdd(g.counters + (thread < LISTS ? WORK + thread : PRODUCTS), sum);
    }
    __syncthreads();
    if (own < LISTS) *listed(g, own, t.first[own_warp][own] + before) = (u32)row;
}

// Counts descents in B and in the mask.
__device__ void descend(const Arguments &g) {
    const u64 threads = (u64)(gridDim.x - g.weighing) * SHARING;
    const u64 thread = (u64)(blockIdx.x - g.weighing) * SHARING + threadIdx.x;
    const long long found[2] = {
        descents(g.b.offsets, g.b.indices, g.rows_b, g.nnz_b, thread, threads),
        descents(g.position_offsets, g.positions, g.rows, g.count, thread, threads)};
    if (threadIdx.x % 32 != 0) return;
    for (u32 n = 0; n < 2; ++n)
        if (found[n] != 0) atomicAdd(g.counters + DESCENTS + n, (u64)found[n]);
}

// One row a thread; 8 lanes, a warp or the CTA count its products.
__device__ void weigh(const Arguments &g) {
    constexpr u32 STEPS = 8;
    __shared__ u32 longest[SHARING], longest_count;
    __shared__ u64 sums[SHARING / 32];
    __shared__ Shares shares;
    const u32 thread = threadIdx.x, lane = thread % 32, own_warp = thread / 32;
    for (u64 base = (u64)blockIdx.x * SHARING; base < g.rows; base += (u64)g.weighing * SHARING) {
        if (thread == 0) longest_count = 0;
        __syncthreads();
        const u64 row = base + thread;
        const bool here = row < g.rows;
        const u64 begin = here ? (u64)g.a.offsets[row] : 0;
        const u64 end = here ? (u64)g.a.offsets[row + 1] : 0, nonzeros = end - begin;
        // 8 lanes have row 4 * n + lane / 8 of the warp; the first nonzeros of all rows are loaded
        // together.
        u64 at[STEPS], ends[STEPS], products[STEPS], mine = 0;
        Index first[STEPS];
#pragma unroll
        for (u32 n = 0; n < STEPS; ++n) {
            const u32 from = 4 * n + lane / 8;
            at[n] = __shfl_sync(warp::ALL, begin, from) + lane % 8;
            ends[n] = __shfl_sync(warp::ALL, end, from);
            if (ends[n] + lane % 8 > at[n] + LONG) ends[n] = 0;
            first[n] = at[n] < ends[n] ? g.a.indices[at[n]] : 0;
        }
#pragma unroll
        for (u32 n = 0; n < STEPS; ++n) products[n] = at[n] < ends[n] ? length_of(g, first[n]) : 0;
#pragma unroll
        for (u32 n = 0; n < STEPS; ++n) {
            u64 sum = products[n] + products_of(g, at[n] + 8, ends[n], 8);
            for (u32 step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(warp::ALL, sum, step);
            const u64 own = __shfl_sync(warp::ALL, sum, lane % 4 * 8);
            if (lane / 4 == n) mine = own;
        }
        if (nonzeros > LONGEST) longest[atomicAdd(&longest_count, 1u)] = thread;
        u32 left = __ballot_sync(warp::ALL, nonzeros > LONG && nonzeros <= LONGEST);
        for (; left != 0; left &= left - 1) {
            const u32 from = __ffs(left) - 1;
            const u64 a_begin = __shfl_sync(warp::ALL, begin, from);
            const u64 a_end = __shfl_sync(warp::ALL, end, from);
            const u64 sum = warp::sum(products_of(g, a_begin + lane, a_end, 32));
            if (lane == from) mine = sum;
        }
        __syncthreads();
        for (u32 n = 0; n < longest_count; ++n) {
            const u64 of = base + longest[n];
            const u64 a_begin = g.a.offsets[of], a_end = g.a.offsets[of + 1];
            const u64 part = warp::sum(products_of(g, a_begin + thread, a_end, SHARING));
            if (lane == 0) sums[own_warp] = part;
            __syncthreads();
            u64 sum = 0;
            for (u32 w = 0; w < SHARING / 32; ++w) sum += sums[w];
            if (row == of) mine = sum;
            __syncthreads();
        }
        put(g, shares, here, row, nonzeros, mine);
        __syncthreads();
    }
}

// A warp has a row, whose positions it cuts into tasks of similar numbers of products.
__device__ void cut(const Arguments &g) {
    const u32 lane = threadIdx.x % 32;
    const u64 step = (u64)gridDim.x * WARPS, rows = g.counters[CUT];
    const u64 share = g.counters[PRODUCTS] / g.busy;
    const u64 most = g.in_order ? min(max(share, LEAST_IN_ORDER), MOST_IN_ORDER)
                                : min(max(share, LEAST_TOGETHER), MOST_TOGETHER);
    for (u64 i = (u64)blockIdx.x * WARPS + threadIdx.x / 32; i < rows; i += step) {
        const u64 row = *listed(g, CUT, i);
        const u64 count = g.position_offsets[row + 1] - g.position_offsets[row];
        const u64 begin = g.a.offsets[row], end = g.a.offsets[row + 1];
        const u64 products = warp::sum(products_of(g, begin + lane, end, 32));
        u32 log = g.in_order ? FEW : MANY;
        // Smaller tasks have fewer products only if rows of B can be searched for their first
        // column.
        if (g.ordered)
            while (log > LEAST && (products << log) / count > most) --log;
        const u32 tasks = (u32)((count + (1u << log) - 1) >> log);
        u64 at = 0;
        if (lane == 0) at = atomicAdd(g.counters + TASKS, (u64)tasks);
        at = __shfl_sync(warp::ALL, at, 0);
        for (u32 n = lane; n < tasks; n += 32) g.tasks[at + n] = row << 32 | n << 4 | log;
    }
}

}  // namespace lists
