// pack: some rows of a dense matrix, one after another, out[k][j] = matrix[rows[k]][j].
// add: the reverse, matrix[rows[k]][j] = matrix[rows[k]][j] + scale(alpha, packed[k][j]); no row
// repeats.
// store: the epilogue of sums, matrix[rows[k]][j] = scale(alpha, packed[k][j]) + scale(beta,
// matrix[rows[k]][j]), where the matrix is not read if beta is the semiring's zero; no row repeats.
//
// One thread an element; the grid strides. Distances between rows and between columns of the matrix
// say its layout.
#include "common/epilogue.cuh"

using Value = GUSTAV_VALUE;
using Accum = Accumulator<Value>::Type;
using Ring = GUSTAV_SEMIRING<Accum>;

constexpr int BLOCK = GUSTAV_BLOCK;

#include "gustav_cuda::matrix::rows::Arguments"

static __device__ __forceinline__ Value *at(const Arguments &args, u64 i) {
    const u64 row = args.rows[i / args.columns], column = i % args.columns;
    return args.matrix + row * args.row_step + column * args.column_step;
}

extern "C" __global__ void __launch_bounds__(BLOCK) pack(const Arguments args) {
    const u64 step = (u64)gridDim.x * BLOCK;
    for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i < args.count; i += step)
        args.packed[i] = *at(args, i);
}

extern "C" __global__ void __launch_bounds__(BLOCK) add(const Arguments args) {
    const Accum alpha = from_bits<Accum>(args.alpha);
    const u64 step = (u64)gridDim.x * BLOCK;
    for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i < args.count; i += step) {
        Value *to = at(args, i);
        const Accum sum = Ring::scale(alpha, widen(args.packed[i]));
        *to = Narrow<Value>::from(Ring::add(widen(*to), sum));
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) store(const Arguments args) {
    const Accum alpha = from_bits<Accum>(args.alpha), beta = from_bits<Accum>(args.beta);
    const u64 step = (u64)gridDim.x * BLOCK;
    for (u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x; i < args.count; i += step) {
        const Accum sum[1] = {widen(args.packed[i])};
        finish<Ring>(sum, alpha, beta, at(args, i));
    }
}
