// Columns and values of every row of C.
//
//   tiny, small, medium   lanes or a warp: hash table, then sorted
//   narrow, wide, huge    a warp or a CTA: a mask of columns first; the sum of a column is at the
//                         number of bits before its own, so that sums lie as in C
//   dense, vast           a CTA: a sum for every column, one row of B at a time, no atomics
//   copy                  a warp: one nonzero of A, a scaled row of B
//
// GUSTAV_SEMIRING   the two operations
#include "spgemm/combine.cuh"
#include "spgemm/products.cuh"
#include "spgemm/table.cuh"

constexpr u32 BLOCK = GUSTAV_BLOCK;

typedef typename Accumulator<Value>::Type Sum;
typedef GUSTAV_SEMIRING<Sum> S;

extern __shared__ uint4 shared_memory[];

namespace {

__device__ __forceinline__ Sum product(Value a, Value b) {
    return S::mul_add(widen(a), widen(b), S::zero());
}

__device__ __forceinline__ Value finished(Sum alpha, Sum sum) {
    return Narrow<Value>::from(S::scale(alpha, sum));
}

// Sorts `count` words, a power of two, by a warp.
__device__ void sort(u64 *words, u32 count, u32 thread) {
    for (u32 size = 2; size <= count; size *= 2)
        for (u32 step = size / 2; step > 0; step /= 2) {
            for (u32 pair = thread; pair < count / 2; pair += 32) {
                const u32 i = 2 * pair - (pair & (step - 1)), j = i + step;
                const u64 x = words[i], y = words[j];
                if ((x > y) == ((i & size) == 0)) words[i] = y, words[j] = x;
            }
            __syncwarp();
        }
}

template <int TEAM, int PLACES, int MOST>
__device__ void sum_in_table(const Arguments &g) {
    constexpr u32 TEAMS = BLOCK / TEAM;
    const u32 team = threadIdx.x / TEAM, thread = threadIdx.x % TEAM;
    const u64 i = (u64)blockIdx.x * TEAMS + team;
    if (i >= g.count) return;
    u64 *words = (u64 *)shared_memory + team * MOST;
    Sum *sums = (Sum *)((u64 *)shared_memory + TEAMS * MOST) + ((u64)team << PLACES);
    u32 *keys = (u32 *)((Sum *)((u64 *)shared_memory + TEAMS * MOST) + ((u64)TEAMS << PLACES)) +
                ((u64)team << PLACES);
    const u32 row = row_of(g, i);
    const u64 base = g.c_offsets[row];
    const u32 size = (u32)(g.c_offsets[row + 1] - base);
    const u32 places = max(log2_of(TEAM), 32 - __clz(2 * size - 1));
    for (u32 at = thread; at < 1u << places; at += TEAM) {
        keys[at] = table::EMPTY;
        sums[at] = S::zero();
    }
    meet<TEAM>();
    const u64 begin = g.a_offsets[row], end = g.a_offsets[row + 1];
    const u32 lanes = log_lanes(g.products[row], end - begin, log2_of(TEAM));
    each_product<TEAM, true>(g, begin, end, thread, lanes, [&](u32 c, Value a, Value b) {
        bool added;
        const u32 at = table::find(keys, places, c, added);
        combine::into<S>(sums + at, product(a, b));
    });
    meet<TEAM>();
    // Taken places, column above place.
    const u32 shift = threadIdx.x % 32 / TEAM * TEAM;
    const u32 members = TEAM == 32 ? 0xffffffffu : ((1u << (TEAM & 31)) - 1) << shift;
    u32 found = 0;
    for (u32 at = thread; at < 1u << places; at += TEAM) {
        const u32 key = keys[at];
        const u32 taken = __ballot_sync(members, key != table::EMPTY) >> shift;
        if (key != table::EMPTY)
            words[found + __popc(taken & ((1u << thread) - 1))] = (u64)key << 32 | at;
        found += __popc(TEAM == 32 ? taken : taken & ((1u << (TEAM & 31)) - 1));
    }
    const bool ranked = g.sorted && size <= 64;
    if constexpr (TEAM == 32) {
        if (g.sorted && !ranked) {
            const u32 padded = 1u << (32 - __clz(size - 1));
            for (u32 e = size + thread; e < padded; e += 32) words[e] = ~0ull;
            __syncwarp();
            sort(words, padded, thread);
        }
    }
    meet<TEAM>();
    const Sum alpha = from_bits<Sum>(g.alpha);
    for (u32 e = thread; e < size; e += TEAM) {
        const u64 word = words[e];
        u32 rank = e;
        if (ranked) {
            rank = 0;
            for (u32 other = 0; other < size; ++other) rank += words[other] < word;
        }
        g.c_indices[base + rank] = (Index)(word >> 32);
        g.c_values[base + rank] = finished(alpha, sums[(u32)word]);
    }
}

// Bits of 32 columns, and how many bits are before them.
struct Bits {
    u32 mask, before;
};

// Counts what is before every word, and writes the columns; returns the number of bits.
template <int TEAM>
__device__ u32 rank(Bits *bits, u32 words, u32 thread, Index first, Index *to) {
    constexpr u32 WARPS = TEAM / 32;
    const u32 lane = thread % 32, warp = thread / 32;
    const u32 share = ((words + WARPS - 1) / WARPS + 31) / 32 * 32;
    const u32 begin = min(warp * share, words), end = min(begin + share, words);
    u32 before = 0, total = 0;
    if constexpr (WARPS > 1) {
        __shared__ u32 sums[WARPS];
        u32 mine = 0;
        for (u32 at = begin + lane; at < end; at += 32) mine += __popc(bits[at].mask);
        for (u32 step = 16; step > 0; step /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, step);
        if (lane == 0) sums[warp] = mine;
        __syncthreads();
        for (u32 w = 0; w < WARPS; ++w) {
            if (w == warp) before = total;
            total += sums[w];
        }
    }
    for (u32 at = begin; at < end; at += 32) {
        u32 mask = at + lane < end ? bits[at + lane].mask : 0;
        const u32 own = __popc(mask);
        u32 scan = own;
        for (u32 step = 1; step < 32; step *= 2) {
            const u32 other = __shfl_up_sync(0xffffffffu, scan, step);
            if (lane >= step) scan += other;
        }
        u32 place = before + scan - own;
        if (at + lane < end) bits[at + lane].before = place;
        const Index column = first + (at + lane) * 32;
        for (; mask != 0; mask &= mask - 1) to[place++] = column + (__ffs(mask) - 1);
        before += __shfl_sync(0xffffffffu, scan, 31);
    }
    return WARPS > 1 ? total : before;
}

template <int TEAM>
__device__ void sum_by_rank(const Arguments &g) {
    constexpr u32 TEAMS = TEAM > BLOCK ? 1 : BLOCK / TEAM;
    const u32 team = threadIdx.x / TEAM, thread = threadIdx.x % TEAM;
    const u64 i = (u64)blockIdx.x * TEAMS + team;
    if (i >= g.count) return;
    Bits *bits = (Bits *)shared_memory + team * g.words;
    Sum *sums = (Sum *)((Bits *)shared_memory + TEAMS * g.words) + team * g.entries;
    const u32 row = row_of(g, i);
    const u64 begin = g.a_offsets[row], end = g.a_offsets[row + 1];
    const u64 stop = (u64)g.low[row] + g.width[row];
    const u32 lanes = log_lanes(g.products[row], end - begin, 5);
    const Sum alpha = from_bits<Sum>(g.alpha);
    u64 base = g.c_offsets[row];
    for (u64 first = g.low[row]; first < stop; first += (u64)g.words * 32) {
        const u32 span = (u32)min(stop - first, (u64)g.words * 32), words = (span + 31) / 32;
        for (u32 at = thread; at < words; at += TEAM) bits[at].mask = 0;
        meet<TEAM>();
        each_product<TEAM, false>(g, begin, end, thread, lanes, [&](u32 c, Value, Value) {
            const u32 at = c - (u32)first;
            if (at < span) atomicOr(&bits[at / 32].mask, 1u << at % 32);
        });
        meet<TEAM>();
        const u32 size = rank<TEAM>(bits, words, thread, (Index)first, g.c_indices + base);
        meet<TEAM>();
        // As many sums at a time as there is room for.
        for (u32 from = 0; from < size; from += g.entries) {
            const u32 count = min(size - from, g.entries);
            for (u32 at = thread; at < count; at += TEAM) sums[at] = S::zero();
            meet<TEAM>();
            each_product<TEAM, true>(g, begin, end, thread, lanes, [&](u32 c, Value a, Value b) {
                const u32 at = c - (u32)first;
                if (at >= span) return;
                const Bits word = bits[at / 32];
                const u32 place = word.before + __popc(word.mask & ((1u << at % 32) - 1)) - from;
                if (place < count) combine::into<S>(sums + place, product(a, b));
            });
            meet<TEAM>();
            for (u32 at = thread; at < count; at += TEAM)
                g.c_values[base + from + at] = finished(alpha, sums[at]);
            meet<TEAM>();
        }
        base += size;
    }
}

template <int TEAM>
__device__ void sum_densely(const Arguments &g) {
    constexpr u32 WARPS = TEAM / 32;
    __shared__ u32 shares[WARPS];
    const u32 thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    Sum *sums = (Sum *)shared_memory;
    u8 *taken = (u8 *)(sums + g.words * 32);
    const u32 row = row_of(g, blockIdx.x), first = g.low[row], width = g.width[row];
    const u64 begin = g.a_offsets[row], end = g.a_offsets[row + 1], base = g.c_offsets[row];
    const bool full = g.c_offsets[row + 1] - base == width;
    for (u32 at = thread; at < width; at += TEAM) {
        sums[at] = S::zero();
        taken[at] = 0;
    }
    __syncthreads();
    each_product<TEAM, true>(
        g, begin, end, thread, log2_of(TEAM),
        [&](u32 c, Value a, Value b) {
            const u32 at = c - first;
            sums[at] = S::mul_add(widen(a), widen(b), sums[at]);
            if (!full) taken[at] = 1;
        },
        [] { __syncthreads(); });
    const Sum alpha = from_bits<Sum>(g.alpha);
    if (full) {
        for (u32 at = thread; at < width; at += TEAM) {
            g.c_indices[base + at] = (Index)(first + at);
            g.c_values[base + at] = finished(alpha, sums[at]);
        }
        return;
    }
    const u32 share = ((width + WARPS - 1) / WARPS + 31) / 32 * 32;
    const u32 from = min(warp * share, width), to = min(from + share, width);
    u32 mine = 0;
    for (u32 at = from + lane; at < to; at += 32) mine += taken[at];
    for (u32 step = 16; step > 0; step /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, step);
    if (lane == 0) shares[warp] = mine;
    __syncthreads();
    u64 place = base;
    for (u32 w = 0; w < warp; ++w) place += shares[w];
    for (u32 start = from; start < to; start += 32) {
        const u32 at = start + lane;
        const bool here = at < to && taken[at];
        const u32 all = __ballot_sync(0xffffffffu, here);
        if (here) {
            const u64 mine = place + __popc(all & ((1u << lane) - 1));
            g.c_indices[mine] = (Index)(first + at);
            g.c_values[mine] = finished(alpha, sums[at]);
        }
        place += __popc(all);
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) tiny(const Arguments g) {
    sum_in_table<GUSTAV_TINY_TEAM, GUSTAV_TINY_LOG, GUSTAV_TINY>(g);
}
extern "C" __global__ void __launch_bounds__(BLOCK) small(const Arguments g) {
    sum_in_table<32, log2_of(2 * GUSTAV_SMALL_ENTRIES), GUSTAV_SMALL_ENTRIES>(g);
}
extern "C" __global__ void __launch_bounds__(BLOCK) medium(const Arguments g) {
    sum_in_table<32, log2_of(2 * GUSTAV_MEDIUM_ENTRIES), GUSTAV_MEDIUM_ENTRIES>(g);
}
extern "C" __global__ void __launch_bounds__(BLOCK) narrow(const Arguments g) {
    sum_by_rank<32>(g);
}
extern "C" __global__ void __launch_bounds__(GUSTAV_WIDE_TEAM) wide(const Arguments g) {
    sum_by_rank<GUSTAV_WIDE_TEAM>(g);
}
extern "C" __global__ void __launch_bounds__(GUSTAV_HUGE_TEAM) huge(const Arguments g) {
    sum_by_rank<GUSTAV_HUGE_TEAM>(g);
}
extern "C" __global__ void __launch_bounds__(GUSTAV_WIDE_TEAM) dense(const Arguments g) {
    sum_densely<GUSTAV_WIDE_TEAM>(g);
}
extern "C" __global__ void __launch_bounds__(GUSTAV_HUGE_TEAM) vast(const Arguments g) {
    sum_densely<GUSTAV_HUGE_TEAM>(g);
}

extern "C" __global__ void __launch_bounds__(BLOCK) copy(const Arguments g) {
    const u64 i = (u64)blockIdx.x * (BLOCK / 32) + threadIdx.x / 32;
    if (i >= g.count) return;
    const u32 row = row_of(g, i);
    const u64 at = g.a_offsets[row], base = g.c_offsets[row];
    const u64 k = g.a_indices[at], from = g.b_offsets[k], size = g.b_offsets[k + 1] - from;
    const Value a = g.a_values[at];
    const Sum alpha = from_bits<Sum>(g.alpha);
    for (u64 j = threadIdx.x % 32; j < size; j += 32) {
        g.c_indices[base + j] = g.b_indices[from + j];
        g.c_values[base + j] = finished(alpha, product(a, g.b_values[from + j]));
    }
}
