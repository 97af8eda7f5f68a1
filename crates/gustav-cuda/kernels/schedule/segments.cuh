// Which nonzeros are mine: one segment, a run of nonzeros of one row.
//
// A plan's list holds two words a segment: where it starts, and
//   bits 0-22 length | bit 23 cut | bits 24-63 row (of a whole row) or slot (of a part of a row).
// Without a list, segment i is row i.
#pragma once
#include "common/types.cuh"

namespace schedule {

struct Segment {
    u64 first;   // position of its first nonzero
    u64 last;    // one past its last nonzero
    u64 target;  // row of C, or slot among the partial sums
    bool cut;    // whether it is a part of a row
};

// Room of the fields; the host asserts the same numbers.
constexpr int LENGTH_BITS = 23;

__device__ __forceinline__ Segment segment(const u64 *list, u64 i) {
    u32 word[4];
    ptx::load_readonly(list + 2 * i, word);
    const u64 first = (u64)word[1] << 32 | word[0];
    const u64 rest = (u64)word[3] << 32 | word[2];
    const u64 length = rest & ((1u << LENGTH_BITS) - 1);
    return {first, first + length, rest >> (LENGTH_BITS + 1), (bool)(rest >> LENGTH_BITS & 1)};
}

template <class O>
__device__ __forceinline__ Segment row(const O *offsets, u64 i) {
    return {(u64)__ldg(offsets + i), (u64)__ldg(offsets + i + 1), i, false};
}

}  // namespace schedule
