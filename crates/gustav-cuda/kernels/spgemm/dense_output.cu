// dense-output: full rows of C, a sum for every column of a tile.
//
// What limits such rows is shared memory, where every product reads an entry of B and a sum, and
// writes the sum. A row of C therefore belongs to a warp, which needs no atomics; B is packed, so
// that the sums of 32 entries are in as many banks (spgemm/packed.cuh); and B comes from L2 once for
// all rows of a CTA: they go through it together, in a ring of chunks in shared memory.
//
//   CTA -> a tile of columns of as many rows of C as it has warps, then the next; CTAs have the same
//          tile at a time
//   ring   chunks of packed B: two more warps fill it and tell how far it is filled; a warp that is
//          ahead waits until it is, one that is behind keeps what it still needs from being
//          overwritten
//
// Where there is no copy engine, and for nonzeros of A that are not in order, warps read packed B
// from memory.
//
// Each sum of a column is added in the order of A's nonzeros: they are the same in every run.
//
// Full rows are known to be, or they are taken for full and found out: `full` has a list of rows;
// `all` computes all rows and their offsets, and marks sums that nothing was added to
// (common/absent.cuh).
//
// GUSTAV_SEMIRING   the two operations
// GUSTAV_MARKS      whether sums have such a mark, that is, are floating-point sums of products
// GUSTAV_COLUMNS    columns of a tile
// GUSTAV_WARPS      warps of a CTA that have a row
// GUSTAV_DOUBLED    lines of 32 columns that have two sums each
// GUSTAV_AHEAD      pairs of groups that are read at once
// GUSTAV_CHUNKS     chunks of the ring
// GUSTAV_ROUNDS     rounds of balancing banks when B is packed
// GUSTAV_SHARED, GUSTAV_SHARED_WITHOUT_RING   bytes of shared memory
#include "common/absent.cuh"
#include "ptx/bulk.cuh"
#include "ptx/memory.cuh"
#include "spgemm/packing.cuh"

constexpr u32 WARPS = GUSTAV_WARPS;
constexpr u32 CHUNKS = ptx::HAS_BULK_COPY ? GUSTAV_CHUNKS : 0;
// Pairs of the ring. Those that a warp may read past its end are there once more.
constexpr u32 RING = CHUNKS * CHUNK, MORE = CHUNKS > 0 ? AHEAD - 1 : 0;
constexpr u32 ROUND = CHUNKS > 0 ? CHUNKS : 1;
static_assert(CHUNKS <= 32 && MORE <= CHUNK, "a lane has a chunk, and the first is whole");
static_assert(CHUNKS == 0 || CHUNKS > 1 + ((LINES + 1) / 2 + CHUNK - 2) / CHUNK,
              "a segment fits in the ring");

typedef GUSTAV_SEMIRING<Sum> S;

// A nonzero of A.
struct alignas(16) Nonzero {
    // The first pair of its segment of B, in the ring.
    u32 pair;
    // The segment's first chunk, and how many chunks have to have come for it to be whole: all of
    // those before it as well. LONG where it has more pairs than are read at once.
    u32 first, until;
    Sum factor;
};
constexpr u32 NONE = 0xffffffffu, LONG = 1u << 31;

struct Shared {
    // The last of these are a segment without entries.
    Pair ring[RING + MORE + AHEAD];
    Sum sums[WARPS][SUMS];
    Nonzero nonzeros[WARPS][32];
    u64 full[CHUNKS + 1];
    // Of every warp the first chunk that it needs, and chunks that have come: read by `ptx::hear`,
    // written by one thread after its warp has met.
    u32 needed[32], come;
};
constexpr u32 EMPTY = RING + MORE;
static_assert(sizeof(Shared) == (CHUNKS > 0 ? GUSTAV_SHARED : GUSTAV_SHARED_WITHOUT_RING),
              "what the host asks for");

namespace {

struct Item {
    u64 tile, panel;
};

// The tiles of as many rows as there are warps that a CTA has.
template <class F>
__device__ __forceinline__ void each_item(const Packed &p, F &&body) {
    const u64 panels = (p.g.count + WARPS - 1) / WARPS;
    for (u64 item = blockIdx.x; item < panels * p.tiles; item += p.ctas)
        body(Item{item / panels, item % panels});
}

__device__ __forceinline__ u32 chunks_of(const Packed &p, u64 tile) {
    return p.chunks[tile + 1] - p.chunks[tile];
}

// Lets others have shared memory for a while.
__device__ __forceinline__ void rest(u32 nanoseconds) {
    __nanosleep(nanoseconds);
    __syncwarp();
}

#if __CUDA_ARCH__ >= 900
// Fills the ring, a lane a chunk, as far as warps let it.
__device__ __forceinline__ void fill(const Packed &p, Shared &s, u32 lane) {
    u32 asked = 0, begin = 0;
    each_item(p, [&](Item item) {
        const u32 end = begin + chunks_of(p, item.tile);
        const Pair *pairs = p.pairs + (u64)p.chunks[item.tile] * CHUNK;
        while (asked < end) {
            // Chunks that nobody needs any more may still be on their way.
            const u32 known = min(ptx::hear(s.needed + lane), ptx::hear(&s.come));
            const u32 free = __reduce_min_sync(0xffffffffu, known);
            // What one lane was told is told to all.
            __syncwarp();
            const u32 until = min(free + CHUNKS, end), chunk = asked + lane;
            if (chunk < until) {
                const u32 place = chunk % CHUNKS, again = place == 0 ? MORE : 0;
                const Pair *const from = pairs + (u64)(chunk - begin) * CHUNK;
                u64 *const full = s.full + place;
                ptx::expect_copies(full, (CHUNK + again) * sizeof(Pair));
                ptx::copy_bulk(s.ring + place * CHUNK, from, CHUNK * sizeof(Pair), full);
                if (again > 0) ptx::copy_bulk(s.ring + RING, from, again * sizeof(Pair), full);
            }
            __syncwarp();
            if (until == asked) rest(60);
            asked = until;
        }
        begin = end;
    });
}

// Tells how far the ring is filled, a lane a chunk.
__device__ __forceinline__ void tell(const Packed &p, Shared &s, u32 lane) {
    u32 all = 0, come = 0;
    each_item(p, [&](Item item) { all += chunks_of(p, item.tile); });
    while (come < all) {
        const u32 chunk = come + lane;
        const bool here = lane < CHUNKS && chunk < all &&
                          ptx::have_come(s.full + chunk % CHUNKS, chunk / CHUNKS);
        const u32 missing = ~__ballot_sync(0xffffffffu, here);
        const u32 more = missing == 0 ? 32 : __ffs(missing) - 1;
        come += more;
        __syncwarp();
        if (more == 0)
            rest(60);
        else if (lane == 0)
            ptx::tell(&s.come, come);
    }
}
#endif

struct alignas(2 * sizeof(Sum)) Two {
    Sum first, second;
};

// A lane's entries of some pairs, and the factor they are multiplied by.
template <u32 PAIRS>
struct Batch {
    Two values[PAIRS];
    u32 places[PAIRS];
    Sum factor;
};

template <u32 PAIRS>
__device__ __forceinline__ void read(Batch<PAIRS> &batch, const Pair *pairs, u32 lane, Sum factor) {
    batch.factor = factor;
#pragma unroll
    for (u32 n = 0; n < PAIRS; ++n) batch.places[n] = ((const u32 *)pairs[n].places)[lane];
#pragma unroll
    for (u32 n = 0; n < PAIRS; ++n) batch.values[n] = ((const Two *)pairs[n].values)[lane];
}

template <u32 PAIRS>
__device__ __forceinline__ Sum &sum_of(Sum *sums, const Batch<PAIRS> &batch, u32 n) {
    const u32 both = batch.places[n / 2];
    return *(Sum *)((char *)sums + (n % 2 == 0 ? both & 0xffff : both >> 16));
}

// Places of a row of B differ, so that all sums are read before one is written.
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

// What lanes know of 32 nonzeros of a row of A in a tile.
struct Own {
    u32 segment;
    Sum factor;
};

// A row's nonzeros, 32 at a time: `body` gets those at `at`, with the next ones on their way.
template <class F>
__device__ __forceinline__ void each_batch(const Packed &p, u64 tile, u32 row, u32 lane, F &&body) {
    const Arguments &g = p.g;
    const u32 *const segments = p.segments + tile * g.rows_b;
    const u64 end = g.a_offsets[row + 1];
    const auto own = [&](u64 at) {
        Own own = {0, Sum()};
        if (at + lane < end) {
            own.segment = __ldg(segments + g.a_indices[at + lane]);
            own.factor = widen(g.a_values[at + lane]);
        }
        return own;
    };
    u64 at = g.a_offsets[row];
    for (Own later = own(at); at < end; at += 32) {
        const Own now = later;
        later = own(at + 32);
        body(now, (u32)min(end - at, (u64)32));
    }
}

// The products of one batch in memory's own order, without the ring.
__device__ __forceinline__ void add_from_memory(Sum *sums, const Pair *pairs, const Own &own,
                                                u32 valid, u32 lane) {
    for (u32 n = 0; n < valid; ++n) {
        const u32 segment = __shfl_sync(0xffffffffu, own.segment, n);
        const Sum factor = __shfl_sync(0xffffffffu, own.factor, n);
        add_pairs(sums, pairs, segment >> 6, segment % 64, NONE, lane, factor);
    }
}

// A warp's way through the ring.
struct Walk {
    Shared &s;
    Sum *sums;
    Nonzero *nonzeros;
    u32 warp, lane;
    // Chunks before those of the item, those that have come, and the first that is kept.
    u32 begin, come, kept;

    // What lanes read of chunks before `first` has been used, and they have met since.
    __device__ __forceinline__ void keep(u32 first) {
        if (lane == 0) ptx::tell_of_reads(s.needed + warp, first);
    }

    // Adds the products of `now`, while what `later` gets is on its way.
    __device__ __forceinline__ void visit(const Batch<AHEAD> &now, Batch<AHEAD> &later, Nonzero &a,
                                          const Own &own, u32 n) {
        const Nonzero next = a;
        if (next.until > come) {
            add(sums, now);
            keep(next.first);
            const u32 until = next.until & ~LONG;
            while (come < until) {
                // The same in all lanes; what the first was told is told to all.
                come = __shfl_sync(0xffffffffu, ptx::hear(&s.come), 0);
                if (come < until) rest(20);
            }
            __syncwarp();
            if (next.until & LONG) {
                const u32 rest = __shfl_sync(0xffffffffu, own.segment, n) % 64 - AHEAD;
                const u32 first = next.pair + AHEAD;
                add_pairs(sums, s.ring, first, rest, RING, lane, next.factor);
            }
            read(later, s.ring + next.pair, lane, next.factor);
            a = nonzeros[(n + 1) % 32];
            __syncwarp();
        } else {
            Sum sum[2 * AHEAD];
            read_sums(sums, now, sum);
            read(later, s.ring + next.pair, lane, next.factor);
            a = nonzeros[(n + 1) % 32];
            write_sums(sums, now, sum);
            __syncwarp();
            keep(next.first);
        }
    }

    // A row of C in a tile of so many chunks, packed from `pairs` on.
    __device__ __forceinline__ void row(const Packed &p, u64 tile, u32 chunks, u32 row) {
        const Pair *const pairs = p.pairs + (u64)p.chunks[tile] * CHUNK;
        const u32 shift = begin % ROUND * CHUNK;
        Batch<AHEAD> even, odd;
        read(even, s.ring + EMPTY, lane, Sum());
        each_batch(p, tile, row, lane, [&](const Own &own, u32 valid) {
            const u32 first = own.segment >> 6, count = own.segment % 64;
            const u32 chunk = lane < valid ? begin + first / CHUNK : begin + chunks;
            // Nonzeros that are not in order may need what is overwritten.
            u32 before = __shfl_up_sync(0xffffffffu, chunk, 1);
            if (lane == 0) before = kept;
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
                if (count > AHEAD) mine.until |= LONG;
            }
            nonzeros[lane] = mine;
            kept = __shfl_sync(0xffffffffu, chunk, valid - 1);
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

// Before anything is added, and whether that is still so.
template <bool ALL>
__device__ __forceinline__ Sum nothing() {
    if constexpr (ALL)
        return absent<Sum>();
    else
        return S::zero();
}
template <bool ALL, class T>
__device__ __forceinline__ bool is_nothing(T sum) {
    if constexpr (ALL)
        return is_absent(sum);
    else
        return false;
}

// The rows of a warp: of the list, or all of them.
template <bool ALL>
__device__ __forceinline__ void sum_rows(const Packed &p, Shared &s, u32 warp, u32 lane) {
    const Arguments &g = p.g;
    const Sum alpha = from_bits<Sum>(g.alpha);
    Sum *const sums = s.sums[warp];
    Walk walk = {s, sums, s.nonzeros[warp], warp, lane, 0, 0, 0};
    each_item(p, [&](Item item) {
        const u64 i = item.panel * WARPS + warp;
        const u32 chunks = chunks_of(p, item.tile);
        const u32 row = i >= g.count ? 0 : ALL ? (u32)i : row_of(g, i);
        if (i < g.count) {
            for (u32 n = lane; n < SUMS; n += 32) sums[n] = nothing<ALL>();
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
        walk.kept = walk.begin;
        walk.keep(walk.begin);
        if (i >= g.count) return;
        const u64 first = item.tile * COLUMNS;
        const u64 to = first + (ALL ? row * g.columns : (u64)g.c_offsets[row]);
        const u32 width = (u32)min(g.columns - first, (u64)COLUMNS);
        if (ALL && first == 0 && lane < 2) g.c_offsets[row + lane] = (Offset)((row + lane) * g.columns);
        bool hole = false;
        for (u32 n = lane; n < width; n += 32) {
            const bool doubled = n < 32 * DOUBLED;
            const Sum sum = doubled ? S::add(sums[n], sums[second_place(n)]) : sums[n];
            g.c_indices[to + n] = (Index)(first + n);
            g.c_values[to + n] = Narrow<Value>::from(S::scale(alpha, sum));
            hole |= is_nothing<ALL>(sum);
        }
        if (hole) *p.wrong = 1;
        __syncwarp();
    });
}

template <bool ALL>
__device__ __forceinline__ void compute(const Packed &p) {
    extern __shared__ __align__(128) unsigned char shared_memory[];
    Shared &s = *(Shared *)shared_memory;
    // The same in all lanes, and known to be.
    const u32 warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    for (u32 n = threadIdx.x; n < 64 * AHEAD; n += blockDim.x) {
        s.ring[EMPTY + n / 64].values[n % 64] = Sum();
        s.ring[EMPTY + n / 64].places[n % 64] = (u16)((PLACES + n / 2 % 32) * sizeof(Sum));
    }
    if (threadIdx.x < 32) {
        s.needed[lane] = lane < WARPS ? 0 : NONE;
#if __CUDA_ARCH__ >= 900
        if (lane < CHUNKS) ptx::begin_copies(s.full + lane);
#endif
        if (lane == 0) s.come = 0;
    }
    __syncthreads();
    if (warp < WARPS) sum_rows<ALL>(p, s, warp, lane);
#if __CUDA_ARCH__ >= 900
    if (warp == WARPS) fill(p, s, lane);
    if (warp == WARPS + 1) tell(p, s, lane);
#endif
}

}  // namespace

extern "C" __global__ void __launch_bounds__(32 * (WARPS + 2)) full(const Packed p) {
    compute<false>(p);
}
#if GUSTAV_MARKS
extern "C" __global__ void __launch_bounds__(32 * (WARPS + 2)) all(const Packed p) {
    compute<true>(p);
}
#endif
