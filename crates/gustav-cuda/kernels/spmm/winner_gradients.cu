// winner_gradients: values[p] = alpha sum_j G[i, j] B[k, j] + beta values[p] over the columns j
// that nonzero p won in its row i of op(A), k its column: the gradient of the values of A in an
// SpMM with max or min. A kernel of Gustav. (The gradient of B is `segmented` with FILTERED.)
//
// Idea: every group of lanes takes the same number of consecutive nonzeros of A and compares the
// position of each with the winners of its row of C, which nonzeros of one row share. G and B are
// read only where the nonzero won: in total once for every element of C.
//
//   grid.x -> NONZEROS a group, BLOCK / LANES groups a CTA     lane l of a group: columns l, l + LANES, ...
//
// Sums have a fixed order: the same bits in every run.
#include "common/semiring.cuh"
#include "common/warp.cuh"

using Value = GUSTAV_VALUE;
using Index = GUSTAV_INDEX;
using Offset = GUSTAV_OFFSET;
using Winner = GUSTAV_WINNER;
using Accum = typename Accumulator<Value>::Type;

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int LANES = GUSTAV_LANES;
constexpr int NONZEROS = GUSTAV_NONZEROS;
constexpr bool TRANSPOSED = GUSTAV_TRANSPOSED;  // whether op(A) is the transpose

#include "gustav_cuda::spmm::winner_gradients::Arguments"

extern "C" __global__ void __launch_bounds__(BLOCK) winner_gradients(const Arguments args) {
    const u64 first = ((u64)blockIdx.x * (BLOCK / LANES) + threadIdx.x / LANES) * NONZEROS;
    if (first >= args.nonzeros) return;
    const u64 last = first + NONZEROS < args.nonzeros ? first + NONZEROS : args.nonzeros;
    const int lane = threadIdx.x % LANES;
    const u32 group = warp::lanes_of_group<LANES>();
    const Accum alpha = from_bits<Accum>(args.alpha), beta = from_bits<Accum>(args.beta);
    // The last row that begins at the nonzero or before it.
    u64 row = 0;
    for (u64 end = args.rows; end - row > 1;) {
        const u64 middle = row + (end - row) / 2;
        if ((u64)args.offsets[middle] <= first)
            row = middle;
        else
            end = middle;
    }
    for (u64 p = first; p < last; ++p) {
        while ((u64)__ldg(args.offsets + row + 1) <= p) ++row;
        const u64 column = __ldg(args.indices + p);
        const u64 i = TRANSPOSED ? column : row, k = TRANSPOSED ? row : column;
        const Winner *winners = args.winners + i * args.columns;
        Accum sum = 0;
#pragma unroll 4
        for (u64 j = lane; j < args.columns; j += LANES) {
            if (__ldg(winners + j) != (Winner)p) continue;
            const Value *g = args.g + i * args.g_row + j * args.g_column;
            const Value *b = args.b + k * args.b_row + j * args.b_column;
            sum = times_plus(widen(*g), widen(*b), sum);
        }
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2)
            sum = plus(sum, __shfl_xor_sync(group, sum, distance));
        if (lane != 0) continue;
        Accum value = times(alpha, sum);
        if (beta != Accum(0)) value = plus(value, times(beta, widen(args.values[p])));
        args.values[p] = Narrow<Value>::from(value);
    }
}
