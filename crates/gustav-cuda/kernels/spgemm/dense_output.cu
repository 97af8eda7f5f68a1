// dense-output: full rows of C, a sum for every column of a tile.
//
// What limits such rows are shared memory, where every product reads and writes a sum, and the way
// from L2, which every row of B takes for every row of C. A row of C therefore belongs to a warp,
// which needs no atomics and waits for nobody, and B is packed: 16 bits a column, and in an order in
// which columns that follow each other are in different banks.
//
//   CTA -> a tile of columns of as many rows of C as it has warps; CTAs of a tile follow each other
//   group: 32 entries of a row of B, one for every lane
//
//   columns of a row of B   0 32 64 | 1 | 2 34 | ..    by their bank
//   packed                  0 1 2 .. | 32 34 .. | 64   the first of every bank, the second, ...
//
// Sums are added in the order of A's nonzeros: they are the same in every run.
//
// GUSTAV_SEMIRING   the two operations
// GUSTAV_COLUMNS    columns of a tile
// GUSTAV_WARPS      warps of a CTA
// GUSTAV_AHEAD      groups that are on their way while as many are added
#include "common/semiring.cuh"
#include "spgemm/arguments.cuh"

constexpr u32 COLUMNS = GUSTAV_COLUMNS, WARPS = GUSTAV_WARPS, AHEAD = GUSTAV_AHEAD;
// Lanes without an entry add to sums behind those of the tile.
constexpr u32 SUMS = COLUMNS + 32;
static_assert(SUMS <= 1u << 16, "columns of a tile have 16 bits");

typedef GUSTAV_SEMIRING<Sum> S;

struct Group {
    Sum values[32];
    u16 columns[32];
};

// The groups of a row of B in a tile.
struct Segment {
    u32 first, count;
};

struct Packed {
    Arguments g;
    // Row k of B in tile t is segments[t * rows_b + k].
    Segment *segments;
    Group *groups;
    u64 tiles;
};

namespace {

// Rows of B in a tile that a CTA packs, a warp each.
constexpr u32 PACKERS = 4;

// The first entry of B between `from` and `to` whose column is not before `column`.
__device__ __forceinline__ Offset find(const Index *columns, Offset from, Offset to, u64 column) {
    while (from < to) {
        const Offset middle = from + (to - from) / 2;
        if (columns[middle] < column)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

// A lane's entries of some groups.
struct Batch {
    Sum values[AHEAD];
    u32 columns[AHEAD];
};

__device__ __forceinline__ void read(Batch &batch, const Group *from, u32 count, u32 lane) {
#pragma unroll
    for (u32 n = 0; n < AHEAD; ++n) {
        if (n >= count) break;
        batch.values[n] = __ldg(from[n].values + lane);
        batch.columns[n] = __ldg(from[n].columns + lane);
    }
}

// Columns of a row of B differ, so that all sums are read at once.
__device__ __forceinline__ void add(Sum *sums, Sum a, const Batch &batch, u32 count) {
    Sum sum[AHEAD];
#pragma unroll
    for (u32 n = 0; n < AHEAD; ++n)
        if (n < count) sum[n] = sums[batch.columns[n]];
#pragma unroll
    for (u32 n = 0; n < AHEAD; ++n)
        if (n < count) sums[batch.columns[n]] = S::mul_add(a, batch.values[n], sum[n]);
}

// A nonzero of A.
struct Nonzero {
    Segment segment;
    Sum factor;
};

__device__ __forceinline__ Nonzero nonzero(const Arguments &g, const Segment *segments, u64 at,
                                           u64 end) {
    if (at >= end) return {{0, 0}, Sum()};
    const uint2 word = __ldg((const uint2 *)(segments + g.a_indices[at]));
    return {{word.x, word.y}, widen(g.a_values[at])};
}

}  // namespace

extern "C" __global__ void __launch_bounds__(32 * PACKERS) pack(const Packed p) {
    // Of the entries that are the n-th of their bank: how many are before them, and their banks.
    __shared__ u32 counts[PACKERS][32], before[PACKERS][COLUMNS / 32], banks[PACKERS][COLUMNS / 32];
    const Arguments &g = p.g;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u64 k = blockIdx.x, tile = (u64)blockIdx.y * PACKERS + warp;
    if (tile >= p.tiles) return;
    const Offset begin = g.b_offsets[k], end = g.b_offsets[k + 1];
    const Offset from = find(g.b_indices, begin, end, tile * COLUMNS);
    const Offset to = find(g.b_indices, from, end, (tile + 1) * COLUMNS);
    // Every segment may waste part of a group.
    const u64 first = from / 32 + k * p.tiles + tile;
    const u32 count = (u32)(to - from + 31) / 32;
    if (lane == 0) p.segments[tile * g.rows_b + k] = {(u32)first, count};
    Group *groups = p.groups + first;
    const auto column_of = [&](Offset at) { return (u32)(g.b_indices[at] - tile * COLUMNS); };
    counts[warp][lane] = 0;
    __syncwarp();
    for (Offset at = from + lane; at < to; at += 32) atomicAdd(&counts[warp][column_of(at) % 32], 1u);
    __syncwarp();
    const u32 mine = counts[warp][lane];
    u32 least = mine, most = mine;
    for (u32 step = 16; step > 0; step /= 2) {
        least = min(least, __shfl_xor_sync(0xffffffffu, least, step));
        most = max(most, __shfl_xor_sync(0xffffffffu, most, step));
    }
    u32 sum = 0;
    for (u32 turn = 0; turn < most; ++turn) {
        // What all banks have comes first. Then much and little in turn, as they fill a group.
        const u32 rest = turn - min(turn, least);
        const u32 n = turn < least ? turn : rest % 2 == 0 ? least + rest / 2 : most - 1 - rest / 2;
        const u32 mask = __ballot_sync(0xffffffffu, mine > n);
        if (lane == 0) before[warp][n] = sum, banks[warp][n] = mask;
        sum += __popc(mask);
    }
    __syncwarp();
    counts[warp][lane] = 0;
    __syncwarp();
    for (Offset at = from + lane; at < to; at += 32) {
        const u32 column = column_of(at), bank = column % 32;
        const u32 n = atomicAdd(&counts[warp][bank], 1u);
        const u32 place = before[warp][n] + __popc(banks[warp][n] & ((1u << bank) - 1));
        groups[place / 32].columns[place % 32] = (u16)column;
        groups[place / 32].values[place % 32] = widen(g.b_values[at]);
    }
    const u32 filled = (u32)(to - from) % 32;
    if (filled > 0 && lane >= filled) {
        groups[count - 1].columns[lane] = (u16)(COLUMNS + lane);
        groups[count - 1].values[lane] = Sum();
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) full(const Packed p) {
    extern __shared__ uint4 shared_memory[];
    const Arguments &g = p.g;
    const u32 panels = (g.count + WARPS - 1) / WARPS;
    const u32 tile = blockIdx.x / panels, lane = threadIdx.x % 32;
    const u32 i = blockIdx.x % panels * WARPS + threadIdx.x / 32;
    if (i >= g.count) return;
    Sum *sums = (Sum *)shared_memory + threadIdx.x / 32 * SUMS;
#pragma unroll 8
    for (u32 n = lane; n < SUMS; n += 32) sums[n] = S::zero();
    __syncwarp();
    const u32 row = row_of(g, i);
    const u64 end = g.a_offsets[row + 1];
    const Segment *segments = p.segments + tile * g.rows_b;
    Nonzero later = nonzero(g, segments, g.a_offsets[row] + lane, end);
    for (u64 at = g.a_offsets[row]; at < end; at += 32) {
        // A nonzero of A for every lane, taken in turn; the next ones are on their way.
        const Nonzero mine = later;
        later = nonzero(g, segments, at + 32 + lane, end);
        const auto first_of = [&](u32 n) {
            return p.groups + __shfl_sync(0xffffffffu, mine.segment.first, n);
        };
        const auto count_of = [&](u32 n) { return __shfl_sync(0xffffffffu, mine.segment.count, n); };
        const u32 valid = (u32)min(end - at, (u64)32);
        const Group *from = first_of(0);
        u32 left = count_of(0);
        Batch ahead;
        read(ahead, from, left, lane);
        for (u32 n = 0; n < valid; ++n) {
            const Sum a = __shfl_sync(0xffffffffu, mine.factor, n);
            const Group *const next_from = first_of((n + 1) % 32);
            const u32 next_count = n + 1 < valid ? count_of(n + 1) : 0;
            for (bool last = false; !last;) {
                const Batch now = ahead;
                const u32 count = left;
                last = left <= AHEAD;
                from = last ? next_from : from + AHEAD;
                left = last ? next_count : left - AHEAD;
                read(ahead, from, left, lane);
                add(sums, a, now, count);
            }
            __syncwarp();
        }
    }
    const Sum alpha = from_bits<Sum>(g.alpha);
    const u64 first = (u64)tile * COLUMNS, base = g.c_offsets[row] + first;
    const u32 width = (u32)min(g.columns - first, (u64)COLUMNS);
    for (u32 n = lane; n < width; n += 32) {
        g.c_indices[base + n] = (Index)(first + n);
        g.c_values[base + n] = Narrow<Value>::from(S::scale(alpha, sums[n]));
    }
}
