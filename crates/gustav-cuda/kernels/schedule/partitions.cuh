// Equal partitions of the work, whatever the rows are.
//
// A boundary between partitions is a pair (row, nonzero): everything before it belongs to earlier
// partitions. Rows [first_row, last_row), empty ones included, end in a partition; its nonzeros are
// [first, last). The row open at the end is last_row: its partial sum is the carry-out.
#pragma once
#include "common/types.cuh"

namespace schedule {

struct Boundary {
    u32 row;
    u32 nonzero;
};

struct Partition {
    u32 first_row, last_row;
    u32 first, last;
};

// nonzero-split: boundary `i` of partitions of `size` nonzeros each, by a 1-D search for the row.
__device__ __forceinline__ Boundary nonzero_split(const u32 *offsets, u64 rows, u64 nonzeros,
                                                  u64 i, u64 partitions, u64 size) {
    if (i == 0) return {0, 0};
    if (i == partitions) return {(u32)rows, (u32)nonzeros};
    const u32 at = (u32)(i * size);
    // The first row that ends after `at`.
    u64 low = 0, high = rows;
    while (low < high) {
        const u64 middle = (low + high) / 2;
        if (__ldg(offsets + middle + 1) <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return {(u32)low, at};
}

// merge-path: boundary `i` of partitions of `size` row ends and nonzeros together, by a 2-D search
// along the diagonal of the merge of row ends with nonzeros (Merrill and Garland 2016).
__device__ __forceinline__ Boundary merge_path(const u32 *offsets, u64 rows, u64 nonzeros, u64 i,
                                               u64 partitions, u64 size) {
    const u64 diagonal = i == partitions ? rows + nonzeros : i * size;
    u64 low = diagonal > nonzeros ? diagonal - nonzeros : 0;
    u64 high = diagonal < rows ? diagonal : rows;
    while (low < high) {
        const u64 middle = (low + high) / 2;
        if (__ldg(offsets + middle + 1) <= diagonal - middle - 1)
            low = middle + 1;
        else
            high = middle;
    }
    return {(u32)low, (u32)(diagonal - low)};
}

// Partition `i` between boundaries `i` and `i + 1`.
__device__ __forceinline__ Partition partition(const Boundary *boundaries, u64 i) {
    const Boundary from = boundaries[i], to = boundaries[i + 1];
    return {from.row, to.row, from.nonzero, to.nonzero};
}

// Nonzeros of row `r` that lie in a partition, counted from the partition's first.
struct Part {
    u32 first, last;
    __device__ __forceinline__ bool empty() const { return first >= last; }
};

__device__ __forceinline__ Part part(const u32 *offsets, const Partition &s, u32 r) {
    const u32 begin = __ldg(offsets + r), end = __ldg(offsets + r + 1);
    const u32 first = begin > s.first ? begin : s.first, last = end < s.last ? end : s.last;
    return {first - s.first, last > first ? last - s.first : first - s.first};
}

// Flattens CSR to COO: row_of[k] becomes the row of the partition's k-th nonzero, counted from the
// partition's first row. All THREADS threads of the CTA take part; THREADS * ITEMS is the most
// nonzeros of a partition.
template <int THREADS, int ITEMS>
__device__ __forceinline__ void flatten(const u32 *offsets, u64 rows, const Partition &s,
                                        u32 (&row_of)[THREADS * ITEMS]) {
    constexpr int WARPS = THREADS / 32;
    __shared__ u32 warp_last[WARPS];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    for (int k = thread; k < THREADS * ITEMS; k += THREADS) row_of[k] = 0;
    __syncthreads();
    // No two rows begin at the same nonzero, so no two threads mark the same one.
    for (u64 r = (u64)s.first_row + thread; r <= s.last_row && r < rows; r += THREADS) {
        const Part p = part(offsets, s, (u32)r);
        if (!p.empty()) row_of[p.first] = (u32)r - s.first_row;
    }
    __syncthreads();
    // Row numbers do not decrease along the nonzeros: a running maximum fills the gaps.
    u32 mine[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        mine[k] = row_of[thread * ITEMS + k];
        if (k > 0) mine[k] = max(mine[k], mine[k - 1]);
    }
    u32 before = mine[ITEMS - 1];
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const u32 other = __shfl_up_sync(0xffffffffu, before, distance);
        if (lane >= distance) before = max(before, other);
    }
    if (lane == 31) warp_last[warp] = before;
    before = __shfl_up_sync(0xffffffffu, before, 1);
    if (lane == 0) before = 0;
    __syncthreads();
    for (int w = 0; w < warp; ++w) before = max(before, warp_last[w]);
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) row_of[thread * ITEMS + k] = max(mine[k], before);
    __syncthreads();
}

}  // namespace schedule
