// transpose: the pattern of the transpose of a CSR matrix, and the positions of its entries in the matrix.
//
// A radix sort by column, eight bits (DIGITS values) per pass from the lowest on. Every pass is
// stable, so entries of a column stay in the order of their rows. Per digit:
//
//   tally:   CTA -> a tile of entries; counts them by digit
//   sum:     CTA -> a digit; prefix sums of its counts over the tiles
//   scatter: CTA -> a tile; a warp has neighbouring entries, which it ranks 32 at a time, and the
//            counts of the warps are added up digit by digit
//
// Then, for the sorted entries: `starts` finds where each column begins, `rows` the row of each
// entry, both by binary search.
#include "common/types.cuh"

using Index = GUSTAV_INDEX;
using Offset = GUSTAV_OFFSET;

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int ROUNDS = GUSTAV_ROUNDS;  // entries of a tile for every thread
constexpr int DIGITS = BLOCK;
constexpr int WARPS = BLOCK / 32;
constexpr int TILE = BLOCK * ROUNDS;
static_assert(DIGITS == 256, "a thread for every digit of eight bits");

#include "gustav_cuda::matrix::transpose::Arguments"

__device__ __forceinline__ int digit_of(const Arguments &args, Index column) {
    return (int)(column >> args.shift) & (DIGITS - 1);
}

// The sum of the values of the threads before this one; all threads of the CTA take part.
__device__ __forceinline__ Offset sum_before(Offset value, Offset &total) {
    __shared__ Offset warps[WARPS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    Offset sum = value;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const Offset before = __shfl_up_sync(~0u, sum, distance);
        if (lane >= distance) sum += before;
    }
    __syncthreads();
    if (lane == 31) warps[warp] = sum;
    __syncthreads();
    Offset base = 0;
    total = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
        if (w < warp) base += warps[w];
        total += warps[w];
    }
    return base + sum - value;
}

extern "C" __global__ void __launch_bounds__(BLOCK) tally(const Arguments args) {
    __shared__ u32 seen[DIGITS];
    seen[threadIdx.x] = 0;
    __syncthreads();
    const u64 tile = (u64)blockIdx.x * TILE;
#pragma unroll 4
    for (int round = 0; round < ROUNDS; ++round) {
        const u64 at = tile + round * BLOCK + threadIdx.x;
        if (at < args.nnz) atomicAdd(&seen[digit_of(args, args.columns[at])], 1);
    }
    __syncthreads();
    args.counts[threadIdx.x * args.tiles + blockIdx.x] = seen[threadIdx.x];
}

extern "C" __global__ void __launch_bounds__(BLOCK) sum(const Arguments args) {
    Offset *counts = args.counts + blockIdx.x * args.tiles;
    Offset before = 0;
    for (u64 tile = 0; tile < args.tiles; tile += BLOCK) {
        const bool live = tile + threadIdx.x < args.tiles;
        const Offset count = live ? counts[tile + threadIdx.x] : 0;
        Offset total;
        const Offset place = before + sum_before(count, total);
        if (live) counts[tile + threadIdx.x] = place;
        before += total;
    }
    if (threadIdx.x == 0) args.totals[blockIdx.x] = before;
}

extern "C" __global__ void __launch_bounds__(BLOCK) scatter(const Arguments args) {
    __shared__ u32 seen[WARPS][DIGITS];
    __shared__ Offset place[WARPS][DIGITS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u64 first = (u64)blockIdx.x * TILE + warp * (TILE / WARPS) + lane;
    for (int digit = lane; digit < DIGITS; digit += 32) seen[warp][digit] = 0;
    __syncwarp();
    Index column[ROUNDS];
    u32 rank[ROUNDS];
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
        const u64 at = first + round * 32;
        const bool live = at < args.nnz;
        column[round] = live ? args.columns[at] : 0;
        const int digit = digit_of(args, column[round]);
        const u32 same = __match_any_sync(~0u, live ? digit : DIGITS);
        const u32 before = same & ((1u << lane) - 1);
        rank[round] = seen[warp][digit] + __popc(before);
        __syncwarp();
        if (live && before == 0) seen[warp][digit] += __popc(same);
        __syncwarp();
    }
    // Entries with smaller digits, then those of tiles and warps before this one.
    Offset total;
    Offset next = sum_before(args.totals[threadIdx.x], total);
    next += args.counts[threadIdx.x * args.tiles + blockIdx.x];
#pragma unroll
    for (int w = 0; w < WARPS; ++w) {
        place[w][threadIdx.x] = next;
        next += seen[w][threadIdx.x];
    }
    __syncthreads();
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {
        const u64 at = first + round * 32;
        if (at >= args.nnz) continue;
        const Offset to = place[warp][digit_of(args, column[round])] + rank[round];
        args.sorted_columns[to] = column[round];
        args.sorted_positions[to] = args.positions ? args.positions[at] : (Offset)at;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) starts(const Arguments args) {
    const u64 step = (u64)gridDim.x * BLOCK;
    for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i <= args.ncols; i += step) {
        u64 low = 0, high = args.nnz;
        while (low < high) {
            const u64 middle = low + (high - low) / 2;
            if (args.columns[middle] < i)
                low = middle + 1;
            else
                high = middle;
        }
        args.starts[i] = (Offset)low;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) rows(const Arguments args) {
    const u64 step = (u64)gridDim.x * BLOCK;
    for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i < args.nnz; i += step) {
        const Offset position = args.positions[i];
        // The last row that begins at the entry or before it.
        u64 low = 0, high = args.nrows;
        while (high - low > 1) {
            const u64 middle = low + (high - low) / 2;
            if (args.offsets[middle] <= position)
                low = middle;
            else
                high = middle;
        }
        args.rows[i] = (Index)low;
    }
}
