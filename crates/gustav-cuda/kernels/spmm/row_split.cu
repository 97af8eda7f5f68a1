// row-split: C = alpha A B + beta C, A in CSR, B and C row-major.
// Yang, Buluc, Owens 2018, section 4.1.
//
// Idea: one warp owns one row and 32 columns of C. It reads a batch of 32 nonzeros coalesced, one
// a lane, then broadcasts them one after another; for each, lane l reads element l of the
// 32-column strip of a row of B, so that those reads are coalesced too.
//
//   grid.x -> WARPS rows a CTA     grid.y -> strips of 32 columns
//   warp   =  one row              lane l -> column 32 strip + l
//
// The paper lets lanes past the end of a row carry column 0 and value 0; here they are left out of
// the broadcast, as 0 times infinity is not 0 and row 0 of B need not exist.
#include "common/epilogue.cuh"
#include "schedule/segments.cuh"

using Value = GUSTAV_VALUE;
using Ring = PlusTimes<Value>;

constexpr int WARPS = GUSTAV_WARPS;
constexpr int WARP = 32;

struct Arguments {
    const u32 *offsets;
    const u32 *indices;
    const Value *values;
    const Value *b;
    Value *c;
    u64 rows;
    u64 columns;
    u64 ldb;
    u64 ldc;
    u64 alpha;
    u64 beta;
};

extern "C" __global__ void __launch_bounds__(WARPS *WARP) row_split(const Arguments args) {
    const u64 i = (u64)blockIdx.x * WARPS + threadIdx.x / WARP;
    if (i >= args.rows) return;
    const int lane = threadIdx.x % WARP;
    const schedule::Segment<u64> row = schedule::row<u64>(args.offsets, i);
    for (u64 strip = blockIdx.y; strip * WARP < args.columns; strip += gridDim.y) {
        const u64 j = strip * WARP + lane;
        const bool live = j < args.columns;
        Value sum[1] = {Ring::zero()};
        for (u64 batch = row.first; batch < row.last; batch += WARP) {
            const int count = row.last - batch < WARP ? (int)(row.last - batch) : WARP;
            u32 column = 0;
            Value value = Ring::zero();
            if (lane < count) {
                column = __ldg(args.indices + batch + lane);
                value = __ldg(args.values + batch + lane);
            }
#pragma unroll
            for (int k = 0; k < WARP; ++k) {
                if (k >= count) break;
                const u32 shared_column = __shfl_sync(0xffffffffu, column, k);
                const Value shared_value = __shfl_sync(0xffffffffu, value, k);
                if (live) {
                    const Value b = __ldg(args.b + shared_column * args.ldb + j);
                    sum[0] = Ring::mul_add(shared_value, b, sum[0]);
                }
            }
        }
        if (live)
            finish<Ring>(sum, from_bits<Value>(args.alpha), from_bits<Value>(args.beta),
                         args.c + i * args.ldc + j);
    }
}
