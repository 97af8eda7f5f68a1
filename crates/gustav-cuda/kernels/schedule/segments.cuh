// A segment: consecutive nonzeros of one row.
//
// A plan's list holds two words a segment: where it starts, and
//   bits 0-22 length | bit 23 cut | bits 24-63 1 + row (of a whole row) or slot (of a part of one).
// Two zeros are an unused slot of the list. Without a list, segment i is row i.
#pragma once
#include "common/types.cuh"
#include "ptx/memory.cuh"

namespace schedule {

// Bits of the fields; the host asserts the same numbers.
constexpr int LENGTH_BITS = 23;

// `Position` is wide enough for any position in A.
template <class Position>
struct Segment {
    Position first;  // position of its first nonzero
    Position last;   // one past its last nonzero
    u64 word;        // the list's second word

    // Row of C, or slot among the partial sums.
    __device__ __forceinline__ u64 target() const { return (word >> (LENGTH_BITS + 1)) - 1; }
    // Whether it is a part of a row.
    __device__ __forceinline__ bool cut() const { return word >> LENGTH_BITS & 1; }
    // An unused slot of the list.
    __device__ __forceinline__ bool none() const { return word == 0; }
};

template <class Position>
__device__ __forceinline__ Segment<Position> no_segment() {
    return {0, 0, 0};
}

// The segment that two words describe.
template <class Position>
__device__ __forceinline__ Segment<Position> segment(const u32 (&word)[4]) {
    const Position first = (Position)((u64)word[1] << 32 | word[0]);
    const u64 second = (u64)word[3] << 32 | word[2];
    return {first, first + (Position)(second & ((1u << LENGTH_BITS) - 1)), second};
}

template <class Position>
__device__ __forceinline__ Segment<Position> segment(const u64 *list, u64 i) {
    u32 word[4];
    ptx::load_readonly(list + 2 * i, word);
    return segment<Position>(word);
}

__device__ __forceinline__ void put(u64 *list, u64 i, u64 first, u64 length, bool cut, u64 target) {
    list[2 * i] = first;
    list[2 * i + 1] = (target + 1) << (LENGTH_BITS + 1) | (u64)cut << LENGTH_BITS | length;
}

// The cut row that a slot has a part of. A plan has two words for each slot, in one load.
struct CutRow {
    u64 row;
    u32 first, count;  // its slots
};

__device__ __forceinline__ CutRow cut_row(const u64 *slot_rows, u64 slot) {
    u32 word[4];
    ptx::load_readonly(slot_rows + 2 * slot, word);
    return {(u64)word[1] << 32 | word[0], word[2], word[3]};
}

__device__ __forceinline__ void put_cut_row(u64 *slot_rows, u64 slot, const CutRow &cut) {
    slot_rows[2 * slot] = cut.row;
    slot_rows[2 * slot + 1] = (u64)cut.count << 32 | cut.first;
}

template <class Position, class O>
__device__ __forceinline__ Segment<Position> row(const O *offsets, u64 i) {
    return {(Position)__ldg(offsets + i), (Position)__ldg(offsets + i + 1), (i + 1) << (LENGTH_BITS + 1)};
}

}  // namespace schedule
