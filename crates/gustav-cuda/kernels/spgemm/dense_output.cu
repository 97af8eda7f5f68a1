// dense-output: full rows of C, a sum for every column of a tile.
//
// Such rows are limited by shared memory bandwidth: every product reads an entry of B and a sum,
// and writes the sum. Therefore one warp computes a row of C, without atomics; B is packed so that
// the sums of 32 entries are in 32 different banks (spgemm/packed.cuh); and B is read from L2 once
// for all rows of a CTA, which share a ring of chunks in shared memory.
//
//   CTA -> a tile of columns of as many rows of C as it has warps, then the next; all CTAs work on
//          the same tile at a time
//   ring   chunks of packed B, filled by an additional warp; a fast warp waits for the next chunk, a
//          slow one keeps the chunks that it still reads from being overwritten
//
// Without bulk copies, and where the columns of A are not in order, warps read packed B from global
// memory.
//
// Products are added in the order of A's nonzeros: the same bits in every run.
//
// Rows are known to be full, or assumed to be and checked: then their offsets are written as well,
// and sums to which nothing was added are marked (common/absent.cuh). Without a list, all rows are
// full. Columns of C are written unless C has them already.
//
// GUSTAV_SEMIRING   the two operations
// GUSTAV_MARKS      whether sums can be marked, that is, are floating-point sums of products
// GUSTAV_COLUMNS    columns of a tile
// GUSTAV_WARPS      warps of a CTA that compute rows
// GUSTAV_DOUBLED    lines of 32 columns that have two sums each
// GUSTAV_IN_FLIGHT      pairs that a warp reads at a time
// GUSTAV_CHUNK      pairs of a chunk
// GUSTAV_CHUNKS     chunks of the ring
// GUSTAV_ROUNDS     rounds of balancing banks when B is packed
// GUSTAV_SHARED, GUSTAV_SHARED_WITHOUT_RING   bytes of shared memory
#include "common/absent.cuh"
#include "ptx/bulk.cuh"
#include "ptx/memory.cuh"
#include "spgemm/packing.cuh"

constexpr u32 WARPS = GUSTAV_WARPS;
constexpr u32 CHUNKS = ptx::HAS_BULK_COPY ? GUSTAV_CHUNKS : 0;
// Pairs of the ring. Its first MORE pairs are repeated behind its end, as a warp may read past it.
constexpr u32 RING = CHUNKS * CHUNK, MORE = CHUNKS > 0 ? IN_FLIGHT - 1 : 0;
constexpr u32 ROUND = CHUNKS > 0 ? CHUNKS : 1;
static_assert(MORE <= CHUNK, "the repeated pairs are in the first chunk");
static_assert(CHUNKS == 0 || CHUNKS > 1 + ((LINES + 1) / 2 + CHUNK - 2) / CHUNK,
              "a segment fits in the ring");

typedef GUSTAV_SEMIRING<Sum> S;

// A nonzero of A.
struct alignas(16) Nonzero {
    // The first pair of its segment of B, in the ring.
    u32 pair;
    // The segment's first chunk, and the number of chunks, from the first of all, that must have
    // arrived before it is complete. LONG marks a segment with more pairs than are read at a time.
    u32 first, until;
    Sum factor;
};
constexpr u32 NONE = 0xffffffffu, LONG = 1u << 31;

struct Shared {
    // The last IN_FLIGHT pairs are an empty segment.
    Pair ring[RING + MORE + IN_FLIGHT];
    Sum sums[WARPS][SUMS];
    Nonzero nonzeros[WARPS][32];
    // Barriers of chunks: it has arrived, and all warps are done with it.
    u64 full[CHUNKS + 1], empty[CHUNKS + 1];
};
constexpr u32 EMPTY = RING + MORE;
static_assert(sizeof(Shared) == (CHUNKS > 0 ? GUSTAV_SHARED : GUSTAV_SHARED_WITHOUT_RING),
              "the size that the host requests");

namespace {

struct Item {
    u64 tile, panel;
};

// Calls `body` for the items of a CTA: a tile of WARPS rows each.
template <class F>
__device__ __forceinline__ void each_item(const Packed &p, F &&body) {
    const u64 panels = (p.arguments.count + WARPS - 1) / WARPS;
    for (u64 item = blockIdx.x; item < panels * p.tiles; item += p.ctas)
        body(Item{item / panels, item % panels});
}

__device__ __forceinline__ u32 chunks_of(const Packed &p, u64 tile) {
    return p.chunks[tile + 1] - p.chunks[tile];
}

// Fills the ring by one thread: a chunk is copied when all warps are done with its predecessor.
__device__ __forceinline__ void fill(const Packed &p, Shared &s) {
    u32 chunk = 0;
    each_item(p, [&](Item item) {
        const Pair *from = p.pairs + (u64)p.chunks[item.tile] * CHUNK;
        for (u32 n = chunks_of(p, item.tile); n > 0; --n, ++chunk, from += CHUNK) {
            const u32 stage = chunk % ROUND, again = stage == 0 ? MORE : 0;
            if (chunk >= ROUND) ptx::wait(s.empty + stage, chunk / ROUND - 1);
            u64 *const full = s.full + stage;
            ptx::expect_copies(full, (CHUNK + again) * sizeof(Pair));
            ptx::copy_bulk(s.ring + stage * CHUNK, from, CHUNK * sizeof(Pair), full);
            if (again > 0) ptx::copy_bulk(s.ring + RING, from, again * sizeof(Pair), full);
        }
    });
}

// A lane's entries of some pairs, and the value of A that multiplies them.
template <u32 PAIRS>
struct Batch {
    Two values[PAIRS];
    u32 positions[PAIRS];
    Sum factor;
};

template <u32 PAIRS>
__device__ __forceinline__ void read(Batch<PAIRS> &batch, const Pair *pairs, u32 lane, Sum factor) {
    batch.factor = factor;
#pragma unroll
    for (u32 n = 0; n < PAIRS; ++n) batch.positions[n] = ((const u32 *)pairs[n].positions)[lane];
#pragma unroll
    for (u32 n = 0; n < PAIRS; ++n) batch.values[n] = ((const Two *)pairs[n].values)[lane];
}

template <u32 PAIRS>
__device__ __forceinline__ Sum &sum_of(Sum *sums, const Batch<PAIRS> &batch, u32 n) {
    const u32 both = batch.positions[n / 2];
    return *(Sum *)((char *)sums + (n % 2 == 0 ? both & 0xffff : both >> 16));
}

// Entries of one row of B have different sums, so all sums are read before one is written.
template <u32 PAIRS>
__device__ __forceinline__ void read_sums(Sum *sums, const Batch<PAIRS> &batch,
                                          Sum (&sum)[2 * PAIRS]) {
#pragma unroll
    for (u32 n = 0; n < 2 * PAIRS; ++n) sum[n] = sum_of(sums, batch, n);
}

template <u32 PAIRS>
__device__ __forceinline__ void write_sums(Sum *sums, const Batch<PAIRS> &batch,
                                           const Sum (&sum)[2 * PAIRS]) {
#pragma unroll
    for (u32 n = 0; n < PAIRS; ++n) {
        const Two two = batch.values[n];
        sum_of(sums, batch, 2 * n) = S::mul_add(batch.factor, two.first, sum[2 * n]);
        sum_of(sums, batch, 2 * n + 1) = S::mul_add(batch.factor, two.second, sum[2 * n + 1]);
    }
}

template <u32 PAIRS>
__device__ __forceinline__ void add(Sum *sums, const Batch<PAIRS> &batch) {
    Sum sum[2 * PAIRS];
    read_sums(sums, batch, sum);
    write_sums(sums, batch, sum);
    __syncwarp();
}

// Pair by pair, from number `first` on, which wraps at the end of a ring.
__device__ __forceinline__ void add_pairs(Sum *sums, const Pair *pairs, u32 first, u32 count,
                                          u32 wrap, u32 lane, Sum factor) {
#pragma unroll 1
    for (u32 n = 0; n < count; ++n) {
        const u32 at = first + n;
        Batch<1> batch;
        read(batch, pairs + (at >= wrap ? at - wrap : at), lane, factor);
        add(sums, batch);
    }
}

// A lane's nonzero of A, of 32 of a row, in a tile.
struct Own {
    u32 segment;
    Sum factor;
};

// A row's nonzeros, 32 at a time: `body` gets those at `at`, while the next are being loaded.
template <class F>
__device__ __forceinline__ void each_batch(const Packed &p, u64 tile, u32 row, u32 lane, F &&body) {
    const Arguments &g = p.arguments;
    const u32 *const segments = p.segments + tile * g.rows_b;
    const u64 end = g.a.offsets[row + 1];
    const auto own = [&](u64 at) {
        Own own = {0, Sum()};
        if (at + lane < end) {
            own.segment = __ldg(segments + g.a.indices[at + lane]);
            own.factor = widen(g.a.values[at + lane]);
        }
        return own;
    };
    u64 at = g.a.offsets[row];
    for (Own later = own(at); at < end; at += 32) {
        const Own now = later;
        later = own(at + 32);
        body(now, (u32)min(end - at, (u64)32));
    }
}

// The products of one batch, read from global memory without the ring.
__device__ __forceinline__ void add_from_memory(Sum *sums, const Pair *pairs, const Own &own,
                                                u32 valid, u32 lane) {
    for (u32 n = 0; n < valid; ++n) {
        const u32 segment = __shfl_sync(0xffffffffu, own.segment, n);
        const Sum factor = __shfl_sync(0xffffffffu, own.factor, n);
        add_pairs(sums, pairs, segment >> 6, segment % 64, NONE, lane, factor);
    }
}

// A warp's position in the ring.
struct Walk {
    Shared &s;
    Sum *sums;
    Nonzero *nonzeros;
    u32 lane;
    // Numbers of chunks: those before the item's, those waited for, those released, and the first
    // that is still in use.
    u32 begin, arrived, released, oldest;

    // Releases the chunks before `first`, and waits for those before `until`, one at a time, as a
    // chunk can only be released once it has arrived.
    __device__ __forceinline__ void advance(u32 first, u32 until) {
        __syncwarp();
        for (; released < min(first, arrived); ++released) release(released);
        for (; arrived < until; ++arrived) {
            ptx::wait(s.full + arrived % ROUND, arrived / ROUND);
            __syncwarp();
            if (released < first) release(released++);
        }
    }
    // Every lane arrives for its own reads.
    __device__ __forceinline__ void release(u32 chunk) { ptx::arrive(s.empty + chunk % ROUND); }

    // Adds the products of `now` while `later` is being loaded.
    __device__ __forceinline__ void visit(const Batch<IN_FLIGHT> &now, Batch<IN_FLIGHT> &later, Nonzero &a,
                                          const Own &own, u32 n) {
        const Nonzero next = a;
        const bool advances = next.until > arrived;
        if (advances && next.until & LONG) {
            add(sums, now);
            advance(next.first, next.until & ~LONG);
            const u32 rest = __shfl_sync(0xffffffffu, own.segment, n) % 64 - IN_FLIGHT;
            add_pairs(sums, s.ring, next.pair + IN_FLIGHT, rest, RING, lane, next.factor);
            read(later, s.ring + next.pair, lane, next.factor);
            a = nonzeros[(n + 1) % 32];
            __syncwarp();
            return;
        }
        Sum sum[2 * IN_FLIGHT];
        read_sums(sums, now, sum);
        if (advances) advance(next.first, next.until);
        read(later, s.ring + next.pair, lane, next.factor);
        a = nonzeros[(n + 1) % 32];
        write_sums(sums, now, sum);
        __syncwarp();
    }

    // A row of C in a tile of `chunks` chunks.
    __device__ __forceinline__ void row(const Packed &p, u64 tile, u32 chunks, u32 row) {
        const Pair *const pairs = p.pairs + (u64)p.chunks[tile] * CHUNK;
        const u32 shift = begin % ROUND * CHUNK;
        Batch<IN_FLIGHT> even, odd;
        read(even, s.ring + EMPTY, lane, Sum());
        each_batch(p, tile, row, lane, [&](const Own &own, u32 valid) {
            const u32 first = own.segment >> 6, count = own.segment % 64;
            const u32 chunk = lane < valid ? begin + first / CHUNK : begin + chunks;
            // Nonzeros that are not in order may need chunks that have been overwritten.
            u32 before = __shfl_up_sync(0xffffffffu, chunk, 1);
            if (lane == 0) before = oldest;
            if (__any_sync(0xffffffffu, chunk < before)) {
                add(sums, even);
                read(even, s.ring + EMPTY, lane, Sum());
                add_from_memory(sums, pairs, own, valid, lane);
                return;
            }
            Nonzero mine = {EMPTY, chunk, 0, own.factor};
            if (lane < valid && count > 0) {
                mine.pair = (first + shift) % (ROUND * CHUNK);
                mine.until = begin + (first + count - 1) / CHUNK + 1;
                if (count > IN_FLIGHT) mine.until |= LONG;
            }
            nonzeros[lane] = mine;
            oldest = __shfl_sync(0xffffffffu, chunk, valid - 1);
            __syncwarp();
            Nonzero a = nonzeros[0];
#pragma unroll 1
            for (u32 n = 0; n < valid; n += 2) {
                visit(even, odd, a, own, n);
                visit(odd, even, a, own, n + 1);
            }
        });
        add(sums, even);
    }
};

// The initial sum; marked as absent in rows that are assumed to be full.
template <class T>
__device__ __forceinline__ T nothing(bool taken) {
    if constexpr (GUSTAV_MARKS)
        if (taken) return absent<T>();
    return S::zero();
}
template <class T>
__device__ __forceinline__ bool is_nothing(T sum) {
    if constexpr (GUSTAV_MARKS)
        return is_absent(sum);
    else
        return false;
}

// Writes a row's finished sums of a tile; returns whether one of them is absent.
__device__ __forceinline__ bool write(const Packed &p, const Sum *sums, u64 tile, u64 row, u32 lane) {
    const Arguments &g = p.arguments;
    const Sum alpha = from_bits<Sum>(g.alpha);
    const bool all = g.list == nullptr;
    const u64 first = tile * COLUMNS;
    const u64 to = first + (all ? g.first + row * g.columns : (u64)g.c.offsets[row]);
    const u32 width = (u32)min(g.columns - first, (u64)COLUMNS);
    if (p.wrong != nullptr && first == 0 && lane < 2)
        g.c.offsets[row + lane] = (Offset)((row + lane) * g.columns);
    bool hole = false;
    for (u32 n = lane; n < width; n += 32) {
        const bool doubled = n < 32 * DOUBLED;
        const Sum sum = doubled ? S::add(sums[n], sums[second_position(n)]) : sums[n];
        if (g.c.indices != nullptr) g.c.indices[to + n] = (Index)(first + n);
        g.c.values[to + n] = Narrow<Value>::from(S::scale(alpha, sum));
        hole |= is_nothing(sum);
    }
    return hole;
}

// The rows of a warp.
__device__ __forceinline__ void sum_rows(const Packed &p, Shared &s, u32 warp, u32 lane) {
    const Arguments &g = p.arguments;
    Sum *const sums = s.sums[warp];
    Walk walk = {s, sums, s.nonzeros[warp], lane, 0, 0, 0, 0};
    bool hole = false;
    each_item(p, [&](Item item) {
        const u64 i = item.panel * WARPS + warp;
        const u32 chunks = chunks_of(p, item.tile);
        const u32 row = i >= g.count ? 0 : g.list == nullptr ? (u32)i : row_of(g, i);
        if (i < g.count) {
            const Sum begin = nothing<Sum>(p.wrong != nullptr);
            for (u32 n = lane; n < SUMS; n += 32) sums[n] = begin;
            __syncwarp();
            if constexpr (RING > 0)
                walk.row(p, item.tile, chunks, row);
            else
                each_batch(p, item.tile, row, lane, [&](const Own &own, u32 valid) {
                    const Pair *const pairs = p.pairs + (u64)p.chunks[item.tile] * CHUNK;
                    add_from_memory(sums, pairs, own, valid, lane);
                });
        }
        walk.begin += chunks;
        walk.oldest = walk.begin;
        if constexpr (RING > 0) walk.advance(walk.begin, walk.begin);
        if (i >= g.count) return;
        hole |= write(p, sums, item.tile, row, lane);
        __syncwarp();
    });
    if (p.wrong != nullptr && hole) *p.wrong = 1;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(32 * (WARPS + 1)) full(const Packed p) {
    extern __shared__ __align__(128) unsigned char shared_memory[];
    Shared &s = *(Shared *)shared_memory;
    // The shuffle tells the compiler that the warp index is uniform.
    const u32 warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    if (is_empty(p)) {
        if (p.wrong != nullptr) *p.wrong = 1;
        return;
    }
    for (u32 n = threadIdx.x; n < 64 * IN_FLIGHT; n += blockDim.x) {
        s.ring[EMPTY + n / 64].values[n % 64] = Sum();
        s.ring[EMPTY + n / 64].positions[n % 64] = (u16)((POSITIONS + n / 2 % 32) * sizeof(Sum));
    }
    if (threadIdx.x < CHUNKS) {
        ptx::begin_phases(s.full + threadIdx.x, 1);
        ptx::begin_phases(s.empty + threadIdx.x, 32 * WARPS);
    }
    __syncthreads();
    if (warp < WARPS) sum_rows(p, s, warp, lane);
    if constexpr (RING > 0)
        if (warp == WARPS && lane == 0) fill(p, s);
}
