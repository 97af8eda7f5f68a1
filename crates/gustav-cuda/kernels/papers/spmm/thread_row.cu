// thread-row: C = alpha A B + beta C, A in CSR, B and C row-major.
// Yang, Buluc, Owens 2018, section 4.1 ("granularity").
//
// Idea: one thread owns one row and WIDTH columns of C. Threads share nothing and do not wait for
// each other, which pays for rows of very few nonzeros; reads of A and B are not coalesced.
//
//   grid.x -> rows, one a thread     grid.y -> strips of WIDTH columns (strided)
#include "common/epilogue.cuh"
#include "schedule/segments.cuh"

using Value = GUSTAV_VALUE;
using Ring = PlusTimes<Value>;

constexpr int THREADS = GUSTAV_THREADS;
constexpr int WIDTH = GUSTAV_WIDTH;

#include "gustav_cuda::papers::PaperOperands"

extern "C" __global__ void __launch_bounds__(THREADS) thread_row(const PaperOperands args) {
    const u64 i = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (i >= args.rows) return;
    const schedule::Segment<u64> row = schedule::row<u64>(args.offsets, i);
    const Value alpha = from_bits<Value>(args.alpha), beta = from_bits<Value>(args.beta);
    for (u64 strip = blockIdx.y; strip * WIDTH < args.columns; strip += gridDim.y) {
        const u64 j = strip * WIDTH;
        Value sum[WIDTH];
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) sum[k] = Ring::zero();
        for (u64 at = row.first; at < row.last; ++at) {
            const Value a = __ldg(args.values + at);
            const Value *b = args.b + __ldg(args.indices + at) * args.ldb + j;
#pragma unroll
            for (int k = 0; k < WIDTH; ++k)
                if (j + k < args.columns) sum[k] = Ring::mul_add(a, __ldg(b + k), sum[k]);
        }
#pragma unroll
        for (int k = 0; k < WIDTH; ++k) {
            if (j + k >= args.columns) continue;
            const Value total[1] = {sum[k]};
            finish<Ring>(total, alpha, beta, args.c + i * args.ldc + j + k);
        }
    }
}
