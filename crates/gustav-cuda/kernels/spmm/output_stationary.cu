// output-stationary: C = alpha A B + beta C, A in CSR, B and C column-major.
// The study of row permutations for SpMM on GPUs, section II-B.
//
// Idea: a CTA owns a strip of columns of C and walks over all rows of A, so that its strip of B
// stays in the caches; row i goes to warp i mod WARPS. Partial sums live in registers and nothing
// is added atomically.
//
//   grid.x -> strips of WIDTH columns     warp -> rows warp, warp + WARPS, ...
//   lane   -> nonzeros lane, lane + 32, ... of the row (spmm/stationary.cuh)
#include "spmm/stationary.cuh"

extern "C" __global__ void __launch_bounds__(WARPS *WARP) output_stationary(const Arguments args) {
    const u64 j = (u64)blockIdx.x * WIDTH;
    for (u64 i = threadIdx.x / WARP; i < args.rows; i += WARPS)
        sum_row(args, i, __ldg(args.offsets + i), __ldg(args.offsets + i + 1), j);
}
