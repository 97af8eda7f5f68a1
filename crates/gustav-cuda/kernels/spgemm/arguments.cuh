// The parameter of every kernel of `binned`, and the layout of the memory that they share.
//
// GUSTAV_BINS                    bins of a phase
// GUSTAV_NARROW                  columns of rows that a warp has a mask for at most
// GUSTAV_CUT_WIDTH               columns of rows cut into chunks at most
#pragma once
#include "spgemm/operands.cuh"

#include "gustav_cuda::spgemm::binned::arguments::Arguments"

// Indices in `counters`: number of rows, widest row and largest row of every bin, then sums, all of
// which are reported to the host; then counters that the CTAs share.
constexpr u32 BINS = GUSTAV_BINS;
constexpr u32 COUNT = 0, WIDEST = BINS, LARGEST = 2 * BINS;
constexpr u32 PRODUCTS = 3 * BINS, ENTRIES = PRODUCTS + 1, DESCENTS = PRODUCTS + 2;
constexpr u32 REPORTED = PRODUCTS + 3, TICKET = REPORTED, ENDED = REPORTED + 1, PLACED = REPORTED + 2;

// The range of columns that a row of C may have, in granules: the first granule in the high 16
// bits, the number of further ones in the low 16 bits.
struct Range {
    u32 low, width;

    // Encodes columns `least` to `most`.
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

// A row's number of products, rounded up to eight significant bits, and its bin. Numbers below 2^8
// are exact, others have an exponent. Comparisons with powers of two give the same result as for
// the exact number.
struct Cost {
    u32 products, bin;

    static __device__ __forceinline__ u16 code(u32 products, u32 bin) {
        // Larger numbers are saturated.
        products = min(products, 0xff000000u);
        u32 exponent = 0, digits = products;
        if (products >= 256) {
            exponent = 24 - __clz(products);
            digits = (products + (1u << exponent) - 1) >> exponent;
            if (digits == 256) digits = 128, ++exponent;
        }
        // The leading one of larger numbers is implicit.
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

// Stores the number of entries of a row of C, from which offsets are computed.
__device__ __forceinline__ void put_size(const Arguments &g, u64 row, u32 size) {
    g.c.offsets[row + 1] = (Offset)size;
}

// Whether a row of so many nonzeros is cut into chunks, whose sums have to fit in shared memory.
__device__ __forceinline__ bool is_cut(const Arguments &g, u32 nonzeros, u32 width) {
    return nonzeros >= g.cut && width <= GUSTAV_CUT_WIDTH;
}

// Whether a mask of a row's columns costs less than a table of its products.
__device__ __forceinline__ bool is_dense_enough(u32 width, u64 products) {
    return width <= GUSTAV_NARROW && width <= 32 * products;
}

// Row number `i` of a launch.
__device__ __forceinline__ u32 row_of(const Arguments &g, u64 i) { return g.list[g.begin + i]; }
