// Prefetch slices: CTA i prefetches slice i of arrays that all CTAs of a product read, while it waits for its part of the
// schedule, so that loads of nonzeros, and then of B, find them in L2. Which arrays, of which size:
// src/product/slices.rs.
#pragma once
#include "common/types.cuh"
#include "gustav_cuda::product::slices::Slices"
#include "ptx/memory.cuh"

namespace tile {

// This CTA's slice, `own` of `count` elements.
template <class T>
__device__ __forceinline__ void prefetch_slice(const T *array, u64 count, u32 own) {
    const u64 first = (u64)blockIdx.x * own;
    if (first >= count) return;
    const u64 left = count - first;
    ptx::prefetch(array + first, (left < own ? left : own) * sizeof(T), threadIdx.x, blockDim.x);
}

// Of A and B. Of a grid with several panels the first prefetches.
template <class Index, class Value>
__device__ __forceinline__ void prefetch_slices(const Slices &slices, const Index *indices, const Value *values,
                                                u64 nonzeros, const Value *b) {
    if (blockIdx.y != 0) return;
    if (slices.of_a != 0) {
        prefetch_slice(indices, nonzeros, slices.of_a);
        prefetch_slice(values, nonzeros, slices.of_a);
    }
    if (slices.of_b != 0) prefetch_slice(b, slices.b, slices.of_b);
}

}  // namespace tile
