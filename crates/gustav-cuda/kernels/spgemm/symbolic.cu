// Number of entries of every row of C: columns counted in a hash table or in a bit mask.
//
//   merged_few, merged_many   a thread: the merged rows of B
//   tiny, small       a group of lanes, a warp: hash table
//   narrow            a warp: a mask of the columns between the row's first and last
//   wide .. giant     a CTA: such a mask, one window of columns after the other where it is larger
//                     than shared memory
//   cut               several CTAs, a chunk of A's row each: the union of their masks
//   united            a CTA, where B is full enough to be held as bits: the union of its rows
#include "spgemm/merge.cuh"
#include "spgemm/split_rows.cuh"
#include "spgemm/products.cuh"
#include "spgemm/table.cuh"

constexpr u32 BLOCK = GUSTAV_BLOCK;

extern __shared__ uint4 shared_memory[];

namespace {

template <int GROUP>
__device__ __forceinline__ u32 sum_of(u32 value) {
    for (u32 step = (GROUP < 32 ? GROUP : 32) / 2; step > 0; step /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, step);
    if constexpr (GROUP > 32) {
        __shared__ u32 sums[GROUP / 32];
        __syncthreads();
        if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
        __syncthreads();
        value = 0;
        for (u32 w = 0; w < GROUP / 32; ++w) value += sums[w];
    }
    return value;
}

template <u32 LISTS>
__device__ void count_by_merging(const Arguments &g) {
    const u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x;
    const bool here = i < g.count;
    const u32 row = here ? row_of(g, i) : 0;
    const u64 begin = g.a.offsets[row];
    const u32 count = here ? (u32)(g.a.offsets[row + 1] - begin) : 0;
    u32 found = 0;
    merge::columns<LISTS, false>(
        g, begin, count, [](u32, Value) {}, [&](u32 c) { found += c != merge::NONE; });
    if (here) put_size(g, row, found);
}

// Tables of at most 2^MOST slots, twice as many as the row has products.
template <int GROUP, int MOST>
__device__ void count_in_table(const Arguments &g) {
    constexpr u32 GROUPS = BLOCK / GROUP;
    const u32 group = threadIdx.x / GROUP, thread = threadIdx.x % GROUP;
    const u64 i = (u64)blockIdx.x * GROUPS + group;
    const bool here = i < g.count;
    u32 *keys = (u32 *)shared_memory + ((u64)group << MOST);
    const u32 row = here ? row_of(g, i) : 0, products = here ? products_of(g, row) : 1;
    const u64 begin = g.a.offsets[row];
    const u32 count = here ? (u32)(g.a.offsets[row + 1] - begin) : 0;
    const u32 least = max(log2_of(GROUP), 32 - __clz(2 * products - 1));
    const u32 log_slots = largest_of_groups<GROUP>(least);
    for (u32 at = thread; at < 1u << log_slots; at += GROUP) keys[at] = table::EMPTY;
    sync_group<GROUP>();
    u32 found = 0;
    const u32 lanes = log_lanes<GROUP>(products, count);
    each_product<GROUP, false>(g, begin, count, thread, lanes, [&](u32 c, Sum, Value) {
        bool added;
        table::find(keys, log_slots, c, added);
        found += added;
    });
    found = sum_of<GROUP>(found);
    if (here && thread == 0) put_size(g, row, found);
}

template <int GROUP>
__device__ void count_in_mask(const Arguments &g) {
    constexpr u32 GROUPS = GROUP > BLOCK ? 1 : BLOCK / GROUP;
    const u32 group = threadIdx.x / GROUP, thread = threadIdx.x % GROUP;
    const u64 i = (u64)blockIdx.x * GROUPS + group;
    if (i >= g.count) return;
    u32 *mask = (u32 *)shared_memory + group * g.words;
    const u32 row = row_of(g, i), products = products_of(g, row);
    const u64 begin = g.a.offsets[row];
    const u32 count = (u32)(g.a.offsets[row + 1] - begin);
    const Range range = range_of(g, row);
    const u64 stop = (u64)range.low + range.width;
    const u32 lanes = log_lanes<GROUP>(products, count);
    u32 found = 0;
    for (u64 first = range.low; first < stop; first += (u64)g.words * 32) {
        const u32 span = (u32)min(stop - first, (u64)g.words * 32), words = (span + 31) / 32;
        for (u32 at = thread; at < words; at += GROUP) mask[at] = 0;
        sync_group<GROUP>();
        each_product<GROUP, false>(g, begin, count, thread, lanes, [&](u32 c, Sum, Value) {
            const u32 at = c - (u32)first, bit = 1u << at % 32;
            // With many products per entry, most bits are set already: the check avoids atomics.
            if (at < span && (mask[at / 32] & bit) == 0) atomicOr(mask + at / 32, bit);
        });
        sync_group<GROUP>();
        for (u32 at = thread; at < words; at += GROUP) found += __popc(mask[at]);
        sync_group<GROUP>();
    }
    found = sum_of<GROUP>(found);
    if (thread == 0) put_size(g, row, found);
}

template <int GROUP>
__device__ void count_in_chunks(const Arguments &g) {
    const split_rows::Chunk chunk = split_rows::own(g);
    const u32 low = range_of(g, chunk.row).low, thread = threadIdx.x;
    u32 *mask = (u32 *)shared_memory;
    for (u32 at = thread; at < g.words; at += GROUP) mask[at] = 0;
    __syncthreads();
    const u32 lanes = split_rows::log_lanes<GROUP>(g, chunk);
    each_product<GROUP, false>(g, chunk.begin, chunk.count, thread, lanes, [&](u32 c, Sum, Value) {
        const u32 at = c - low, bit = 1u << at % 32;
        if ((mask[at / 32] & bit) == 0) atomicOr(mask + at / 32, bit);
    });
    __syncthreads();
    u32 *all = split_rows::bits_of(g, chunk);
    for (u32 at = thread; at < g.words; at += GROUP)
        if (mask[at] & ~ptx::load_relaxed(all + at)) atomicOr(all + at, mask[at]);
    if (!split_rows::ends(g, chunk)) return;
    u32 found = 0;
    for (u32 at = thread; at < g.words; at += GROUP) found += __popc(all[at]);
    found = sum_of<GROUP>(found);
    if (thread == 0) put_size(g, chunk.row, found);
}

// Every thread computes different words of the union, and stops at a word once all its bits are
// set.
template <int GROUP>
__device__ void count_in_union(const Arguments &g) {
    constexpr u32 IN_FLIGHT = 8;
    const u32 row = row_of(g, blockIdx.x);
    const u64 begin = g.a.offsets[row], end = g.a.offsets[row + 1];
    u32 found = 0;
    for (u32 word = threadIdx.x; word < g.bit_words; word += GROUP) {
        const u32 last = (u32)(g.columns - (u64)word * 32);
        const u32 full = last >= 32 ? 0xffffffffu : (1u << last) - 1;
        u32 mask = 0;
        for (u64 at = begin; at < end && mask != full; at += IN_FLIGHT)
#pragma unroll
            for (u32 u = 0; u < IN_FLIGHT; ++u)
                if (at + u < end) mask |= g.bits[(u64)g.a.indices[at + u] * g.bit_words + word];
        found += __popc(mask);
    }
    found = sum_of<GROUP>(found);
    if (threadIdx.x == 0) put_size(g, row, found);
}

}  // namespace

// Sets the bits of B's entries, a warp a row.
extern "C" __global__ void __launch_bounds__(BLOCK) bits(const Arguments g) {
    const u64 row = (u64)blockIdx.x * (BLOCK / 32) + threadIdx.x / 32;
    if (row >= g.rows_b) return;
    for (u64 at = g.b.offsets[row] + threadIdx.x % 32; at < g.b.offsets[row + 1]; at += 32) {
        const u32 c = (u32)g.b.indices[at];
        atomicOr(g.bits + row * g.bit_words + c / 32, 1u << c % 32);
    }
}
extern "C" __global__ void __launch_bounds__(GUSTAV_WIDE_GROUP) united(const Arguments g) {
    count_in_union<GUSTAV_WIDE_GROUP>(g);
}
extern "C" __global__ void __launch_bounds__(BLOCK) merged_few(const Arguments g) {
    count_by_merging<merge::FEW>(g);
}
extern "C" __global__ void __launch_bounds__(BLOCK) merged_many(const Arguments g) {
    count_by_merging<merge::MANY>(g);
}
extern "C" __global__ void __launch_bounds__(BLOCK) tiny(const Arguments g) {
    count_in_table<GUSTAV_TINY_GROUP, GUSTAV_TINY_LOG>(g);
}
extern "C" __global__ void __launch_bounds__(BLOCK) small(const Arguments g) {
    count_in_table<32, GUSTAV_SMALL_LOG>(g);
}
extern "C" __global__ void __launch_bounds__(BLOCK) narrow(const Arguments g) {
    count_in_mask<32>(g);
}
extern "C" __global__ void __launch_bounds__(GUSTAV_WIDE_GROUP) wide(const Arguments g) {
    count_in_mask<GUSTAV_WIDE_GROUP>(g);
}
extern "C" __global__ void __launch_bounds__(GUSTAV_HUGE_GROUP) huge(const Arguments g) {
    count_in_mask<GUSTAV_HUGE_GROUP>(g);
}
extern "C" __global__ void __launch_bounds__(GUSTAV_GIANT_GROUP) giant(const Arguments g) {
    count_in_mask<GUSTAV_GIANT_GROUP>(g);
}
extern "C" __global__ void __launch_bounds__(GUSTAV_WIDE_GROUP) cut(const Arguments g) {
    count_in_chunks<GUSTAV_WIDE_GROUP>(g);
}
