// Equal partitions of a matrix, found by a search in its row offsets.
//
// The items of a matrix are its rows' starts, each followed by the row's nonzeros; partition i is items
// i 2^BITS to (i + 1) 2^BITS - 1. Row starts count, so that many empty rows are spread like nonzeros.
//
//   row r    starts at item offsets[r] + r, ends with item offsets[r + 1] + r
//   nonzero  z of row r is item z + r + 1
#pragma once
#include "common/types.cuh"

namespace schedule {

// The row of item `item`, which must exist: the first row that ends with it or later. LANES lanes
// of a warp, those in `group`, search together: each step looks at LANES rows.
template <int LANES, class Position, class O>
__device__ __forceinline__ Position row_of_item(const O *offsets, Position rows, Position nonzeros,
                                                Position item, int lane, u32 group) {
    Position low = item > nonzeros ? item - nonzeros : 0;
    Position high = item < rows ? item : rows - 1;
    while (low < high) {
        const Position step = (high - low) / (LANES + 1) + 1;
        const Position asked = low + (lane + 1) * step - 1;
        const bool before = asked < high && (Position)__ldg(offsets + asked + 1) + asked < item;
        const Position passed = __popc(__ballot_sync(group, before));
        const Position reached = low + (passed + 1) * step - 1;
        low += passed * step;
        high = reached < high ? reached : high;
    }
    return low;
}

}  // namespace schedule
