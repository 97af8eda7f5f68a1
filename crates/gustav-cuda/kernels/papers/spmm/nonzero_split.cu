// nonzero-split: C = alpha A B + beta C, A in CSR, B and C row-major.
// Yang, Buluc, Owens 2018, section 4.2 (there "merge-based").
//
// Idea: every CTA gets the same number of nonzeros, wherever the rows begin and end, so that
// neither long rows nor empty lanes unbalance the work. Phase 1 searches the row offsets for the
// row at which each CTA begins; phase 2 flattens the CTA's rows to COO in shared memory and sums
// (papers/spmm/flattened.cuh); a third, small kernel fixes up rows that lie in several CTAs.
//
// In the paper, lanes past the last nonzero hold column 0 and value 0; here they are skipped.
#include "papers/spmm/flattened.cuh"

extern "C" __global__ void nonzero_split_boundaries(const Arguments args) {
    const u64 i = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (i > args.partitions) return;
    args.boundaries[i] = schedule::nonzero_split(args.offsets, args.rows, args.nonzeros, i,
                                                 args.partitions, THREADS * ITEMS);
}

extern "C" __global__ void __launch_bounds__(THREADS) nonzero_split(const Arguments args) {
    sum_partition(args);
}

extern "C" __global__ void __launch_bounds__(WIDTH *STRIPS)
    nonzero_split_fix_up(const Arguments args) {
    add_carries(args);
}
