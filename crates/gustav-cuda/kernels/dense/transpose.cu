// transpose: a dense matrix from one layout to the other through shared memory, with alpha and
// beta on the way: out[j][i] = scale(alpha, in[i][j]) + scale(beta, out[j][i]).
//
//   grid.x -> tiles of EDGE columns of `in`, grid.y -> tiles of EDGE rows (strided)
//   CTA    =  EDGE x ROWS threads
#include "common/epilogue.cuh"
#include "ptx/dependents.cuh"

using In = GUSTAV_VALUE;
using Out = GUSTAV_OUT;
using Accum = Accumulator<In>::Type;
using Ring = GUSTAV_SEMIRING<Accum>;

constexpr int STEPS = GUSTAV_STEPS;  // of the epilogue
constexpr int EDGE = 32;
constexpr int ROWS = GUSTAV_BLOCK / EDGE;
static_assert(GUSTAV_BLOCK % EDGE == 0, "a CTA is EDGE threads wide");

#include "gustav_cuda::matrix::layout::Arguments"

extern "C" __global__ void __launch_bounds__(GUSTAV_BLOCK) transpose(const Arguments args) {
    __shared__ Accum tile[EDGE][EDGE + 1];
    const Accum alpha = from_bits<Accum>(args.alpha), beta = from_bits<Accum>(args.beta);
    const int x = threadIdx.x % EDGE, y = threadIdx.x / EDGE;
    const u64 column = (u64)blockIdx.x * EDGE;
    ptx::wait_for_prerequisites();
    for (u64 line = (u64)blockIdx.y * EDGE; line < args.lines; line += (u64)gridDim.y * EDGE) {
        for (int r = y; r < EDGE; r += ROWS)
            if (line + r < args.lines && column + x < args.length)
                tile[r][x] = widen(args.input[(line + r) * args.ld_in + column + x]);
        __syncthreads();
        for (int r = y; r < EDGE; r += ROWS)
            if (column + r < args.length && line + x < args.lines) {
                const Accum value[1] = {tile[x][r]};
                finish<Ring>(value, alpha, beta, args.output + (column + r) * args.ld_out + line + x,
                             Steps<STEPS, Accum>{args.bias + column + r});
            }
        __syncthreads();
    }
}
