// row_blocks: the entries of every block of ROWS rows, see schedule/row_blocks.cuh.
//
// One thread a block: it merges its rows.
#include "schedule/row_blocks.cuh"

using Index = GUSTAV_INDEX;
using Offset = GUSTAV_OFFSET;
using Word = GUSTAV_WORD;
using Position = GUSTAV_POSITION;

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int ROWS = GUSTAV_ROWS;
constexpr int CHUNK = GUSTAV_CHUNK;

#include "gustav_cuda::schedule::row_blocks::Arguments"

extern "C" __global__ void __launch_bounds__(BLOCK) row_blocks(const Arguments args) {
    const u64 block = (u64)blockIdx.x * BLOCK + threadIdx.x;
    if (block * ROWS >= args.rows) return;
    schedule::Merge<ROWS, Index> merge(args.offsets, args.indices, block * ROWS, args.rows);
    const u64 start = args.offsets[block * ROWS];
    u32 count = 0;
    for (;;) {
        if (count % CHUNK == 0) {
            Position *to = args.positions + (start / CHUNK + block + count / CHUNK) * ROWS;
#pragma unroll
            for (int r = 0; r < ROWS; ++r) to[r] = (Position)merge.next[r];
        }
        u64 column;
        const u32 rows = merge.step(column);
        if (rows == 0) break;
        args.entries[start + count++] = schedule::BlockEntry<Word, ROWS>::make(column, rows);
    }
    args.counts[block] = count;
}
