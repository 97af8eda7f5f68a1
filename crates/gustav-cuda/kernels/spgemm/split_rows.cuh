// Rows of A with so many nonzeros that a single CTA would finish late: their nonzeros are cut into
// chunks, one a CTA. A CTA adds the bits and sums of its chunk to those of the row in memory, and
// the last CTA of a row writes the row.
//
//   row of the bin   blockIdx.y      chunk of it   blockIdx.x
//   slot             of every row `words` words of bits, and sums of their columns; the
//                    index is the row's number
#pragma once
#include "schedule/arrival.cuh"
#include "spgemm/products.cuh"

namespace split_rows {

struct Chunk {
    u32 row, slot;
    u64 begin;
    u32 count;
};

// All threads of the CTA get the same.
__device__ __forceinline__ Chunk own(const Arguments &g) {
    __shared__ u32 slot;
    const u32 row = row_of(g, blockIdx.y);
    for (u32 n = threadIdx.x; n < g.slots; n += blockDim.x)
        if (g.slot_rows[n] == row) slot = n;
    const u64 begin = g.a.offsets[row], nonzeros = g.a.offsets[row + 1] - begin;
    const u64 from = nonzeros * blockIdx.x / gridDim.x, to = nonzeros * (blockIdx.x + 1) / gridDim.x;
    __syncthreads();
    return {row, slot, begin + from, (u32)(to - from)};
}

// Lanes of a subgroup, as a power of two, fewer than a mean row of B fills: with so few threads,
// each should have loads of its own in flight.
template <int GROUP>
__device__ __forceinline__ u32 log_lanes(const Arguments &g, const Chunk &chunk) {
    const u32 lanes = ::log_lanes<GROUP>(products_of(g, chunk.row) / gridDim.x, chunk.count);
    return lanes > 5 ? lanes : lanes > 3 ? lanes - 3 : 0;
}

// The number of sums of a row, at most the number of columns.
__device__ __forceinline__ u32 sums_of_a_row(const Arguments &g) {
    return (u32)min((u64)g.words * 32, g.columns);
}

__device__ __forceinline__ u32 *bits_of(const Arguments &g, const Chunk &chunk) {
    return g.found_bits + (u64)chunk.slot * g.words;
}

__device__ __forceinline__ Sum *sums_of(const Arguments &g, const Chunk &chunk) {
    return (Sum *)g.found_sums + (u64)chunk.slot * sums_of_a_row(g);
}

// Whether this CTA is the last of its row to arrive.
__device__ __forceinline__ bool ends(const Arguments &g, const Chunk &chunk) {
    return arrival::is_last_cta(g.ended + chunk.slot, gridDim.x);
}

}  // namespace split_rows
