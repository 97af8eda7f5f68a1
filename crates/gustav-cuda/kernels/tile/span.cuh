// A lane's part of a panel of C: columns (k LANES + l) VECTOR + 0..VECTOR-1 for k < TILES.
#pragma once
#include "common/types.cuh"

namespace tile {

// WHOLE is the number of tiles, from the first, of which no lane lacks columns in any panel.
template <int VECTOR, int LANES, int TILES, int WHOLE>
struct Span {
    static_assert(WHOLE <= TILES, "of the tiles");
    static constexpr int PANEL = LANES * TILES * VECTOR;

    u64 column;  // the first
    u32 left;    // columns from it on: as many as there are, or a panel holds

    __device__ __forceinline__ Span(u64 columns, u64 column) : column(column), left(0) {
        if (column < columns) left = columns - column < PANEL ? (u32)(columns - column) : PANEL;
    }
    __device__ __forceinline__ bool has(int k) const {
        return k < WHOLE || k * LANES * VECTOR < left;
    }
    __device__ __forceinline__ u64 at(int k) const { return column + k * LANES * VECTOR; }
};

}  // namespace tile
