// output-stationary: C = alpha A B + beta C, A in CSR, B and C column-major.
// The study of row permutations for SpMM on GPUs, section II-B.
//
// Idea: a CTA owns a strip of columns of C and walks over all rows of A, so that its strip of B
// stays in the caches; row i goes to warp i mod WARPS. Partial sums live in registers and nothing
// is added atomically.
//
//   grid.x -> strips of WIDTH columns     warp -> rows warp, warp + WARPS, ...
//   grid.y -> one CTA, or several that take groups of WARPS rows of the strip in turn
//   lane   -> nonzeros lane, lane + 32, ... of the row (papers/spmm/stationary.cuh)
//
// With a row order, warp i mod WARPS gets the row in slot i of the order, or none.
#include "papers/spmm/stationary.cuh"

constexpr u64 NO_ROW = 0xffffffff;  // the host asserts the same number

extern "C" __global__ void __launch_bounds__(WARPS *WARP) output_stationary(const Arguments args) {
    const u64 j = (u64)blockIdx.x * WIDTH;
    for (u64 i = first_row(); i < args.operands.rows; i += row_step()) {
        const u64 row = ORDERED ? (u64)__ldg(args.listed + i) : i;
        if (ORDERED && row == NO_ROW) continue;
        sum_row(args, row, __ldg(args.operands.offsets + row), __ldg(args.operands.offsets + row + 1), j);
    }
}
