// What every kernel of `binned` is told, and the layout of what they share.
//
// GUSTAV_INDEX, GUSTAV_OFFSET    types of column indices and of row offsets
// GUSTAV_VALUE, GUSTAV_OUT       types of values of A and B, and of C
// GUSTAV_BINS                    bins of a phase
// GUSTAV_NARROW                  columns of rows that a warp has a mask for at most
// GUSTAV_CUT_WIDTH               columns of rows cut into pieces at most
#pragma once
#include "common/types.cuh"

typedef GUSTAV_INDEX Index;
typedef GUSTAV_OFFSET Offset;
typedef GUSTAV_VALUE Value;
typedef GUSTAV_OUT Out;
typedef typename Accumulator<Value>::Type Sum;

struct Arguments {
    const Offset *a_offsets;
    const Index *a_indices;
    const Value *a_values;
    const Offset *b_offsets;
    const Index *b_indices;
    const Value *b_values;
    Offset *c_offsets;
    Index *c_indices;
    Out *c_values;
    // Of every row: products, first column (a multiple of 32) and columns up to the last, entries.
    u32 *products;
    u32 *low;
    u32 *width;
    u32 *sizes;
    // Rows by bin: two bins share a list of `rows` entries, one from each end.
    u32 *lists;
    u64 *counters;
    // Of every tile of the scan: what it and those before it hold.
    u64 *tiles;
    // B as bits, `bit_words` words a row, where it is full enough.
    u32 *bits;
    // Of rows cut into pieces: pieces that have ended, and what each found.
    u32 *ended;
    u32 *found_bits;
    void *found_sums;
    u64 rows;
    u64 rows_b;
    u64 columns;
    u64 nnz_b;
    u64 alpha;
    // Entries of C before these rows.
    u64 first;
    // Of a launch: its bin, the rows in it, and what shared memory has room for per team.
    u32 bin;
    u32 count;
    u32 words;
    u32 entries;
    // Of the analysis: lanes of a row as a power of two, rows of a CTA.
    u32 log_lanes;
    u32 tile;
    // Whether rows of B increase strictly; whether rows of C must.
    u32 ordered;
    u32 sorted;
    u32 bit_words;
    // Whether the analysis looks for descents in B.
    u32 looks;
    // Of the bins: products that a thread merges of few rows of B and of many, that a warp and a
    // smaller CTA have a mask for, at most; nonzeros of rows cut into pieces, at least.
    u32 merged_few;
    u32 merged_many;
    u32 narrow;
    u32 wide;
    u32 cut;
    // Products of an entry of full rows with a bin of their own, at least; none where 0.
    u32 full;
};

// Places in `counters`: rows, widest row and largest row of every bin, then sums.
constexpr u32 BINS = GUSTAV_BINS;
constexpr u32 COUNT = 0, WIDEST = BINS, LARGEST = 2 * BINS;
constexpr u32 PRODUCTS = 3 * BINS, ENTRIES = PRODUCTS + 1, DESCENTS = PRODUCTS + 2;
constexpr u32 TICKET = PRODUCTS + 3;

// Whether a row of so many nonzeros is cut into pieces, whose sums have to fit in shared memory.
__device__ __forceinline__ bool is_cut(const Arguments &g, u32 nonzeros, u32 width) {
    return nonzeros >= g.cut && width <= GUSTAV_CUT_WIDTH;
}

// Whether a mask of a row's columns costs less than a table of its products.
__device__ __forceinline__ bool is_dense_enough(u32 width, u64 products) {
    return width <= GUSTAV_NARROW && width <= 32 * products;
}

// Row number `i` of a launch's bin.
__device__ __forceinline__ u32 row_of(const Arguments &g, u64 i) {
    const u32 *list = g.lists + (u64)(g.bin / 2) * g.rows;
    return list[g.bin % 2 == 0 ? i : g.rows - 1 - i];
}

// Puts the rows of a CTA into their bins: thread `threadIdx.x` has `row`, none where `bin` is BINS.
// Rows of a warp stay in order.
__device__ __forceinline__ void into_bins(const Arguments &g, u32 bin, u32 row, u32 width,
                                          u32 size) {
    __shared__ u32 count[BINS], widest[BINS], largest[BINS];
    __shared__ u64 base[BINS];
    for (u32 b = threadIdx.x; b < BINS; b += blockDim.x) count[b] = widest[b] = largest[b] = 0;
    __syncthreads();
    const u32 lane = threadIdx.x % 32;
    const u32 alike = __match_any_sync(0xffffffffu, bin);
    const u32 first = __ffs(alike) - 1;
    u32 place = 0;
    if (bin < BINS && lane == first) place = atomicAdd(&count[bin], (u32)__popc(alike));
    place = __shfl_sync(0xffffffffu, place, first) + __popc(alike & ((1u << lane) - 1));
    if (bin < BINS) {
        // Few rows raise what those before them found.
        if (*(volatile u32 *)(widest + bin) < width) atomicMax(&widest[bin], width);
        if (*(volatile u32 *)(largest + bin) < size) atomicMax(&largest[bin], size);
    }
    __syncthreads();
    for (u32 b = threadIdx.x; b < BINS; b += blockDim.x)
        if (count[b] > 0) {
            base[b] = atomicAdd(&g.counters[COUNT + b], (u64)count[b]);
            atomicMax(&g.counters[WIDEST + b], (u64)widest[b]);
            atomicMax(&g.counters[LARGEST + b], (u64)largest[b]);
        }
    __syncthreads();
    if (bin < BINS) {
        u32 *list = g.lists + (u64)(bin / 2) * g.rows;
        const u64 at = base[bin] + place;
        list[bin % 2 == 0 ? at : g.rows - 1 - at] = row;
    }
    __syncthreads();
}
