// A lane's part of a panel of C: columns (k LANES + l) VECTOR + 0..VECTOR-1 for k < TILES.
#pragma once
#include "common/types.cuh"

namespace tile {

// In the first WHOLE tiles, every lane has all its columns in every panel, so bounds are not
// checked.
template <int VECTOR, int LANES, int TILES, int WHOLE>
struct Span {
    static_assert(WHOLE <= TILES, "no more than all tiles");
    static constexpr int PANEL = LANES * TILES * VECTOR;

    u64 column;  // the first
    u32 left;    // columns from it on, of the matrix or of the panel

    __device__ __forceinline__ Span(u64 columns, u64 column) : column(column), left(0) {
        if (column < columns) left = columns - column < PANEL ? (u32)(columns - column) : PANEL;
    }
    __device__ __forceinline__ bool has(int k) const {
        return k < WHOLE || k * LANES * VECTOR < left;
    }
    __device__ __forceinline__ u64 at(int k) const { return column + k * LANES * VECTOR; }
};

}  // namespace tile
