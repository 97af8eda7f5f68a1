// Entries of every row of C: columns counted in a hash table or in a mask of bits.
//
//   tiny, small       a group of lanes, a warp: hash table
//   narrow            a warp: a mask of the columns between the row's first and last
//   wide, huge        a CTA: such a mask, one window of columns after the other where it is larger
//                     than shared memory
#include "spgemm/products.cuh"
#include "spgemm/table.cuh"

constexpr u32 BLOCK = GUSTAV_BLOCK;

extern __shared__ uint4 shared_memory[];

namespace {

template <int TEAM>
__device__ __forceinline__ u32 sum_of(u32 value) {
    const u32 members = TEAM >= 32 ? 0xffffffffu
                                   : ((1u << (TEAM & 31)) - 1) << (threadIdx.x % 32 / TEAM * TEAM);
    for (u32 step = (TEAM < 32 ? TEAM : 32) / 2; step > 0; step /= 2)
        value += __shfl_xor_sync(members, value, step);
    if constexpr (TEAM > 32) {
        __shared__ u32 sums[TEAM / 32];
        __syncthreads();
        if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
        __syncthreads();
        value = 0;
        for (u32 w = 0; w < TEAM / 32; ++w) value += sums[w];
    }
    return value;
}

// Tables of at most 2^MOST places, twice as many as the row has products.
template <int TEAM, int MOST>
__device__ void count_in_table(const Arguments &g) {
    constexpr u32 TEAMS = BLOCK / TEAM;
    const u32 team = threadIdx.x / TEAM, thread = threadIdx.x % TEAM;
    const u64 i = (u64)blockIdx.x * TEAMS + team;
    if (i >= g.count) return;
    u32 *keys = (u32 *)shared_memory + ((u64)team << MOST);
    const u32 row = row_of(g, i), products = g.products[row];
    const u64 begin = g.a_offsets[row], end = g.a_offsets[row + 1];
    const u32 places = max(log2_of(TEAM), 32 - __clz(2 * products - 1));
    for (u32 at = thread; at < 1u << places; at += TEAM) keys[at] = table::EMPTY;
    meet<TEAM>();
    u32 found = 0;
    const u32 lanes = log_lanes(products, end - begin, log2_of(TEAM));
    each_product<TEAM, false>(g, begin, end, thread, lanes, [&](u32 c, Value, Value) {
        bool added;
        table::find(keys, places, c, added);
        found += added;
    });
    found = sum_of<TEAM>(found);
    if (thread == 0) g.sizes[row] = found;
}

template <int TEAM>
__device__ void count_in_mask(const Arguments &g) {
    constexpr u32 TEAMS = TEAM > BLOCK ? 1 : BLOCK / TEAM;
    const u32 team = threadIdx.x / TEAM, thread = threadIdx.x % TEAM;
    const u64 i = (u64)blockIdx.x * TEAMS + team;
    if (i >= g.count) return;
    u32 *mask = (u32 *)shared_memory + team * g.words;
    const u32 row = row_of(g, i), products = g.products[row];
    const u64 begin = g.a_offsets[row], end = g.a_offsets[row + 1];
    const u64 stop = (u64)g.low[row] + g.width[row];
    const u32 lanes = log_lanes(products, end - begin, 5);
    u32 found = 0;
    for (u64 first = g.low[row]; first < stop; first += (u64)g.words * 32) {
        const u32 span = (u32)min(stop - first, (u64)g.words * 32), words = (span + 31) / 32;
        for (u32 at = thread; at < words; at += TEAM) mask[at] = 0;
        meet<TEAM>();
        each_product<TEAM, false>(g, begin, end, thread, lanes, [&](u32 c, Value, Value) {
            const u32 at = c - (u32)first;
            if (at < span) atomicOr(mask + at / 32, 1u << at % 32);
        });
        meet<TEAM>();
        for (u32 at = thread; at < words; at += TEAM) found += __popc(mask[at]);
        meet<TEAM>();
    }
    found = sum_of<TEAM>(found);
    if (thread == 0) g.sizes[row] = found;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) tiny(const Arguments g) {
    count_in_table<GUSTAV_TINY_TEAM, GUSTAV_TINY_LOG>(g);
}
extern "C" __global__ void __launch_bounds__(BLOCK) small(const Arguments g) {
    count_in_table<32, GUSTAV_SMALL_LOG>(g);
}
extern "C" __global__ void __launch_bounds__(BLOCK) narrow(const Arguments g) {
    count_in_mask<32>(g);
}
extern "C" __global__ void __launch_bounds__(GUSTAV_WIDE_TEAM) wide(const Arguments g) {
    count_in_mask<GUSTAV_WIDE_TEAM>(g);
}
extern "C" __global__ void __launch_bounds__(GUSTAV_HUGE_TEAM) huge(const Arguments g) {
    count_in_mask<GUSTAV_HUGE_TEAM>(g);
}
