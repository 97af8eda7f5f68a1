// coverage: records which nonzeros and rows each partition gets, for the test that each is visited
// exactly once.
//
//   coverage   grid.x -> partitions, one a CTA
//   rows       grid.x -> rows, one a thread
#include "schedule/segments.cuh"
#include "schedule/partitions.cuh"

constexpr int THREADS = GUSTAV_THREADS;
constexpr int ITEMS = GUSTAV_ITEMS;

#include "gustav_cuda::schedule::partitions::Arguments"

extern "C" __global__ void boundaries(const Arguments args) {
    const u64 i = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (i > args.partitions) return;
    args.boundaries[i] = schedule::GUSTAV_SCHEDULE(args.offsets, args.rows, args.nonzeros, i,
                                                   args.partitions, THREADS * ITEMS);
}

extern "C" __global__ void __launch_bounds__(THREADS) coverage(const Arguments args) {
    __shared__ u32 row_of[THREADS * ITEMS];
    const schedule::Partition s = schedule::partition(args.boundaries, blockIdx.x);
    schedule::flatten<THREADS, ITEMS>(args.offsets, args.rows, s, row_of);
    for (u32 k = threadIdx.x; k < s.last - s.first; k += THREADS) {
        atomicAdd(args.visits + s.first + k, 1);
        args.rows_of[s.first + k] = s.first_row + row_of[k];
    }
    for (u64 r = (u64)s.first_row + threadIdx.x; r < s.last_row; r += THREADS)
        atomicAdd(args.row_ends + r, 1);
}

extern "C" __global__ void rows(const Arguments args) {
    const u64 i = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (i >= args.rows) return;
    const schedule::Segment<u64> row = schedule::row<u64>(args.offsets, i);
    if (row.cut() || row.none()) return;
    for (u64 k = row.first; k < row.last; ++k) {
        atomicAdd(args.visits + k, 1);
        args.rows_of[k] = (u32)row.target();
    }
    atomicAdd(args.row_ends + row.target(), 1);
}
