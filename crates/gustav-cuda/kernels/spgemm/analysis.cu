// What every row of C will cost: products, and the columns between its first and its last.
//
// Lanes share a row of A; the ranges come from the first and last entries of B's rows, which are
// ends only where B is ordered. The first analysis takes it for ordered and finds out whether it is.
//
// GUSTAV_RANGED   rows with more products get their range
// GUSTAV_TINY, GUSTAV_SMALL, GUSTAV_NARROW   bins
#include "csr/descents.cuh"
#include "spgemm/merge.cuh"

constexpr u32 BLOCK = GUSTAV_BLOCK;
// Nonzeros of A that a lane counts at most; longer rows are a warp's, and the longest a CTA's.
constexpr u32 LONG = 32, LONGEST = 2048;
// Ranges of rows of fewer columns are not worth a look.
constexpr u32 RANGED_COLUMNS = 256;

namespace {

// In the order of the host's.
enum Bin : u32 { MERGED_FEW, MERGED_MANY, TINY, SMALL, NARROW, WIDE, HUGE, CUT };

__device__ u32 bin_of(const Arguments &g, u32 nonzeros, u64 products, u32 width) {
    if (products == 0 || (nonzeros == 1 && g.ordered)) return BINS;
    const u32 merged = merge::bin_of(g, nonzeros, products, MERGED_FEW, BINS);
    if (merged != BINS) return merged;
    if (is_cut(g, nonzeros, width)) return CUT;
    if (products <= GUSTAV_TINY) return TINY;
    if (is_dense_enough(width, products) && products <= g.narrow) return NARROW;
    if (products <= GUSTAV_SMALL) return SMALL;
    if (width <= GUSTAV_NARROW && products <= g.narrow) return NARROW;
    return products <= g.wide ? WIDE : HUGE;
}

struct Cost {
    u64 products;
    u32 least, most;
};

// Of every `step`th nonzero from `at` on: products, or with `ranged` also the columns they reach.
__device__ __forceinline__ Cost cost_of(const Arguments &g, u64 at, u64 end, u32 step,
                                        bool ranged) {
    Cost cost = {0, 0xffffffffu, 0};
#pragma unroll 8
    for (; at < end; at += step) {
        const Index k = g.a_indices[at];
        const Offset from = g.b_offsets[k], to = g.b_offsets[k + 1];
        cost.products += to - from;
        if (ranged && from < to) {
            cost.least = min(cost.least, (u32)g.b_indices[from]);
            cost.most = max(cost.most, (u32)g.b_indices[to - 1]);
        }
    }
    return cost;
}

// Of `lanes` neighbours together.
__device__ __forceinline__ void reduce_products(Cost &cost, u32 lanes) {
    for (u32 step = lanes / 2; step > 0; step /= 2)
        cost.products += __shfl_xor_sync(0xffffffffu, cost.products, step);
}
__device__ __forceinline__ void reduce_range(Cost &cost, u32 lanes) {
    for (u32 step = lanes / 2; step > 0; step /= 2) {
        cost.least = min(cost.least, __shfl_xor_sync(0xffffffffu, cost.least, step));
        cost.most = max(cost.most, __shfl_xor_sync(0xffffffffu, cost.most, step));
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) analyse(const Arguments g) {
    __shared__ u32 nonzeros[BLOCK], low[BLOCK], width[BLOCK], long_rows[BLOCK], long_count;
    __shared__ u64 products[BLOCK];
    __shared__ Cost costs[BLOCK / 32];
    const bool ranges = g.ordered && g.columns > RANGED_COLUMNS;
    const auto keep = [&](u32 i, const Cost &cost, u32 count) {
        const bool ranged = cost.least != 0xffffffffu;
        nonzeros[i] = count;
        products[i] = cost.products;
        low[i] = ranged ? cost.least & ~31u : 0;
        width[i] = ranged ? cost.most + 1 - low[i] : (u32)g.columns;
    };
    if (g.looks) {
        const u64 thread = (u64)blockIdx.x * BLOCK + threadIdx.x, threads = (u64)gridDim.x * BLOCK;
        const long long found =
            descents(g.b_offsets, g.b_indices, g.rows_b, g.nnz_b, thread, threads);
        if (threadIdx.x % 32 == 0 && found != 0) atomicAdd(&g.counters[DESCENTS], (u64)found);
    }
    if ((u64)blockIdx.x * g.tile >= g.rows) return;
    if (threadIdx.x == 0) long_count = 0;
    __syncthreads();
    const u32 lanes = 1u << g.log_lanes, lane = threadIdx.x & (lanes - 1);
    const u64 first = (u64)blockIdx.x * g.tile;
    for (u32 i = threadIdx.x >> g.log_lanes; i < g.tile; i += BLOCK >> g.log_lanes) {
        const u64 row = first + i;
        u64 begin = 0, end = 0;
        if (row < g.rows) begin = g.a_offsets[row], end = g.a_offsets[row + 1];
        if (end - begin > LONG * lanes) {
            // Left to a warp.
            if (lane == 0) long_rows[atomicAdd(&long_count, 1u)] = i;
            begin = end;
        }
        Cost cost = cost_of(g, begin + lane, end, lanes, false);
        reduce_products(cost, lanes);
        if (cost.products > GUSTAV_RANGED && ranges) {
            const Cost range = cost_of(g, begin + lane, end, lanes, true);
            cost.least = range.least, cost.most = range.most;
        }
        reduce_range(cost, lanes);
        if (lane == 0) keep(i, cost, (u32)(end - begin));
    }
    __syncthreads();
    for (u32 n = 0; n < long_count; ++n) {
        const u32 i = long_rows[n];
        const u64 begin = g.a_offsets[first + i], end = g.a_offsets[first + i + 1];
        const u32 count = (u32)min(end - begin, (u64)0xffffffffu);
        // A row of a warp, or of all of them.
        const bool longest = count > LONGEST;
        if (!longest && n % (BLOCK / 32) != threadIdx.x / 32) continue;
        const u32 threads = longest ? BLOCK : 32;
        Cost cost = cost_of(g, begin + threadIdx.x % threads, end, threads, ranges);
        reduce_products(cost, 32);
        reduce_range(cost, 32);
        if (longest) {
            __syncthreads();
            if (threadIdx.x % 32 == 0) costs[threadIdx.x / 32] = cost;
            __syncthreads();
            cost = threadIdx.x < BLOCK / 32 ? costs[threadIdx.x] : Cost{0, 0xffffffffu, 0};
            reduce_products(cost, 32);
            reduce_range(cost, 32);
        }
        if (threadIdx.x == 0 || (!longest && threadIdx.x % 32 == 0)) keep(i, cost, count);
    }
    __syncthreads();
    const u64 row = first + threadIdx.x;
    u32 bin = BINS, size = 0;
    u64 sum = 0;
    if (threadIdx.x < g.tile && row < g.rows) {
        sum = products[threadIdx.x];
        size = (u32)min(sum, (u64)0xffffffffu);
        g.products[row] = size;
        g.low[row] = low[threadIdx.x];
        g.width[row] = width[threadIdx.x];
        const bool copied = nonzeros[threadIdx.x] == 1 && g.ordered;
        if (sum == 0 || copied) g.sizes[row] = size;
        bin = bin_of(g, nonzeros[threadIdx.x], sum, width[threadIdx.x]);
    }
    into_bins(g, bin, (u32)row, width[threadIdx.x % BLOCK], size);
    for (u32 step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0 && sum > 0) atomicAdd(&g.counters[PRODUCTS], sum);
}

