// B packed for full rows of C: tiles of columns, one after another, each with all rows of B.
//
// Every column of a tile has a position in shared memory for its sum. The columns of the first DOUBLED
// lines have a second position, in a different bank; their sum is the two added up. An entry of B is
// packed with one of the two, chosen so that the entries of a row are spread evenly over the banks.
// The n-th entries of all banks make a group, one a lane, whose sums are accessed without bank
// conflicts.
//
//   positions of a tile    0 1 2 .. 31 | 32 33 ..  first positions, in lines of one position a bank
//                          31 0 1 .. 30 | 24 25 ..  second positions, every line rotated
//   pair                two groups, interleaved, so that a lane reads its entries of both in one load;
//                       a row of a tile has at least IN_FLIGHT
//   chunk               the pairs of one bulk copy
#pragma once
#include "common/semiring.cuh"
#include "spgemm/arguments.cuh"

constexpr u32 COLUMNS = GUSTAV_COLUMNS;
constexpr u32 LINES = COLUMNS / 32;
// Lines whose columns have a second position.
constexpr u32 DOUBLED = GUSTAV_DOUBLED;
// Lanes without an entry add to 32 unused positions at the end.
constexpr u32 POSITIONS = COLUMNS + 32 * DOUBLED, SUMS = POSITIONS + 32;
static_assert(DOUBLED <= LINES, "no more lines than the tile has");
constexpr u32 CHUNK = GUSTAV_CHUNK;
// Pairs that a warp reads at a time.
constexpr u32 IN_FLIGHT = GUSTAV_IN_FLIGHT;
static_assert((LINES + 1) / 2 <= 63 && IN_FLIGHT <= 63, "pairs of a segment have 6 bits");
static_assert(SUMS * sizeof(Sum) <= 1u << 16, "positions in bytes have 16 bits");

struct Pair {
    Sum values[64];
    u16 positions[64];
};

struct alignas(2 * sizeof(Sum)) Two {
    Sum first, second;
};

#include "gustav_cuda::spgemm::dense_output::packed::Packed"

constexpr u32 NO_SOURCE = 0xffff;
static_assert(COLUMNS < NO_SOURCE, "the index of an entry fits beside NO_SOURCE");

// Whether nothing is packed: B has no entries, or the columns of a row do not increase.
__device__ __forceinline__ bool is_empty(const Packed &p) { return p.chunks[p.tiles] == 0; }

// The rotation of the second positions of a line.
__device__ __forceinline__ u32 turn_of(u32 line) { return 1 + line * 7 % 31; }

__device__ __forceinline__ u32 second_position(u32 column) {
    const u32 line = column / 32;
    return COLUMNS + line * 32 + (column + turn_of(line)) % 32;
}
