// row_similarity: how many loads of B neighbouring rows could share.
//
// One thread a sample: rows are merged in aligned blocks, as row_blocks.cu would, up to MOST columns.
//   grid.x -> samples     grid.y -> blocks of 2, 3, 4 and 8 rows
//   counts = nonzeros and distinct columns of the blocks of 2 | of 3 | of 4 | of 8
#include "schedule/row_blocks.cuh"

using Index = GUSTAV_INDEX;
using Offset = GUSTAV_OFFSET;

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int MOST = GUSTAV_MOST;

#include "gustav_cuda::schedule::lengths::Similarity"

template <int ROWS>
__device__ __forceinline__ void sample(const Similarity &args, u64 row, u64 *counts) {
    const u64 first = row / ROWS * ROWS;
    schedule::Merge<ROWS, Index> merge(args.offsets, args.indices, first, args.rows);
    u64 column, nonzeros = 0, distinct = 0;
    while (distinct < MOST) {
        const u32 rows = merge.step(column);
        if (rows == 0) break;
        nonzeros += __popc(rows), ++distinct;
    }
    atomicAdd(counts, nonzeros);
    atomicAdd(counts + 1, distinct);
}

extern "C" __global__ void __launch_bounds__(BLOCK) row_similarity(const Similarity args) {
    const u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x;
    if (i >= args.samples) return;
    // Samples are spread evenly over the matrix.
    const u64 row = i * (args.rows / args.samples);
    u64 *counts = args.counts + 2 * blockIdx.y;
    switch (blockIdx.y) {
        case 0: return sample<2>(args, row, counts);
        case 1: return sample<3>(args, row, counts);
        case 2: return sample<4>(args, row, counts);
        default: return sample<8>(args, row, counts);
    }
}
