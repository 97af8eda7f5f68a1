// tile_reuse: into how many segments tiles of B's rows would cut a sample of rows. One warp a
// sample.
//
//   counts = nonzeros | segments    of the first MOST nonzeros of each
#include "common/types.cuh"

using Index = GUSTAV_INDEX;
using Offset = GUSTAV_OFFSET;

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr u64 MOST = GUSTAV_MOST;

#include "gustav_cuda::schedule::lengths::Reuse"

extern "C" __global__ void __launch_bounds__(BLOCK) tile_reuse(const Reuse args) {
    const u64 i = ((u64)blockIdx.x * BLOCK + threadIdx.x) / 32;
    if (i >= args.samples) return;
    // Spread over the matrix.
    const u64 row = i * args.rows / args.samples;
    const u64 first = args.offsets[row], end = args.offsets[row + 1];
    const u64 last = end - first < MOST ? end : first + MOST;
    if (first >= last) return;
    u64 segments = 1;
    for (u64 batch = first + 1; batch < last; batch += 32) {
        const u64 k = batch + threadIdx.x % 32;
        const bool begins =
            k < last && args.indices[k] / args.tile != args.indices[k - 1] / args.tile;
        segments += __popc(__ballot_sync(~0u, begins));
    }
    if (threadIdx.x % 32 != 0) return;
    atomicAdd(args.counts, last - first);
    atomicAdd(args.counts + 1, segments);
}
