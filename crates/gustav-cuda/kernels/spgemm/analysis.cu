// What every row of C will cost: products, and the columns between its first and its last.
//
// Lanes share a row of A; the ranges come from the first and last entries of B's rows, which are
// ends only where B is ordered. `descents` finds out whether it is.
//
// GUSTAV_RANGED   rows with more products get their range
// GUSTAV_TINY, GUSTAV_SMALL, GUSTAV_NARROW, GUSTAV_NARROW_PRODUCTS, GUSTAV_WIDE_PRODUCTS   bins
#include "spgemm/arguments.cuh"

constexpr u32 BLOCK = GUSTAV_BLOCK;

namespace {

// In the order of the host's.
enum Bin : u32 { TINY, SMALL, NARROW, WIDE, HUGE };

__device__ u32 bin_of(u32 nonzeros, u64 products, u32 width, bool ordered) {
    if (products == 0 || (nonzeros == 1 && ordered)) return BINS;
    if (products <= GUSTAV_TINY) return TINY;
    if (width <= GUSTAV_NARROW && products <= GUSTAV_NARROW_PRODUCTS) return NARROW;
    if (products <= GUSTAV_SMALL) return SMALL;
    return products <= GUSTAV_WIDE_PRODUCTS ? WIDE : HUGE;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) analyse(const Arguments g) {
    __shared__ u32 nonzeros[BLOCK], low[BLOCK], width[BLOCK];
    __shared__ u64 products[BLOCK];
    const u32 lanes = 1u << g.log_lanes, lane = threadIdx.x & (lanes - 1);
    const u64 first = (u64)blockIdx.x * g.tile;
    for (u32 i = threadIdx.x >> g.log_lanes; i < g.tile; i += BLOCK >> g.log_lanes) {
        const u64 row = first + i;
        u64 sum = 0;
        u32 least = 0xffffffffu, most = 0;
        Offset begin = 0, end = 0;
        if (row < g.rows) begin = g.a_offsets[row], end = g.a_offsets[row + 1];
        for (Offset at = begin + lane; at < end; at += lanes) {
            const Index k = g.a_indices[at];
            sum += g.b_offsets[k + 1] - g.b_offsets[k];
        }
        for (u32 step = lanes / 2; step > 0; step /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (sum > GUSTAV_RANGED && g.ordered) {
            for (Offset at = begin + lane; at < end; at += lanes) {
                const Index k = g.a_indices[at];
                const Offset from = g.b_offsets[k], to = g.b_offsets[k + 1];
                if (from == to) continue;
                least = min(least, (u32)g.b_indices[from]);
                most = max(most, (u32)g.b_indices[to - 1]);
            }
        }
        for (u32 step = lanes / 2; step > 0; step /= 2) {
            least = min(least, __shfl_xor_sync(0xffffffffu, least, step));
            most = max(most, __shfl_xor_sync(0xffffffffu, most, step));
        }
        if (lane == 0) {
            const bool ranged = least != 0xffffffffu;
            nonzeros[i] = (u32)min((u64)(end - begin), (u64)2);
            products[i] = sum;
            low[i] = ranged ? least & ~31u : 0;
            width[i] = ranged ? most + 1 - low[i] : (u32)g.columns;
        }
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
        bin = bin_of(nonzeros[threadIdx.x], sum, width[threadIdx.x], g.ordered);
    }
    into_bins(g, bin, (u32)row, width[threadIdx.x % BLOCK], size);
    for (u32 step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0 && sum > 0) atomicAdd(&g.counters[PRODUCTS], sum);
}

// Counts the entries of B that are followed by one that is not larger, but for those that end a
// row: none where every row increases strictly.
extern "C" __global__ void __launch_bounds__(BLOCK) descents(const Arguments g) {
    const u64 threads = (u64)gridDim.x * BLOCK, thread = (u64)blockIdx.x * BLOCK + threadIdx.x;
    long long found = 0;
    for (u64 at = thread; at + 1 < g.nnz_b; at += threads)
        found += g.b_indices[at] >= g.b_indices[at + 1];
    for (u64 row = thread; row < g.rows_b; row += threads) {
        const u64 begin = g.b_offsets[row], end = g.b_offsets[row + 1];
        if (begin < end && end < g.nnz_b) found -= g.b_indices[end - 1] >= g.b_indices[end];
    }
    for (u32 step = 16; step > 0; step /= 2) found += __shfl_xor_sync(0xffffffffu, found, step);
    if (threadIdx.x % 32 == 0 && found != 0) atomicAdd(&g.counters[DESCENTS], (u64)found);
}
