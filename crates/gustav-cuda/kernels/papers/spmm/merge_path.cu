// merge-path: C = alpha A B + beta C, A in CSR, B and C row-major.
// Merrill, Garland 2016; Yang, Buluc, Owens 2018, section 4.
//
// Idea: every CTA gets the same number of nonzeros and row ends together, so that many empty rows
// unbalance the work as little as long ones. Phase 1 searches, for each CTA, the diagonal of the
// merge of row ends with nonzeros; the rest is as in nonzero-split (papers/spmm/flattened.cuh).
#include "papers/spmm/flattened.cuh"

extern "C" __global__ void merge_path_boundaries(const Arguments args) {
    const u64 i = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (i > args.partitions) return;
    args.boundaries[i] = schedule::merge_path(args.offsets, args.rows, args.nonzeros, i,
                                                 args.partitions, THREADS * ITEMS);
}

extern "C" __global__ void __launch_bounds__(THREADS) merge_path(const Arguments args) {
    sum_partition(args);
}

extern "C" __global__ void __launch_bounds__(WIDTH *STRIPS)
    merge_path_fix_up(const Arguments args) {
    add_carries(args);
}
