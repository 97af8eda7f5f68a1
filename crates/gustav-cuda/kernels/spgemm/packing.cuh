// The kernels that pack B, see spgemm/packed.cuh.
//
// A warp packs a row of B in a tile. All entries start in their first positions. Banks with too many
// then move entries to their second positions, line by line: as the second positions of a line are its
// first ones rotated, a bank gives and receives at most one entry a line. The result depends on the
// pattern alone.
#pragma once
#include "schedule/look_back.cuh"
#include "spgemm/packed.cuh"

namespace packing {

constexpr u32 WARPS = 4;
// Columns that a lane loads together, and rows of a thread that counts pairs.
constexpr u32 BATCH = 4, ROWS = 8;
// The number of chunks of a tile that cannot be packed.
constexpr u32 NONE = 0xffffffffu;
// Rounds over the doubled lines, after which balancing stops.
constexpr u32 ROUNDS = GUSTAV_ROUNDS;
// Lines between checks whether anything is left to do.
constexpr u32 LOOK = 4;

// A bit for every line.
template <bool SHORT>
struct Lines {
    typedef u64 Bits;
};
template <>
struct Lines<true> {
    typedef u32 Bits;
};
typedef Lines<(LINES <= 32)>::Bits Bits;

__device__ __forceinline__ u32 count(u32 bits) { return __popc(bits); }
__device__ __forceinline__ u32 count(u64 bits) { return __popcll(bits); }

// The entries of a bank, one bank a lane: the lines with an entry in the first and in the second
// position.
struct Bank {
    Bits first, second;
    u32 load;
};

// Moves entries until no bank has more than `most`, if it can.
__device__ __forceinline__ void balance(Bank &bank, u32 most) {
    const u32 lane = threadIdx.x % 32;
    for (u32 round = 0; round < ROUNDS; ++round) {
        // The first round moves from fuller to emptier banks, later ones from full to any that is
        // not.
        const auto gives = [&](u32 from, u32 to) {
            return round == 0 ? from >= to + 2 : from > most && to <= most;
        };
#pragma unroll 4
        for (u32 line = 0; line < DOUBLED; ++line) {
            if (line % LOOK == 0 && !__any_sync(0xffffffffu, bank.load > most)) return;
            const u32 rotation = turn_of(line);
            const bool first = bank.first >> line & 1, second = bank.second >> line & 1;
            const u32 word = bank.load | (u32)first << 16 | (u32)second << 17;
            // Entries with their first position in this bank have the second one in bank `there`;
            // those with their second position here have the first one in bank `behind`.
            const u32 there = __shfl_sync(0xffffffffu, word, lane + rotation);
            const u32 behind = __shfl_sync(0xffffffffu, word, lane - rotation);
            const u32 load_there = there & 0xffff, load_behind = behind & 0xffff;
            const bool leaves = first && gives(bank.load, load_there);
            const bool returns = there >> 17 & 1 && gives(load_there, bank.load);
            const bool comes = behind >> 16 & 1 && gives(load_behind, bank.load);
            const bool goes_back = second && gives(bank.load, load_behind);
            bank.first ^= (Bits)(leaves || returns) << line;
            bank.second ^= (Bits)(comes || goes_back) << line;
            bank.load += returns + comes - leaves - goes_back;
        }
    }
}

// The value of an entry of a row in a tile, or of none.
__device__ __forceinline__ Sum value_of(const Value *row, u32 source) {
    return source == NO_SOURCE ? Sum() : widen(row[source]);
}

}  // namespace packing

// The position at which each tile begins in every row of B, one warp a row. Rows whose columns do
// not increase get bounds that do not increase.
extern "C" __global__ void __launch_bounds__(32 * packing::WARPS) bounds(const Packed p) {
    const Arguments &g = p.arguments;
    const u64 k = (u64)blockIdx.x * packing::WARPS + threadIdx.x / 32;
    if (k >= g.rows_b) return;
    const u32 lane = threadIdx.x % 32;
    const u64 begin = g.b.offsets[k], end = g.b.offsets[k + 1];
    bool falls = false;
    for (u64 first = begin; first <= end; first += 32 * packing::BATCH) {
        u64 before[packing::BATCH], here[packing::BATCH];
#pragma unroll
        for (u32 n = 0; n < packing::BATCH; ++n) {
            const u64 at = first + n * 32 + lane;
            before[n] = at > begin && at <= end ? (u64)__ldg(g.b.indices + at - 1) : 0;
            here[n] = at < end ? (u64)__ldg(g.b.indices + at) : p.tiles * COLUMNS;
        }
#pragma unroll
        for (u32 n = 0; n < packing::BATCH; ++n) {
            const u64 at = first + n * 32 + lane;
            if (at > end) break;
            falls |= at > begin && before[n] >= here[n];
            // The tiles that begin after the previous entry and not after this one.
            const u32 next = at > begin ? (u32)before[n] / COLUMNS + 1 : 0;
            for (u32 tile = next; tile <= (u32)(here[n] / COLUMNS); ++tile)
                p.bounds[tile * g.rows_b + k] = (u32)at;
        }
    }
    if (!__any_sync(0xffffffffu, falls)) return;
    __syncwarp();
    for (u64 tile = lane; tile <= p.tiles; tile += 32) p.bounds[tile * g.rows_b + k] = tile == 0;
}

// The first pair of every row of B in a tile, by one CTA, and the number of chunks of the tile:
// NONE if the columns of a row do not increase.
extern "C" __global__ void __launch_bounds__(1024) positions(const Packed p) {
    const u64 rows = p.arguments.rows_b;
    for (u64 tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
        const u32 *const from = p.bounds + tile * rows, *const to = from + rows;
        u32 before = 0;
        bool falls = false;
        for (u64 first = 0; first < rows; first += 1024 * packing::ROWS) {
            const u64 own = first + threadIdx.x * packing::ROWS;
            u32 pairs[packing::ROWS], sum = 0;
#pragma unroll
            for (u32 n = 0; n < packing::ROWS; ++n) {
                const u32 begin = own + n < rows ? from[own + n] : 0;
                const u32 end = own + n < rows ? to[own + n] : 0;
                falls |= begin > end;
                pairs[n] = begin >= end ? 0 : max((end - begin + 63) / 64, IN_FLIGHT);
            }
#pragma unroll
            for (u32 n = 0; n < packing::ROWS; ++n) sum += pairs[n];
            u64 total;
            u32 start = before + (u32)look_back::within<1024>(sum, total);
#pragma unroll
            for (u32 n = 0; n < packing::ROWS; ++n) {
                if (own + n < rows) p.segments[tile * rows + own + n] = start << 6 | pairs[n];
                start += pairs[n];
            }
            before += (u32)total;
            __syncthreads();
        }
        const bool none = __syncthreads_or(falls);
        if (threadIdx.x == 0) p.chunks[tile] = none ? packing::NONE : (before + CHUNK - 1) / CHUNK;
    }
}

// The first chunk of every tile from the numbers of chunks, by one warp; all are zero where the
// columns of a row do not increase, as the count of the first tile shows.
extern "C" __global__ void __launch_bounds__(32) first_chunks(const Packed p) {
    const bool none = p.chunks[0] == packing::NONE;
    __syncwarp();
    u32 before = 0;
    for (u64 at = threadIdx.x; at - threadIdx.x <= p.tiles; at += 32) {
        const u32 own = at < p.tiles && !none ? p.chunks[at] : 0;
        u32 scan = own;
        for (u32 step = 1; step < 32; step *= 2) {
            const u32 other = __shfl_up_sync(0xffffffffu, scan, step);
            if (threadIdx.x >= step) scan += other;
        }
        if (at <= p.tiles) p.chunks[at] = before + scan - own;
        before += __shfl_sync(0xffffffffu, scan, 31);
    }
}

// Packs B: its values, or their positions in B.
extern "C" __global__ void __launch_bounds__(32 * packing::WARPS) pack(const Packed p) {
    using packing::Bits;
    // For banks that stay too full: the number of entries before the n-th ones of all banks, and
    // the mask of the banks that have an n-th.
    __shared__ u32 before[packing::WARPS][2 * LINES], banks[packing::WARPS][2 * LINES];
    __shared__ Bits firsts[packing::WARPS][32], seconds[packing::WARPS][32];
    const Arguments &g = p.arguments;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const u64 k = blockIdx.x;
    if (is_empty(p)) return;
    for (u64 tile = (u64)blockIdx.y * packing::WARPS + warp; tile < p.tiles;
         tile += (u64)gridDim.y * packing::WARPS) {
        const u64 at_segment = tile * g.rows_b + k;
        const u32 from = p.bounds[at_segment], to = p.bounds[at_segment + g.rows_b];
        const u32 entries = to - from, groups = (entries + 31) / 32;
        if (entries == 0) continue;
        const u32 segment = p.segments[at_segment], slots = segment % 64 * 64;
        const u64 first = (u64)p.chunks[tile] * CHUNK + (segment >> 6);
        const auto column_of = [&](u32 at) { return (u32)(g.b.indices[at] - tile * COLUMNS); };
        const auto put = [&](u32 slot, u32 position, u32 source) {
            const u64 pair = first + slot / 64;
            const u32 at = slot % 32 * 2 + slot / 32 % 2;
            p.pairs[pair].positions[at] = (u16)(position * sizeof(Sum));
            if (p.sources != nullptr)
                p.sources[pair * 64 + at] = (u16)source;
            else
                p.pairs[pair].values[at] = packing::value_of(g.b.values + from, source);
        };
        firsts[warp][lane] = 0;
        __syncwarp();
        for (u32 at = from + lane; at < to; at += 32)
            atomicOr(&firsts[warp][column_of(at) % 32], (Bits)1 << column_of(at) / 32);
        __syncwarp();
        packing::Bank bank = {firsts[warp][lane], 0, packing::count(firsts[warp][lane])};
        packing::balance(bank, groups);
        firsts[warp][lane] = bank.first, seconds[warp][lane] = bank.second;
        u32 least = bank.load, most = bank.load;
        for (u32 step = 16; step > 0; step /= 2) {
            least = min(least, __shfl_xor_sync(0xffffffffu, least, step));
            most = max(most, __shfl_xor_sync(0xffffffffu, most, step));
        }
        const bool even = most <= groups;
        if (even) {
            // One bank a lane.
            for (u32 n = bank.load; n < slots / 32; ++n)
                put(n * 32 + lane, POSITIONS + lane, NO_SOURCE);
        } else {
            // First those n that all banks have, then alternately many and few entries, which
            // together fill a group.
            u32 sum = 0;
            for (u32 step = 0; step < most; ++step) {
                const u32 rest = step - min(step, least);
                const u32 later = rest % 2 == 0 ? least + rest / 2 : most - 1 - rest / 2;
                const u32 n = step < least ? step : later;
                const u32 mask = __ballot_sync(0xffffffffu, bank.load > n);
                if (lane == 0) before[warp][n] = sum, banks[warp][n] = mask;
                sum += __popc(mask);
            }
            for (u32 slot = entries + lane; slot < slots; slot += 32)
                put(slot, POSITIONS + slot % 32, NO_SOURCE);
        }
        __syncwarp();
        for (u32 at = from + lane; at < to; at += 32) {
            const u32 column = column_of(at), line = column / 32;
            const Bits below = ((Bits)1 << line) - 1;
            const u32 other = second_position(column) % 32;
            const bool moved = seconds[warp][other] >> line & 1;
            const u32 own = moved ? other : column % 32;
            const u32 n = moved ? packing::count(firsts[warp][own]) +
                                      packing::count(seconds[warp][own] & below)
                                : packing::count(firsts[warp][own] & below);
            const u32 slot = even ? n * 32 + own
                                  : before[warp][n] + __popc(banks[warp][n] & ((1u << own) - 1));
            put(slot, moved ? second_position(column) : column, at - from);
        }
        __syncwarp();
    }
}

// Writes new values of B to their packed positions, one warp a row in a tile.
extern "C" __global__ void __launch_bounds__(32 * packing::WARPS) values(const Packed p) {
    const Arguments &g = p.arguments;
    const u32 lane = threadIdx.x % 32;
    const u64 k = blockIdx.x;
    for (u64 tile = (u64)blockIdx.y * packing::WARPS + threadIdx.x / 32; tile < p.tiles;
         tile += (u64)gridDim.y * packing::WARPS) {
        const u32 segment = p.segments[tile * g.rows_b + k];
        const u64 first = (u64)p.chunks[tile] * CHUNK + (segment >> 6);
        const Value *const row = g.b.values + p.bounds[tile * g.rows_b + k];
        for (u64 pair = first; pair < first + segment % 64; ++pair) {
            const u32 both = ((const u32 *)p.sources)[pair * 32 + lane];
            ((Two *)p.pairs[pair].values)[lane] = {packing::value_of(row, both & 0xffff),
                                                   packing::value_of(row, both >> 16)};
        }
    }
}
