// columns: properties of the columns in the rows of a CSR matrix.
//
//   increasing: thread -> entries and ends of rows; counts where columns do not increase
//   cuts: thread -> a row and a chunk boundary, found by binary search in increasing columns
//
// GUSTAV_INDEX, GUSTAV_OFFSET   types of column indices and of row offsets; u32 for `cuts`
#include "common/search.cuh"
#include "csr/descents.cuh"

typedef GUSTAV_INDEX Index;
typedef GUSTAV_OFFSET Offset;

constexpr int BLOCK = GUSTAV_BLOCK;

#include "gustav_cuda::matrix::columns::Arguments"

extern "C" __global__ void __launch_bounds__(BLOCK) increasing(const Arguments args) {
    const u64 threads = (u64)gridDim.x * BLOCK, thread = (u64)blockIdx.x * BLOCK + threadIdx.x;
    const long long found =
        descents(args.offsets, args.indices, args.rows, args.entries, thread, threads);
    if (threadIdx.x % 32 == 0 && found != 0) atomicAdd((u64 *)args.out, (u64)found);
}

extern "C" __global__ void __launch_bounds__(BLOCK) cuts(const Arguments args) {
    const u64 row = (u64)blockIdx.x * BLOCK + threadIdx.x;
    if (row >= args.rows) return;
    const u32 begin = (u32)args.offsets[row], end = (u32)args.offsets[row + 1];
    for (u64 chunk = blockIdx.y; chunk <= args.chunks; chunk += gridDim.y) {
        const u64 bound = chunk * args.width;
        ((u32 *)args.out)[chunk * args.rows + row] = lower_bound(args.indices, begin, end, bound);
    }
}
