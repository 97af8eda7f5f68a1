// read: reads an array repeatedly and discards it, to fill the caches or to measure their
// throughput.
//
//   grid.x -> CTAs that stride over the array    thread -> 16 bytes at a time
#include "common/types.cuh"
#include "ptx/memory.cuh"

#include "gustav_cuda::launch::probe::Arguments"

extern "C" __global__ void __launch_bounds__(GUSTAV_BLOCK) read(const Arguments args) {
    u64 seen = 0;
    const u64 step = (u64)gridDim.x * GUSTAV_BLOCK;
    for (u64 pass = 0; pass < args.passes; ++pass) {
        const u64 first = (u64)blockIdx.x * GUSTAV_BLOCK + threadIdx.x;
#pragma unroll 8
        for (u64 i = first; i < args.vectors; i += step) {
            u32 word[4];
            ptx::load_cached(args.from + 2 * i, word);
            seen ^= (u64)(word[0] ^ word[2]) << 32 | (word[1] ^ word[3]);
        }
    }
    // The array holds zeros, so nothing is ever written; the compiler cannot know that and keeps
    // the loads.
    if (seen != 0) *args.sink = seen;
}
