// validate: the first invalid elements of the arrays of a CSR pattern.
//
//   thread -> row offsets that decrease, then column indices out of range, grid-stride
//
// GUSTAV_INDEX, GUSTAV_OFFSET   types of column indices and of row offsets
#include "common/types.cuh"

typedef GUSTAV_INDEX Index;
typedef GUSTAV_OFFSET Offset;

constexpr int BLOCK = GUSTAV_BLOCK;

#include "gustav_cuda::matrix::validate::Arguments"

extern "C" __global__ void __launch_bounds__(BLOCK) validate(const Arguments args) {
    const u64 threads = (u64)gridDim.x * BLOCK, thread = (u64)blockIdx.x * BLOCK + threadIdx.x;
    if (thread == 0) {
        args.found[0] = args.offsets[0];
        args.found[1] = args.offsets[args.rows];
    }
    for (u64 row = thread; row < args.rows; row += threads) {
        if (args.offsets[row] <= args.offsets[row + 1]) continue;
        atomicMin(args.found + 2, row);
        break;  // later rows of the thread are not the first
    }
    for (u64 k = thread; k < args.entries; k += threads) {
        if (args.indices[k] < args.columns) continue;
        atomicMin(args.found + 3, k);
        break;
    }
}
