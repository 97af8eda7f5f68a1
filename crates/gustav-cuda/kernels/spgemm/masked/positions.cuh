// Positions of a row, and the products to consider for them.
//
// A row of B that is much longer than the number of positions is searched for each of them, and
// counts as one product a position. For a part of a row's positions, only the entries of B between
// the first and the last of them are considered.
#pragma once
#include "common/search.cuh"
#include "spgemm/masked/arguments.cuh"

namespace tasks {

// A nonzero of A and its row of B, or the part of that from column `low` to `high`.
struct Nonzero {
    u32 k;
    Offset start;
    // Products; if the row is searched, the number of positions.
    u64 length;
    bool searched;
};

// The positions [from, from + count) of a row. `part`: the row has further positions.
struct Positions {
    u64 row, from;
    u32 count;
    bool part;
    u64 low, high;

    __device__ Positions(const Arguments &g, u64 row, u64 from, u32 count, bool part)
        : row(row), from(from), count(count), part(part && g.ordered), low(0), high(0) {
        if (this->part) low = g.positions[from], high = g.positions[from + count - 1];
    }

    __device__ __forceinline__ Nonzero nonzero(const Arguments &g, u64 at) const {
        const u32 k = (u32)g.a.indices[at];
        Offset start = g.b.offsets[k], stop = g.b.offsets[k + 1];
        if (part) {
            start = lower_bound(g.b.indices, start, stop, low);
            stop = lower_bound(g.b.indices, start, stop, high + 1);
        }
        const u64 length = stop - start;
        // A binary search reads about log2(length) entries, one after another.
        const bool searched = g.ordered && length > 2ull * count * (64 - __clzll(length));
        return {k, start, searched ? count : length, searched};
    }
};

}  // namespace tasks
