// gather: the values of A in the order of another pattern, out[i] = values[source[i]].
//
// One thread a value; the grid strides. Where the pattern is PADDED, a source of all ones is a slot
// without a value: nothing is written there.
#include "common/types.cuh"

using Value = GUSTAV_VALUE;
using Offset = GUSTAV_OFFSET;

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr bool PADDED = GUSTAV_PADDED;

#include "gustav_cuda::matrix::gather::Arguments"

extern "C" __global__ void __launch_bounds__(BLOCK) gather(const Arguments args) {
    const u64 step = (u64)gridDim.x * BLOCK;
    for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i < args.count; i += step) {
        const Offset from = args.source[i];
        if (!PADDED || from != ~(Offset)0) args.out[i] = args.values[from];
    }
}
