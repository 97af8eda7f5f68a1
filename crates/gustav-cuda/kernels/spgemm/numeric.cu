// Columns and values of every row of C.
//
//   merged_few, merged_many   a thread: the merged rows of B
//   tiny, small, medium   lanes, a warp, a CTA: hash table, then sorted
//   narrow .. giant       a warp or a CTA: a mask of columns first; the index of a sum is the
//                         rank of its bit, so that sums are in the order of C
//   dense, vast           a CTA: a sum for every column, one row of B at a time, no atomics
//   cut                   several CTAs, a chunk of A's row each: sums for every column, in several
//                         copies if they fit, which are added to those of the row
//   copy                  a warp: one nonzero of A, a scaled row of B
//
// GUSTAV_SEMIRING   the two operations
#include "spgemm/combine.cuh"
#include "spgemm/merge.cuh"
#include "spgemm/split_rows.cuh"
#include "spgemm/products.cuh"
#include "spgemm/table.cuh"

constexpr u32 BLOCK = GUSTAV_BLOCK;

typedef GUSTAV_SEMIRING<Sum> S;

extern __shared__ uint4 shared_memory[];

namespace {

__device__ __forceinline__ Sum product(Sum a, Value b) {
    return S::mul_add(a, widen(b), S::zero());
}

__device__ __forceinline__ Out finished(Sum alpha, Sum sum) {
    return Narrow<Out>::from(S::scale(alpha, sum));
}

// A thread's entries of those of a thread group.
template <int MANY>
struct Entries {
    u64 words[MANY];
    u32 ranks[MANY];
};

// An exclusive prefix sum of `MOST` counts; the total follows them.
template <int GROUP, int MOST>
__device__ __forceinline__ void scan(u32 *counts, u32 thread) {
    constexpr u32 MANY = MOST / GROUP, WARPS = GROUP > 32 ? GROUP / 32 : 1;
    __shared__ u32 sums[WARPS];
    u32 own[MANY], mine = 0;
#pragma unroll
    for (u32 n = 0; n < MANY; ++n) mine += own[n] = counts[thread * MANY + n];
    const u32 up_to = warp::sum_up_to(mine);
    u32 before = up_to - mine;
    if constexpr (WARPS > 1) {
        if (thread % 32 == 31) sums[thread / 32] = up_to;
        __syncthreads();
        for (u32 w = 0; w < thread / 32; ++w) before += sums[w];
    }
#pragma unroll
    for (u32 n = 0; n < MANY; ++n) {
        counts[thread * MANY + n] = before;
        before += own[n];
    }
    if (thread == GROUP - 1) counts[MOST] = before;
}

// Ranks entries by column. They are distributed over MOST buckets by the highest bits of their
// column within the row's range; the rank is the number of entries in earlier buckets and of
// smaller ones in the same bucket. `spare` has 2 * MOST + 1 words.
template <int GROUP, int MOST>
__device__ void rank_by_bucket(Entries<MOST / GROUP> &own, u32 size, u32 *spare, u32 low, u32 width,
                               u32 thread) {
    constexpr u32 MANY = MOST / GROUP, LOG = log2_of(MOST);
    u32 *counts = spare, *ordered = spare + MOST + 1;
    const u32 bits = 32 - __clz(max(width, 1u) - 1), shift = bits > LOG ? bits - LOG : 0;
    const auto bucket = [&](u32 n) { return ((u32)(own.words[n] >> 32) - low) >> shift; };
    for (u32 at = thread; at < MOST; at += GROUP) counts[at] = 0;
    sync_group<GROUP>();
#pragma unroll
    for (u32 n = 0; n < MANY; ++n)
        if (thread + n * GROUP < size) own.ranks[n] = atomicAdd(counts + bucket(n), 1u);
    sync_group<GROUP>();
    scan<GROUP, MOST>(counts, thread);
    sync_group<GROUP>();
#pragma unroll
    for (u32 n = 0; n < MANY; ++n)
        if (thread + n * GROUP < size)
            ordered[counts[bucket(n)] + own.ranks[n]] = (u32)(own.words[n] >> 32);
    sync_group<GROUP>();
#pragma unroll
    for (u32 n = 0; n < MANY; ++n) {
        if (thread + n * GROUP >= size) continue;
        const u32 key = (u32)(own.words[n] >> 32), from = counts[bucket(n)];
        const u32 to = counts[bucket(n) + 1];
        u32 rank = from;
        for (u32 at = from; at < to; ++at) rank += ordered[at] < key;
        own.ranks[n] = rank;
    }
}

// Rows of at most MOST entries, in tables of at most 2^LOG_SLOTS > 2 * MOST words.
template <int GROUP, int LOG_SLOTS, int MOST>
__device__ void sum_in_table(const Arguments &g) {
    constexpr u32 GROUPS = GROUP > BLOCK ? 1 : BLOCK / GROUP, WIDTH = GROUP < 32 ? GROUP : 32;
    constexpr u32 MANY = MOST / GROUP;
    __shared__ u32 filled[GROUPS];
    const u32 group = threadIdx.x / GROUP, thread = threadIdx.x % GROUP, lane = thread % WIDTH;
    const u64 i = (u64)blockIdx.x * GROUPS + group;
    const bool here = i < g.count;
    u64 *words = (u64 *)shared_memory + group * MOST;
    Sum *sums = (Sum *)((u64 *)shared_memory + GROUPS * MOST) + ((u64)group << LOG_SLOTS);
    u32 *keys = (u32 *)((Sum *)((u64 *)shared_memory + GROUPS * MOST) + ((u64)GROUPS << LOG_SLOTS)) +
                group * ((1u << LOG_SLOTS) + 2);
    const u32 row = here ? row_of(g, i) : 0;
    const u64 base = g.c.offsets[row], begin = g.a.offsets[row];
    const u32 size = here ? (u32)(g.c.offsets[row + 1] - base) : 0;
    const u32 count = here ? (u32)(g.a.offsets[row + 1] - begin) : 0;
    const u32 least = max(log2_of(WIDTH), size == 0 ? 0 : 32 - __clz(2 * size - 1));
    const u32 log_slots = largest_of_groups<GROUP>(least);
    for (u32 at = thread; at < 1u << log_slots; at += GROUP) {
        keys[at] = table::EMPTY;
        sums[at] = S::zero();
    }
    if (thread == 0) filled[group] = 0;
    sync_group<GROUP>();
    const u32 lanes = log_lanes<GROUP>(here ? products_of(g, row) : 0, count);
    each_product<GROUP, true>(g, begin, count, thread, lanes, [&](u32 c, Sum a, Value b) {
        bool added;
        const u32 at = table::find(keys, log_slots, c, added);
        combine::into<S>(sums + at, product(a, b));
    });
    sync_group<GROUP>();
    // Collect the used slots: column in the high word, slot in the low one.
    const u32 first = threadIdx.x % 32 / WIDTH * WIDTH;
    u32 position = 0;
    for (u32 at = thread; at < 1u << log_slots; at += GROUP) {
        const u32 key = keys[at];
        const u32 taken = __ballot_sync(0xffffffffu, key != table::EMPTY) >> first;
        const u32 mine = WIDTH == 32 ? taken : taken & ((1u << (WIDTH & 31)) - 1);
        if constexpr (GROUP > 32) {
            if (lane == 0 && mine != 0) position = atomicAdd(filled + group, (u32)__popc(mine));
            position = __shfl_sync(0xffffffffu, position, 0);
        }
        if (key != table::EMPTY)
            words[position + __popc(mine & ((1u << lane) - 1))] = (u64)key << 32 | at;
        position += __popc(mine);
    }
    sync_group<GROUP>();
    const u32 most = GROUP > 32 ? MOST : largest_of_groups<GROUP>(size);
    Entries<MANY> own;
#pragma unroll
    for (u32 n = 0; n < MANY; ++n) {
        if (n * GROUP >= most) break;
        const u32 e = thread + n * GROUP;
        own.words[n] = e < size ? words[e] : 0;
        own.ranks[n] = e;
    }
    if (g.sorted) {
        if constexpr (GROUP >= 32) {
            const Range range = range_of(g, row);
            rank_by_bucket<GROUP, MOST>(own, size, keys, range.low, range.width, thread);
        } else {
#pragma unroll
            for (u32 n = 0; n < MANY; ++n) {
                if (n * GROUP >= most) break;
                const u32 key = (u32)(own.words[n] >> 32);
                own.ranks[n] = 0;
                for (u32 other = 0; other < most; ++other)
                    own.ranks[n] += other < size && (u32)(words[other] >> 32) < key;
            }
        }
    }
    const Sum alpha = from_bits<Sum>(g.alpha);
#pragma unroll
    for (u32 n = 0; n < MANY; ++n) {
        if (thread + n * GROUP >= size) continue;
        g.c.indices[base + own.ranks[n]] = (Index)(own.words[n] >> 32);
        g.c.values[base + own.ranks[n]] = finished(alpha, sums[(u32)own.words[n]]);
    }
}

// Entries are staged in shared memory, so that half a warp writes neighbouring words of one row.
template <u32 LISTS>
__device__ void sum_by_merging(const Arguments &g) {
    constexpr u32 STAGED = 16, STRIDE = STAGED + 1, WARPS = BLOCK / 32;
    __shared__ u32 staged_columns[WARPS][32 * STRIDE];
    __shared__ Out staged_values[WARPS][32 * STRIDE];
    const u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x;
    const u32 lane = threadIdx.x % 32;
    u32 *columns = staged_columns[threadIdx.x / 32];
    Out *values = staged_values[threadIdx.x / 32];
    const bool here = i < g.count;
    const u32 row = here ? row_of(g, i) : 0;
    const u64 begin = g.a.offsets[row];
    const u32 count = here ? (u32)(g.a.offsets[row + 1] - begin) : 0;
    u64 base = g.c.offsets[row];
    Sum factors[LISTS];
#pragma unroll
    for (u32 n = 0; n < LISTS; ++n)
        factors[n] = n < count ? widen(g.a.values[begin + n]) : Sum();
    const Sum alpha = from_bits<Sum>(g.alpha);
    Sum sum = S::zero();
    u32 filled = 0, steps = 0;
    const auto leave = [&] {
        __syncwarp();
        for (u32 pair = 0; pair < 32; pair += 2) {
            const u32 from = pair + lane / STAGED, n = lane % STAGED;
            const u32 many = __shfl_sync(0xffffffffu, filled, from);
            const u64 to = __shfl_sync(0xffffffffu, base, from) + n;
            if (n >= many) continue;
            g.c.indices[to] = (Index)columns[from * STRIDE + n];
            g.c.values[to] = values[from * STRIDE + n];
        }
        __syncwarp();
        base += filled;
        filled = 0;
    };
    merge::columns<LISTS, true>(
        g, begin, count, [&](u32 n, Value b) { sum = S::mul_add(factors[n], widen(b), sum); },
        [&](u32 c) {
            if (c != merge::NONE) {
                columns[lane * STRIDE + filled] = c;
                values[lane * STRIDE + filled] = finished(alpha, sum);
                ++filled;
                sum = S::zero();
            }
            if (++steps % STAGED == 0) leave();
        });
    leave();
}

// Bits of 32 columns, and the number of bits before them.
struct Bits {
    u32 mask, before;
};

// Counts the bits before every word, and writes the columns; returns the number of bits.
template <int GROUP>
__device__ u32 rank(Bits *bits, u32 words, u32 thread, Index first, Index *to) {
    constexpr u32 WARPS = GROUP / 32;
    const u32 lane = thread % 32, warp = thread / 32;
    const u32 share = ((words + WARPS - 1) / WARPS + 31) / 32 * 32;
    const u32 begin = min(warp * share, words), end = min(begin + share, words);
    u32 before = 0, total = 0;
    if constexpr (WARPS > 1) {
        __shared__ u32 sums[WARPS];
        u32 mine = 0;
        for (u32 at = begin + lane; at < end; at += 32) mine += __popc(bits[at].mask);
        mine = warp::sum(mine);
        if (lane == 0) sums[warp] = mine;
        __syncthreads();
        for (u32 w = 0; w < WARPS; ++w) {
            if (w == warp) before = total;
            total += sums[w];
        }
    }
    for (u32 at = begin; at < end; at += 32) {
        u32 mask = at + lane < end ? bits[at + lane].mask : 0;
        if (__ballot_sync(0xffffffffu, mask != 0) == 0) continue;
        const u32 own = __popc(mask);
        const u32 up_to = warp::sum_up_to(own);
        u32 position = before + up_to - own;
        if (at + lane < end) bits[at + lane].before = position;
        const Index column = first + (at + lane) * 32;
        for (; mask != 0; mask &= mask - 1) to[position++] = column + (__ffs(mask) - 1);
        before += __shfl_sync(0xffffffffu, up_to, 31);
    }
    return WARPS > 1 ? total : before;
}

template <int GROUP>
__device__ void sum_by_rank(const Arguments &g) {
    constexpr u32 GROUPS = GROUP > BLOCK ? 1 : BLOCK / GROUP;
    const u32 group = threadIdx.x / GROUP, thread = threadIdx.x % GROUP;
    const u64 i = (u64)blockIdx.x * GROUPS + group;
    if (i >= g.count) return;
    Bits *bits = (Bits *)shared_memory + group * g.words;
    Sum *sums = (Sum *)((Bits *)shared_memory + GROUPS * g.words) + group * g.entries;
    const u32 row = row_of(g, i);
    const u64 begin = g.a.offsets[row];
    const u32 count = (u32)(g.a.offsets[row + 1] - begin);
    const Range range = range_of(g, row);
    const u64 stop = (u64)range.low + range.width;
    const u32 lanes = log_lanes<GROUP>(products_of(g, row), count);
    // Columns of one row of B differ, so a warp that adds one row at a time needs no atomics.
    const bool alone = GROUP == 32 && lanes == 5 && g.ordered;
    const Sum alpha = from_bits<Sum>(g.alpha);
    u64 base = g.c.offsets[row];
    for (u64 first = range.low; first < stop; first += (u64)g.words * 32) {
        const u32 span = (u32)min(stop - first, (u64)g.words * 32), words = (span + 31) / 32;
        for (u32 at = thread; at < words; at += GROUP) bits[at] = Bits{0, 0};
        sync_group<GROUP>();
        each_product<GROUP, false>(g, begin, count, thread, lanes, [&](u32 c, Sum, Value) {
            const u32 at = c - (u32)first, bit = 1u << at % 32;
            if (at < span && (bits[at / 32].mask & bit) == 0) atomicOr(&bits[at / 32].mask, bit);
        });
        sync_group<GROUP>();
        const u32 size = rank<GROUP>(bits, words, thread, (Index)first, g.c.indices + base);
        sync_group<GROUP>();
        // As many sums at a time as fit in shared memory.
        for (u32 from = 0; from < size; from += g.entries) {
            const u32 fits = min(size - from, g.entries);
            for (u32 at = thread; at < fits; at += GROUP) sums[at] = S::zero();
            sync_group<GROUP>();
            const auto slot_of = [&](u32 c) {
                const u32 at = c - (u32)first;
                if (at >= span) return fits;
                const Bits word = bits[at / 32];
                return word.before + __popc(word.mask & ((1u << at % 32) - 1)) - from;
            };
            if (alone) {
                each_product<GROUP, true>(
                    g, begin, count, thread, 5,
                    [&](u32 c, Sum a, Value b) {
                        const u32 slot = slot_of(c);
                        if (slot < fits) sums[slot] = S::mul_add(a, widen(b), sums[slot]);
                    },
                    [] { __syncwarp(); });
            } else {
                each_product<GROUP, true>(
                    g, begin, count, thread, lanes, [&](u32 c, Sum a, Value b) {
                        const u32 slot = slot_of(c);
                        if (slot < fits) combine::into<S>(sums + slot, product(a, b));
                    });
            }
            sync_group<GROUP>();
            for (u32 at = thread; at < fits; at += GROUP)
                g.c.values[base + from + at] = finished(alpha, sums[at]);
            sync_group<GROUP>();
        }
        base += size;
    }
}

// `g.entries` copies of the sums, a power of two; a thread adds to copy `thread % g.entries`.
template <int GROUP>
__device__ void sum_in_chunks(const Arguments &g) {
    const split_rows::Chunk chunk = split_rows::own(g);
    const u32 thread = threadIdx.x, lane = thread % 32, copies = g.entries;
    const u32 row = chunk.row, low = range_of(g, row).low, columns = g.words * 32;
    Bits *bits = (Bits *)shared_memory;
    Sum *sums = (Sum *)(bits + g.words);
    for (u32 at = thread; at < columns * copies; at += GROUP) sums[at] = S::zero();
    __syncthreads();
    Sum *mine = sums + (thread & (copies - 1));
    const bool alone = copies == GROUP;
    const u32 lanes = split_rows::log_lanes<GROUP>(g, chunk);
    each_product<GROUP, true>(
        g, chunk.begin, chunk.count, thread, lanes, [&](u32 c, Sum a, Value b) {
            Sum *sum = mine + (c - low) * copies;
            if (alone)
                *sum = S::mul_add(a, widen(b), *sum);
            else
                combine::into<S>(sum, product(a, b));
        });
    __syncthreads();
    Sum *found = split_rows::sums_of(g, chunk);
    const u32 stored = split_rows::sums_of_a_row(g);
    const auto give = [&](u32 at, Sum sum) {
        if (sum != S::zero()) combine::into<S>(found + at, sum);
    };
    if (copies < 32) {
        for (u32 at = thread; at < stored; at += GROUP) {
            Sum sum = sums[at * copies];
            for (u32 n = 1; n < copies; ++n) sum = S::add(sum, sums[at * copies + n]);
            give(at, sum);
        }
    } else {
        for (u32 at = thread / 32; at < stored; at += GROUP / 32) {
            Sum sum = sums[at * copies + lane];
            for (u32 n = lane + 32; n < copies; n += 32) sum = S::add(sum, sums[at * copies + n]);
            for (u32 step = 16; step > 0; step /= 2)
                sum = S::add(sum, __shfl_xor_sync(0xffffffffu, sum, step));
            if (lane == 0) give(at, sum);
        }
    }
    if (!split_rows::ends(g, chunk)) return;
    // The bits from the symbolic phase.
    for (u32 at = thread; at < g.words; at += GROUP) bits[at] = Bits{split_rows::bits_of(g, chunk)[at], 0};
    __syncthreads();
    const u64 base = g.c.offsets[row];
    rank<GROUP>(bits, g.words, thread, (Index)low, g.c.indices + base);
    __syncthreads();
    const Sum alpha = from_bits<Sum>(g.alpha);
    for (u32 at = thread; at < stored; at += GROUP) {
        const u32 mask = bits[at / 32].mask;
        if ((mask >> at % 32 & 1) == 0) continue;
        g.c.values[base + bits[at / 32].before + __popc(mask & ((1u << at % 32) - 1))] =
            finished(alpha, found[at]);
        // Zero for the next launch.
        found[at] = S::zero();
    }
}

template <int GROUP>
__device__ void sum_densely(const Arguments &g) {
    constexpr u32 WARPS = GROUP / 32, BATCH = 32;
    __shared__ u32 counts[WARPS], lengths[BATCH];
    __shared__ Offset starts[BATCH];
    __shared__ Sum factors[BATCH];
    const u32 thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    Sum *sums = (Sum *)shared_memory;
    u32 *taken = (u32 *)(sums + g.words * 32);
    const u32 row = row_of(g, blockIdx.x);
    const Range range = range_of(g, row);
    const u32 first = range.low, width = range.width;
    const u64 begin = g.a.offsets[row], base = g.c.offsets[row];
    const u32 count = (u32)(g.a.offsets[row + 1] - begin);
    const bool full = g.c.offsets[row + 1] - base == width;
    for (u32 at = thread; at < width; at += GROUP) sums[at] = S::zero();
    if (!full)
        for (u32 at = thread; at < g.words; at += GROUP) taken[at] = 0;
    const auto take = [&](u32 at) {
        const u32 bit = 1u << at % 32;
        if (!full && (taken[at / 32] & bit) == 0) atomicOr(taken + at / 32, bit);
    };
    const auto add = [&](u32 c, Sum a, Value b) {
        Sum &sum = sums[c - first];
        sum = S::mul_add(a, widen(b), sum);
        take(c - first);
    };
    for (u32 batch = 0; batch < count; batch += BATCH) {
        const u32 valid = min(BATCH, count - batch);
        __syncthreads();
        if (thread < valid) {
            const Index k = g.a.indices[begin + batch + thread];
            starts[thread] = g.b.offsets[k];
            lengths[thread] = (u32)(g.b.offsets[k + 1] - g.b.offsets[k]);
            factors[thread] = widen(g.a.values[begin + batch + thread]);
        }
        __syncthreads();
        // Two entries of the next row are loaded ahead.
        u32 columns[2];
        Value values[2];
        const auto fetch = [&](u32 j) {
            if (j >= valid) return;
#pragma unroll
            for (u32 u = 0; u < 2; ++u) {
                const u32 i = thread + u * GROUP;
                if (i >= lengths[j]) break;
                columns[u] = (u32)g.b.indices[starts[j] + i];
                values[u] = g.b.values[starts[j] + i];
            }
        };
        fetch(0);
        for (u32 j = 0; j < valid; ++j) {
            const u32 c[2] = {columns[0], columns[1]};
            const Value b[2] = {values[0], values[1]};
            fetch(j + 1);
            const u32 length = lengths[j];
            const Offset start = starts[j];
            const Sum a = factors[j];
            if (thread < length) add(c[0], a, b[0]);
            if (thread + GROUP < length) add(c[1], a, b[1]);
            for (u32 i = thread + 2 * GROUP; i < length; i += GROUP)
                add((u32)g.b.indices[start + i], a, g.b.values[start + i]);
            __syncthreads();
        }
    }
    const Sum alpha = from_bits<Sum>(g.alpha);
    if (full) {
        for (u32 at = thread; at < width; at += GROUP) {
            g.c.indices[base + at] = (Index)(first + at);
            g.c.values[base + at] = finished(alpha, sums[at]);
        }
        return;
    }
    const u32 share = ((width + WARPS - 1) / WARPS + 31) / 32 * 32;
    const u32 from = min(warp * share, width), to = min(from + share, width);
    u32 mine = 0;
    for (u32 at = from / 32 + lane; at < (to + 31) / 32; at += 32) mine += __popc(taken[at]);
    mine = warp::sum(mine);
    if (lane == 0) counts[warp] = mine;
    __syncthreads();
    u64 position = base;
    for (u32 w = 0; w < warp; ++w) position += counts[w];
    for (u32 start = from; start < to; start += 32) {
        const u32 at = start + lane;
        const u32 all = taken[start / 32];
        if (all >> lane & 1) {
            const u64 mine = position + __popc(all & ((1u << lane) - 1));
            g.c.indices[mine] = (Index)(first + at);
            g.c.values[mine] = finished(alpha, sums[at]);
        }
        position += __popc(all);
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) merged_few(const Arguments g) {
    sum_by_merging<merge::FEW>(g);
}
extern "C" __global__ void __launch_bounds__(BLOCK) merged_many(const Arguments g) {
    sum_by_merging<merge::MANY>(g);
}
extern "C" __global__ void __launch_bounds__(BLOCK) tiny(const Arguments g) {
    sum_in_table<GUSTAV_TINY_GROUP, GUSTAV_TINY_LOG, GUSTAV_TINY>(g);
}
extern "C" __global__ void __launch_bounds__(BLOCK) small(const Arguments g) {
    sum_in_table<32, log2_of(2 * GUSTAV_SMALL_ENTRIES), GUSTAV_SMALL_ENTRIES>(g);
}
extern "C" __global__ void __launch_bounds__(BLOCK) medium(const Arguments g) {
    sum_in_table<BLOCK, log2_of(2 * GUSTAV_MEDIUM_ENTRIES), GUSTAV_MEDIUM_ENTRIES>(g);
}
extern "C" __global__ void __launch_bounds__(BLOCK) narrow(const Arguments g) {
    sum_by_rank<32>(g);
}
extern "C" __global__ void __launch_bounds__(GUSTAV_WIDE_GROUP) wide(const Arguments g) {
    sum_by_rank<GUSTAV_WIDE_GROUP>(g);
}
extern "C" __global__ void __launch_bounds__(GUSTAV_HUGE_GROUP) huge(const Arguments g) {
    sum_by_rank<GUSTAV_HUGE_GROUP>(g);
}
extern "C" __global__ void __launch_bounds__(GUSTAV_GIANT_GROUP) giant(const Arguments g) {
    sum_by_rank<GUSTAV_GIANT_GROUP>(g);
}
extern "C" __global__ void __launch_bounds__(GUSTAV_DENSE_GROUP) dense(const Arguments g) {
    sum_densely<GUSTAV_DENSE_GROUP>(g);
}
extern "C" __global__ void __launch_bounds__(GUSTAV_HUGE_GROUP) vast(const Arguments g) {
    sum_densely<GUSTAV_HUGE_GROUP>(g);
}
extern "C" __global__ void __launch_bounds__(GUSTAV_WIDE_GROUP) cut(const Arguments g) {
    sum_in_chunks<GUSTAV_WIDE_GROUP>(g);
}

// Clears the bits and sums of rows cut into chunks.
extern "C" __global__ void __launch_bounds__(BLOCK) clear_split_rows(const Arguments g) {
    const u64 at = (u64)blockIdx.x * BLOCK + threadIdx.x;
    if (at < g.slots) g.slot_rows[at] = row_of(g, at), g.ended[at] = 0;
    if (at < (u64)g.slots * g.words) g.found_bits[at] = 0;
    if (at < g.slots * (u64)split_rows::sums_of_a_row(g)) ((Sum *)g.found_sums)[at] = S::zero();
}

extern "C" __global__ void __launch_bounds__(BLOCK) copy(const Arguments g) {
    const u64 i = (u64)blockIdx.x * (BLOCK / 32) + threadIdx.x / 32;
    if (i >= g.count) return;
    const u32 row = row_of(g, i);
    const u64 at = g.a.offsets[row], base = g.c.offsets[row];
    const u64 k = g.a.indices[at], from = g.b.offsets[k], size = g.b.offsets[k + 1] - from;
    const Value a = g.a.values[at];
    const Sum alpha = from_bits<Sum>(g.alpha);
    for (u64 j = threadIdx.x % 32; j < size; j += 32) {
        g.c.indices[base + j] = g.b.indices[from + j];
        g.c.values[base + j] = finished(alpha, product(widen(a), g.b.values[from + j]));
    }
}
