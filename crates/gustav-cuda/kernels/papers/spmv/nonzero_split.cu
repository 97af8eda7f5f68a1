// nonzero-split: y = alpha A x + beta y, A in CSR.
// Baxter's segmented reduction in the words of Yang, Buluc, Owens 2018, sections 4 and 4.2.
//
// Idea: every CTA gets the same number of nonzeros, wherever the rows begin and end. Phase 1
// searches the row offsets for the row at which each CTA begins, once for a pattern; phase 2
// multiplies and sums (papers/spmv/flattened.cuh); a third, small kernel fixes up rows that lie in
// several CTAs.
#include "papers/spmv/flattened.cuh"

extern "C" __global__ void nonzero_split_boundaries(const Arguments args) {
    const u64 i = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (i > args.partitions) return;
    args.boundaries[i] = schedule::nonzero_split(args.offsets, args.rows, args.nonzeros, i, args.partitions,
                                       THREADS * ITEMS);
}

extern "C" __global__ void __launch_bounds__(THREADS) nonzero_split(const Arguments args) {
    sum_partition(args);
}

extern "C" __global__ void __launch_bounds__(THREADS) nonzero_split_fix_up(const Arguments args) {
    add_carries(args);
}
