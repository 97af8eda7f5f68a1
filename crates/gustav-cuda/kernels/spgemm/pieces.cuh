// Rows of A with so many nonzeros that one CTA would be the last to finish: their nonzeros are cut
// into pieces, a CTA each, and what the pieces found is put together in their order by whichever CTA
// ends last.
//
//   row of the bin   blockIdx.y      piece of it   blockIdx.x
//   memory           found[row][piece]: bits of `words` words, then sums of their columns
#pragma once
#include "spgemm/products.cuh"

namespace pieces {

struct Piece {
    u32 row;
    u64 begin;
    u32 count;
};

__device__ __forceinline__ Piece own(const Arguments &g) {
    const u32 row = row_of(g, blockIdx.y);
    const u64 begin = g.a_offsets[row], nonzeros = g.a_offsets[row + 1] - begin;
    const u64 from = nonzeros * blockIdx.x / gridDim.x, to = nonzeros * (blockIdx.x + 1) / gridDim.x;
    return {row, begin + from, (u32)(to - from)};
}

// Lanes of a group, fewer than fill a mean row of B: there are so few threads that each should have
// loads of its own under way.
template <int TEAM>
__device__ __forceinline__ u32 log_lanes(const Arguments &g, const Piece &piece) {
    const u32 lanes = ::log_lanes<TEAM>(g.products[piece.row] / gridDim.x, piece.count);
    return lanes > 5 ? lanes : lanes > 3 ? lanes - 3 : 0;
}

// Number of a piece of this CTA's row.
__device__ __forceinline__ u64 number_of(u32 piece) { return (u64)blockIdx.y * gridDim.x + piece; }

__device__ __forceinline__ u32 *bits_of(const Arguments &g, u32 piece) {
    return g.found_bits + number_of(piece) * g.words;
}

__device__ __forceinline__ Sum *sums_of(const Arguments &g, u32 piece) {
    return (Sum *)g.found_sums + number_of(piece) * g.words * 32;
}

// Whether this CTA is the last of its row, after what it wrote.
__device__ __forceinline__ bool ends(const Arguments &g) {
    __shared__ u32 last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(g.ended + blockIdx.y, 1u) + 1 == gridDim.x;
        // For the next launch.
        if (last) g.ended[blockIdx.y] = 0;
    }
    __syncthreads();
    __threadfence();
    return last;
}

// Word number `at` of all pieces together.
__device__ __forceinline__ u32 all_bits(const Arguments &g, u32 at) {
    u32 mask = 0;
    for (u32 piece = 0; piece < gridDim.x; ++piece) mask |= __ldcg(bits_of(g, piece) + at);
    return mask;
}

}  // namespace pieces
