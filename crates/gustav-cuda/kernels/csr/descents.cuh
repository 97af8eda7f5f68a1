// Whether the columns of every row increase.
#pragma once
#include "common/types.cuh"

// Counts, over the threads of a grid, entries whose successor is not larger, without the last
// entries of rows. The sum is 0 iff every row increases strictly; the count of one thread may be
// negative. All lanes of a warp take part, the first returns the warp's count.
template <class Index, class Offset>
__device__ __forceinline__ long long descents(const Offset *offsets, const Index *indices, u64 rows,
                                              u64 entries, u64 thread, u64 threads) {
    long long found = 0;
    for (u64 at = thread; at + 1 < entries; at += threads) found += indices[at] >= indices[at + 1];
    for (u64 row = thread; row < rows; row += threads) {
        const u64 begin = offsets[row], end = offsets[row + 1];
        if (begin < end && end < entries) found -= indices[end - 1] >= indices[end];
    }
    for (u32 step = 16; step > 0; step /= 2) found += __shfl_xor_sync(0xffffffffu, found, step);
    return found;
}
