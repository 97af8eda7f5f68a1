// One row of A times a strip of columns of B, summed in registers: the common part of
// output-stationary and dcsr.
//
// A warp strides over the nonzeros of a row; every lane keeps WIDTH partial sums, one a column,
// which are reduced by shuffles. B and C are column-major, so that neighbouring columns of A read
// neighbouring elements of B.
#pragma once
#include "common/epilogue.cuh"

using Value = GUSTAV_VALUE;
using Ring = PlusTimes<Value>;

constexpr int WARPS = GUSTAV_WARPS;
constexpr int WIDTH = GUSTAV_WIDTH;
constexpr bool ORDERED = GUSTAV_ORDERED;  // whether rows are taken in the order of `listed`
constexpr int WARP = 32;

// `rows` is the number of rows of C, or of the list.
#include "gustav_cuda::papers::spmm::stationary::Arguments"

__device__ __forceinline__ void write(const Arguments &args, u64 row, u64 j, Value sum) {
    if (j >= args.operands.columns) return;
    const Value total[1] = {sum};
    finish<Ring>(total, from_bits<Value>(args.operands.alpha), from_bits<Value>(args.operands.beta),
                 args.operands.c + j * args.operands.ldc + row);
}

// The warp's first row, and the distance to its next.
__device__ __forceinline__ u64 first_row() { return (u64)blockIdx.y * WARPS + threadIdx.x / WARP; }
__device__ __forceinline__ u64 row_step() { return (u64)gridDim.y * WARPS; }

// Row `row` of C in columns j .. j + WIDTH from nonzeros first .. last.
__device__ __forceinline__ void sum_row(const Arguments &args, u64 row, u32 first, u32 last,
                                        u64 j) {
    const int lane = threadIdx.x % WARP;
    Value sum[WIDTH];
#pragma unroll
    for (int w = 0; w < WIDTH; ++w) sum[w] = Ring::zero();
    for (u64 at = (u64)first + lane; at < last; at += WARP) {
        const Value a = __ldg(args.operands.values + at);
        const Value *b = args.operands.b + __ldg(args.operands.indices + at);
#pragma unroll
        for (int w = 0; w < WIDTH; ++w)
            if (j + w < args.operands.columns)
                sum[w] = Ring::mul_add(a, __ldg(b + (j + w) * args.operands.ldb), sum[w]);
    }
#pragma unroll
    for (int w = 0; w < WIDTH; ++w) {
#pragma unroll
        for (int distance = WARP / 2; distance > 0; distance /= 2)
            sum[w] = Ring::add(sum[w], __shfl_xor_sync(0xffffffffu, sum[w], distance));
        if (lane == 0) write(args, row, j + w, sum[w]);
    }
}
