// read: reads an array as often as asked and keeps nothing, to fill the caches with it or to see
// how fast they give it back.
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
    // The array holds zeros: nothing is ever written, but the compiler cannot know.
    if (seen != 0) *args.sink = seen;
}
