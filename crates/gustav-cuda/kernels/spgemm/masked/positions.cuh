// Positions of a row, and the products that may reach them.
//
// Rows of B that are much longer than the positions are many are searched for these instead, and have
// as many products as there are positions. Some positions of a row enter every row of B where they begin.
#pragma once
#include "common/search.cuh"
#include "spgemm/masked/arguments.cuh"

namespace tasks {

// A nonzero of A and the row of B that it names, or the part of it from column `low` to `high`.
struct Nonzero {
    u32 k;
    Offset start;
    // Products, as many as positions where the row is searched for them.
    u64 length;
    bool searched;
};

// The positions [from, from + count) of a row. `part` says that the row has more.
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
        // A search reads a few entries one after another.
        const bool searched = g.ordered && length > 2ull * count * (64 - __clzll(length));
        return {k, start, searched ? count : length, searched};
    }
};

}  // namespace tasks
