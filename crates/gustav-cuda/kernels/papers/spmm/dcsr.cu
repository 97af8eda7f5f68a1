// dcsr: C = alpha A B + beta C, A in CSR without its empty rows, B and C column-major.
// The study of row permutations for SpMM on GPUs, section II-A; otherwise as output-stationary.
//
// Idea: the plan lists the rows that hold nonzeros, so that warps get only rows with work, and the
// row offsets of empty rows are not read. The warp of a listed row also writes the empty rows
// between it and the one before it, which only beta changes.
//
//   grid.x -> strips of WIDTH columns     warp -> elements warp, warp + WARPS, ... of the list
//   grid.y -> as in output-stationary
#include "papers/spmm/stationary.cuh"

extern "C" __global__ void __launch_bounds__(WARPS *WARP) dcsr(const Arguments args) {
    const u64 j = (u64)blockIdx.x * WIDTH;
    const int lane = threadIdx.x % WARP;
    // The index past the last row stands for the empty rows at the end.
    for (u64 i = first_row(); i <= args.operands.rows; i += row_step()) {
        const u64 row = i < args.operands.rows ? (u64)__ldg(args.listed + i) : args.all_rows;
        const u64 after = i == 0 ? 0 : (u64)__ldg(args.listed + i - 1) + 1;
        for (u64 empty = after + lane; empty < row; empty += WARP)
#pragma unroll
            for (int w = 0; w < WIDTH; ++w) write(args, empty, j + w, Ring::zero());
        const u32 *offsets = args.operands.offsets;
        if (i < args.operands.rows) sum_row(args, row, __ldg(offsets + i), __ldg(offsets + i + 1), j);
    }
}
