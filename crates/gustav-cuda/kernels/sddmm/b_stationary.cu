// b-stationary of SDDMM: values[p] = alpha <X[row p], Y[column p]> factors[p] + beta values[p] for every nonzero p. Ours.
//
// Idea: where many rows have nonzeros in the same few columns, these are taken tile after tile of Y's rows: a
// multiprocessor takes consecutive nonzeros of one tile or two, whose rows of Y stay in its L1 cache, and rows of X
// stream past.
//
//   grid.x -> multiprocessors, one CTA each, which takes an equal part of the list (sddmm/nonzeros.cuh)
//   list   -> segments of rows, tile after tile (schedule/segment_nonzeros.cu)
//
// Invariants: as sddmm/nonzeros.cuh.
constexpr bool ORDERED = true;
#include "sddmm/nonzeros.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT / BLOCK)
    b_stationary(const __grid_constant__ List args) {
    ptx::wait_for_prerequisites();
    // Whole chunks for every CTA.
    const u64 part = (args.nonzeros + gridDim.x - 1) / gridDim.x, each = (part + CHUNK - 1) / CHUNK * CHUNK;
    const u64 begin = blockIdx.x * each;
    if (begin >= args.nonzeros) return;
    compute(args, begin, args.nonzeros - begin < each ? args.nonzeros : begin + each);
}
