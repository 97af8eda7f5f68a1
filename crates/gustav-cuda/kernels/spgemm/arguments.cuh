// What every kernel of `binned` is told, and the layout of what they share.
//
// GUSTAV_BINS                    bins of a phase
// GUSTAV_NARROW                  columns of rows that a warp has a mask for at most
// GUSTAV_CUT_WIDTH               columns of rows cut into pieces at most
#pragma once
#include "spgemm/operands.cuh"

struct Arguments : Matrices {
    // Of every row: its columns, see `Range`, and its products and bin, see `Cost`. Its entries are in
    // `c_offsets`, one place on, until these are offsets.
    u32 *ranges;
    u16 *costs;
    // Rows of a phase, bin after bin.
    u32 *list;
    u64 *counters;
    // Memory of the host, for what was counted; the word behind it says when it is there.
    volatile u64 *told;
    // Of every tile of the scan: what it and those before it hold.
    u64 *tiles;
    // B as bits, `bit_words` words a row, where it is full enough.
    u32 *bits;
    // Of `slots` rows cut into pieces: which these are, pieces that have ended, and what they found.
    u32 *slot_rows;
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
    // Of a launch: where its rows are in the list, how many, and what shared memory has room for per
    // team.
    u32 begin;
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
    // Of the bins: products that a thread merges of few rows of B and of many, that a warp and a
    // smaller CTA have a mask for, at most; nonzeros of rows cut into pieces, at least.
    u32 merged_few;
    u32 merged_many;
    u32 narrow;
    u32 wide;
    u32 cut;
    u32 slots;
    // Products of an entry of full rows with a bin of their own, at least; none where 0.
    u32 full;
    // Columns of a granule of ranges as a power of two.
    u32 log_granule;
    // What the word behind `told` is to be.
    u32 turn;
};

// Places in `counters`: rows, widest row and largest row of every bin, then sums, which the host is
// told; then what CTAs need of each other.
constexpr u32 BINS = GUSTAV_BINS;
constexpr u32 COUNT = 0, WIDEST = BINS, LARGEST = 2 * BINS;
constexpr u32 PRODUCTS = 3 * BINS, ENTRIES = PRODUCTS + 1, DESCENTS = PRODUCTS + 2;
constexpr u32 TOLD = PRODUCTS + 3, TICKET = TOLD, ENDED = TOLD + 1, PLACED = TOLD + 2;

// The columns that a row of C may have, in granules: the first above the number of those after it.
// There are at most 2^16 granules.
struct Range {
    u32 low, width;

    // From column `least` to column `most`.
    static __device__ __forceinline__ u32 code(const Arguments &g, u32 least, u32 most) {
        const u32 first = least >> g.log_granule;
        return first << 16 | ((most >> g.log_granule) - first);
    }
    static __device__ __forceinline__ Range of(const Arguments &g, u32 code) {
        const u32 low = code >> 16 << g.log_granule;
        const u64 width = (u64)((code & 0xffff) + 1) << g.log_granule;
        return {low, (u32)min(width, g.columns - low)};
    }
};

__device__ __forceinline__ Range range_of(const Arguments &g, u32 row) {
    return Range::of(g, g.ranges[row]);
}

// A row's products, rounded up to eight significant bits, and its bin: a number below 2^8 stands for
// itself, others have an exponent. What compares with powers of two is as for the exact number.
struct Cost {
    u32 products, bin;

    static __device__ __forceinline__ u16 code(u32 products, u32 bin) {
        // Beyond, it is as good as this.
        products = min(products, 0xff000000u);
        u32 exponent = 0, digits = products;
        if (products >= 256) {
            exponent = 24 - __clz(products);
            digits = (products + (1u << exponent) - 1) >> exponent;
            if (digits == 256) digits = 128, ++exponent;
        }
        // Digits of larger numbers begin with a one.
        const u32 number = digits < 128 ? digits : (exponent + 1) << 7 | (digits - 128);
        return (u16)(number << 4 | bin);
    }
    static __device__ __forceinline__ Cost of(u16 code) {
        const u32 number = code >> 4, exponent = number >> 7;
        const u32 products = exponent == 0 ? number : (128 + number % 128) << (exponent - 1);
        return {products, code & 15u};
    }
};

__device__ __forceinline__ u32 products_of(const Arguments &g, u32 row) {
    return Cost::of(g.costs[row]).products;
}

// Entries of a row of C, before there are offsets.
__device__ __forceinline__ void put_size(const Arguments &g, u64 row, u32 size) {
    g.c_offsets[row + 1] = (Offset)size;
}

// Whether a row of so many nonzeros is cut into pieces, whose sums have to fit in shared memory.
__device__ __forceinline__ bool is_cut(const Arguments &g, u32 nonzeros, u32 width) {
    return nonzeros >= g.cut && width <= GUSTAV_CUT_WIDTH;
}

// Whether a mask of a row's columns costs less than a table of its products.
__device__ __forceinline__ bool is_dense_enough(u32 width, u64 products) {
    return width <= GUSTAV_NARROW && width <= 32 * products;
}

// Row number `i` of a launch.
__device__ __forceinline__ u32 row_of(const Arguments &g, u64 i) { return g.list[g.begin + i]; }
