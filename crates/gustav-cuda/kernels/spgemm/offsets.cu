// Row offsets of C from the sizes of its rows, and the rows by what their numeric phase needs.
//
// One pass: a CTA scans its tile, then looks back at the tiles before it until it finds one whose
// sum is known (decoupled look-back, Merrill & Garland 2016). Tiles are taken in order.
#include "spgemm/merge.cuh"

constexpr u32 BLOCK = GUSTAV_BLOCK, ITEMS = GUSTAV_ITEMS;

namespace {

// In the order of the host's.
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
    // One row of B at a time pays where it keeps the CTA busy.
    const u32 mean = products / nonzeros;
    if (g.ordered && products >= GUSTAV_DENSE_PRODUCTS && size >= width / 4) {
        if (width <= GUSTAV_DENSE && mean >= GUSTAV_DENSE_MEAN) return DENSE;
        if (width <= GUSTAV_VAST && mean >= GUSTAV_VAST_MEAN) return VAST;
    }
    // Few entries of many products are still many products.
    if (size <= GUSTAV_SMALL_ENTRIES && products <= GUSTAV_SMALL_PRODUCTS) return SMALL;
    if (size <= GUSTAV_MEDIUM_ENTRIES && width > GUSTAV_MEDIUM_WIDTH &&
        products <= GUSTAV_MEDIUM_PRODUCTS)
        return MEDIUM;
    if (size <= GUSTAV_WIDE_ENTRIES && products <= g.wide) return WIDE;
    return size <= GUSTAV_HUGE_ENTRIES ? HUGE : GIANT;
}

// A tile's word: its state in the two highest bits, a sum below.
constexpr u64 OWN = 1ull << 62, ALL = 2ull << 62, SUM = OWN - 1;

// The sum of all tiles before `tile`, by the first warp of the CTA that has it.
__device__ u64 look_back(volatile u64 *tiles, u32 tile) {
    const u32 lane = threadIdx.x;
    u64 sum = 0;
    for (long long last = (long long)tile - 1; last >= 0; last -= 32) {
        const long long mine = last - lane;
        u64 word = ALL;
        if (mine >= 0)
            do word = tiles[mine];
            while (word == 0);
        // Lanes up to the nearest tile whose whole sum is known count.
        const u32 known = __ballot_sync(0xffffffffu, word >= ALL);
        const u32 nearest = known == 0 ? 31 : __ffs(known) - 1;
        u64 part = lane <= nearest ? word & SUM : 0;
        for (u32 step = 16; step > 0; step /= 2) part += __shfl_xor_sync(0xffffffffu, part, step);
        sum += part;
        if (known != 0) break;
    }
    return sum;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) offsets(const Arguments g) {
    __shared__ u64 warps[BLOCK / 32], before;
    __shared__ u32 ticket;
    if (threadIdx.x == 0) ticket = (u32)atomicAdd(&g.counters[TICKET], 1ull);
    __syncthreads();
    const u32 tile = ticket;
    const u64 first = (u64)tile * BLOCK * ITEMS;
    u32 size[ITEMS];
    u64 mine = 0;
    for (u32 i = 0; i < ITEMS; ++i) {
        const u64 row = first + (u64)threadIdx.x * ITEMS + i;
        size[i] = row < g.rows ? g.sizes[row] : 0;
        mine += size[i];
    }
    u64 scan = mine;
    for (u32 step = 1; step < 32; step *= 2) {
        const u64 other = __shfl_up_sync(0xffffffffu, scan, step);
        if (threadIdx.x % 32 >= step) scan += other;
    }
    if (threadIdx.x % 32 == 31) warps[threadIdx.x / 32] = scan;
    __syncthreads();
    u64 total = 0, start = 0;
    for (u32 w = 0; w < BLOCK / 32; ++w) {
        if (w == threadIdx.x / 32) start = total;
        total += warps[w];
    }
    if (threadIdx.x < 32) {
        volatile u64 *tiles = g.tiles;
        if (threadIdx.x == 0 && tile > 0) tiles[tile] = OWN | total;
        const u64 sum = look_back(tiles, tile);
        if (threadIdx.x == 0) {
            tiles[tile] = ALL | (sum + total);
            before = sum;
            if (first + BLOCK * ITEMS >= g.rows) g.counters[ENTRIES] = sum + total;
        }
    }
    __syncthreads();
    u64 at = g.first + before + start + scan - mine;
    if (tile == 0 && threadIdx.x == 0) g.c_offsets[0] = (Offset)g.first;
    for (u32 i = 0; i < ITEMS; ++i) {
        const u64 row = first + (u64)threadIdx.x * ITEMS + i;
        at += size[i];
        if (row < g.rows) g.c_offsets[row + 1] = (Offset)at;
    }
    // Neighbours have neighbouring rows, so that bins have them side by side.
    for (u32 i = 0; i < ITEMS; ++i) {
        const u64 row = first + (u64)i * BLOCK + threadIdx.x;
        u32 bin = BINS, width = 0, entries = 0;
        if (row < g.rows) {
            const u64 nonzeros = g.a_offsets[row + 1] - g.a_offsets[row];
            width = g.width[row], entries = g.sizes[row];
            bin = bin_of(g, (u32)min(nonzeros, (u64)0xffffffffu), g.products[row], width, entries);
        }
        into_bins(g, bin, (u32)row, width, entries);
    }
}
