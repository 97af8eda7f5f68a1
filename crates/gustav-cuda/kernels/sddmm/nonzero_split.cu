// nonzero-split of SDDMM: values[p] = alpha <X[row p], Y[column p]> factors[p] + beta values[p] for every nonzero p. Ours.
//
// Idea: nonzeros do not depend on each other, so that equal numbers of them are equal work, whatever the
// lengths of rows. A group of lanes holds a panel of the depth and takes CHUNK nonzeros at a time; neighbouring
// nonzeros share a row: its row of X stays in registers.
//
//   grid.x -> BATCHES batches for each of the BLOCK / LANES groups of a CTA (sddmm/nonzeros.cuh)
//   grid.y -> products
//
// Invariants: as sddmm/nonzeros.cuh.
constexpr bool ORDERED = false;
#include "sddmm/nonzeros.cuh"

using Offset = GUSTAV_OFFSET;

constexpr int BATCHES = GUSTAV_BATCHES;
constexpr bool BATCHED = GUSTAV_BATCHED;  // whether there are several products

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT / BLOCK)
    nonzero_split(const __grid_constant__ List args) {
    ptx::wait_for_prerequisites();
    const u64 begin = blockIdx.x * (STEP * BATCHES), left = args.nonzeros - begin;
    const u64 end = left < STEP * BATCHES ? args.nonzeros : begin + STEP * BATCHES;
    if constexpr (!BATCHED) {
        compute(args, begin, end);
    } else {
        for (u64 product = blockIdx.y; product < args.batch; product += gridDim.y) {
            List one = args;
            one.x += product * args.next_x;
            one.y += product * args.next_y;
            one.values += product * args.nonzeros;
            if (args.factors) one.factors += product * args.next_factors;
            compute(one, begin, end);
        }
    }
}

#include "gustav_cuda::sddmm::nonzero_split::RowArguments"

// The row of every nonzero, for the plan: thread p looks for that of nonzero p.
extern "C" __global__ void __launch_bounds__(256) rows_of_nonzeros(const RowArguments args) {
    const u64 p = (u64)blockIdx.x * 256 + threadIdx.x;
    if (p >= args.nonzeros) return;
    u64 low = 0, high = args.row_count;  // offsets[low] <= p < offsets[high]
    while (high - low > 1) {
        const u64 middle = low + (high - low) / 2;
        if (__ldg(args.offsets + middle) <= p)
            low = middle;
        else
            high = middle;
    }
    args.rows[p] = (Row)low;
}
