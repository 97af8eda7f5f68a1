// B packed for full rows of C: tile after tile of columns, in which rows follow each other.
//
// Columns of a tile have a place for their sum each, and the first ones another in a different bank of
// shared memory; a sum is then what both hold. An entry of B is packed with one of them, so that the
// banks of a row have alike many entries; the n-th of every bank make a group, a lane each, and what
// accesses a group's sums finds no two of them in a bank.
//
//   places of a tile    0 1 2 .. 31 | 32 33 ..  first places, a line of all banks after the other
//                       31 0 1 .. 30 | 24 25 ..  second places, every line turned
//   pair                two groups, interleaved, so that a lane reads its entries of both at once;
//                       a row of a tile has as many as a warp reads at once, or more
//   chunk               pairs that the copy engine brings at once
#pragma once
#include "common/semiring.cuh"
#include "spgemm/arguments.cuh"

constexpr u32 COLUMNS = GUSTAV_COLUMNS;
constexpr u32 LINES = COLUMNS / 32;
// Lines whose columns have a second place.
constexpr u32 DOUBLED = GUSTAV_DOUBLED;
// Lanes without an entry add to places behind those of the tile.
constexpr u32 PLACES = COLUMNS + 32 * DOUBLED, SUMS = PLACES + 32;
static_assert(DOUBLED <= LINES, "columns that there are");
constexpr u32 CHUNK = GUSTAV_CHUNK;
// Pairs that a warp reads at once.
constexpr u32 IN_FLIGHT = GUSTAV_IN_FLIGHT;
static_assert((LINES + 1) / 2 <= 63 && IN_FLIGHT <= 63, "pairs of a segment have 6 bits");
static_assert(SUMS * sizeof(Sum) <= 1u << 16, "places in bytes have 16 bits");

struct Pair {
    Sum values[64];
    u16 places[64];
};

struct alignas(2 * sizeof(Sum)) Two {
    Sum first, second;
};

#include "gustav_cuda::spgemm::dense_output::packed::Packed"

constexpr u32 NO_SOURCE = 0xffff;
static_assert(COLUMNS < NO_SOURCE, "entries of a row in a tile");

// Whether nothing is packed: B has no entries, or columns of a row do not increase.
__device__ __forceinline__ bool is_empty(const Packed &p) { return p.chunks[p.tiles] == 0; }

// By how much the second places of a line are turned.
__device__ __forceinline__ u32 turn_of(u32 line) { return 1 + line * 7 % 31; }

__device__ __forceinline__ u32 second_place(u32 column) {
    const u32 line = column / 32;
    return COLUMNS + line * 32 + (column + turn_of(line)) % 32;
}
