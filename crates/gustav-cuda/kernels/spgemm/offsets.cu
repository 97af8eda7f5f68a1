// Row offsets of C from the sizes of its rows, in place, and the bins of rows for the numeric
// phase.
//
// One pass, see schedule/look_back.cuh.
#include "schedule/look_back.cuh"
#include "spgemm/counting.cuh"
#include "spgemm/merge.cuh"

constexpr u32 BLOCK = GUSTAV_BLOCK, ITEMS = GUSTAV_ITEMS;

namespace {

// The same order as on the host.
enum Bin : u32 {
    MERGED_FEW,
    MERGED_MANY,
    TINY,
    SMALL,
    MEDIUM,
    NARROW,
    WIDE,
    HUGE,
    GIANT,
    DENSE,
    VAST,
    COPY,
    CUT,
    FULL
};

__device__ u32 bin_of(const Arguments &g, u32 nonzeros, u32 products, u32 width, u32 size) {
    if (size == 0) return BINS;
    if (nonzeros == 1 && g.ordered) return COPY;
    const u32 merged = merge::bin_of(g, nonzeros, products, MERGED_FEW, BINS);
    if (merged != BINS) return merged;
    if (g.full > 0 && g.ordered && size == g.columns && products / size >= g.full) return FULL;
    if (is_cut(g, nonzeros, width)) return CUT;
    if (products <= GUSTAV_TINY) return TINY;
    if (width <= GUSTAV_NARROW && products <= g.narrow && size <= GUSTAV_NARROW_ENTRIES &&
        (size > GUSTAV_SMALL_ENTRIES || is_dense_enough(width, products)))
        return NARROW;
    // One row of B at a time pays if rows of B are long enough to occupy a CTA.
    const u32 mean = products / nonzeros;
    if (g.ordered && products >= GUSTAV_DENSE_PRODUCTS && size >= width / 4) {
        if (width <= GUSTAV_DENSE && mean >= GUSTAV_DENSE_MEAN) return DENSE;
        if (width <= GUSTAV_VAST && mean >= GUSTAV_VAST_MEAN) return VAST;
    }
    // The limit is on products as well: few entries may still take many of them.
    if (size <= GUSTAV_SMALL_ENTRIES && products <= GUSTAV_SMALL_PRODUCTS) return SMALL;
    if (size <= GUSTAV_MEDIUM_ENTRIES && width > GUSTAV_MEDIUM_WIDTH &&
        products <= GUSTAV_MEDIUM_PRODUCTS)
        return MEDIUM;
    if (size <= GUSTAV_WIDE_ENTRIES && products <= g.wide) return WIDE;
    return size <= GUSTAV_HUGE_ENTRIES ? HUGE : GIANT;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) offsets(const Arguments g) {
    __shared__ u64 before;
    __shared__ u32 ticket, sizes[BLOCK * ITEMS];
    __shared__ counting::Bins bins;
    if (threadIdx.x == 0) ticket = (u32)atomicAdd(&g.counters[TICKET], 1ull);
    bins.begin();
    __syncthreads();
    const u32 tile = ticket;
    const u64 first = (u64)tile * BLOCK * ITEMS;
    for (u32 i = threadIdx.x; i < BLOCK * ITEMS; i += BLOCK)
        sizes[i] = first + i < g.rows ? (u32)g.c.offsets[first + i + 1] : 0;
    __syncthreads();
    u64 mine = 0;
    for (u32 i = 0; i < ITEMS; ++i) mine += sizes[threadIdx.x * ITEMS + i];
    u64 total;
    const u64 start = look_back::within<BLOCK>(mine, total);
    if (threadIdx.x < 32) {
        const u64 sum = look_back::before(g.tiles, tile, total);
        if (threadIdx.x == 0) {
            before = sum;
            if (first + BLOCK * ITEMS >= g.rows) g.counters[ENTRIES] = sum + total;
        }
    }
    for (u32 i = threadIdx.x; i < BLOCK * ITEMS; i += BLOCK) {
        const u64 row = first + i;
        u32 bin = BINS, width = 0;
        if (row < g.rows) {
            const u64 nonzeros = g.a.offsets[row + 1] - g.a.offsets[row];
            const u32 products = products_of(g, (u32)row);
            width = range_of(g, (u32)row).width;
            bin = bin_of(g, (u32)min(nonzeros, (u64)0xffffffffu), products, width, sizes[i]);
            g.costs[row] = Cost::code(products, bin);
        }
        bins.add(bin, width, sizes[i]);
    }
    __syncthreads();
    bins.end(g);
    u64 at = g.first + before + start;
    if (tile == 0 && threadIdx.x == 0) g.c.offsets[0] = (Offset)g.first;
    for (u32 i = 0; i < ITEMS; ++i) {
        const u64 row = first + (u64)threadIdx.x * ITEMS + i;
        at += sizes[threadIdx.x * ITEMS + i];
        if (row < g.rows) g.c.offsets[row + 1] = (Offset)at;
    }
    counting::report(g);
}
