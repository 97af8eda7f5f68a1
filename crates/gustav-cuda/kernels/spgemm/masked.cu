// The entries of C = A * B at given positions: a product under a mask, and sums that are the same in
// every run.
//
//   weigh       which of the following has a row, and whether columns of B and of the mask increase
//   merged_few, merged_many   thread -> a short row, with up to 8 and 16 rows of B
//   search_8, search_32   so many lanes -> a row, a position each, searched for in the rows of B
//   few         warp -> a row of not many positions and products
//   cut         warp -> another row, into tasks: some of its positions
//   many        warp -> a task, sums in A's order
//   shared      CTA -> a task, sums in any order
//   keep_8, keep_32   so many lanes -> a row: the positions that a product reached become C's entries
//   find        warp -> positions, which find their entries in all of C, computed before
//
// GUSTAV_SEMIRING   the two operations
// GUSTAV_LEAST      positions of the smallest tasks, as a power of two
#include "spgemm/masked/keep.cuh"
#include "spgemm/masked/lists.cuh"
#include "spgemm/masked/merge.cuh"
#include "spgemm/masked/search.cuh"
#include "spgemm/masked/tasks.cuh"

extern "C" __global__ void __launch_bounds__(SHARING) weigh(const Arguments g) {
    if (blockIdx.x < g.weighing)
        lists::weigh(g);
    else
        lists::descend(g);
}
extern "C" __global__ void __launch_bounds__(BLOCK) cut(const Arguments g) { lists::cut(g); }

extern "C" __global__ void __launch_bounds__(BLOCK) merged_few(const Arguments g) {
    merged::rows<merge::FEW>(g, MERGED_FEW);
}
extern "C" __global__ void __launch_bounds__(BLOCK) merged_many(const Arguments g) {
    merged::rows<merge::MANY>(g, MERGED_MANY);
}
extern "C" __global__ void __launch_bounds__(BLOCK) search_8(const Arguments g) {
    search::rows<8>(g, SEARCHED_8);
}
extern "C" __global__ void __launch_bounds__(BLOCK) search_32(const Arguments g) {
    search::rows<32>(g, SEARCHED_32);
}
extern "C" __global__ void __launch_bounds__(BLOCK) few(const Arguments g) {
    __shared__ tasks::Memory<32, FEW + 1> memory[WARPS];
    tasks::take_rows(g, memory[threadIdx.x / 32]);
}

// Counts are added to what `c.offsets` has, which is zero at the start.
extern "C" __global__ void __launch_bounds__(BLOCK) many(const Arguments g) {
    __shared__ tasks::Memory<32, FEW + 1> memory[WARPS];
    tasks::take_by_warps(g, memory[threadIdx.x / 32]);
}
extern "C" __global__ void __launch_bounds__(SHARING) shared(const Arguments g) {
    __shared__ tasks::Memory<SHARING, MANY + 1> memory;
    tasks::take_by_ctas(g, memory);
}

extern "C" __global__ void __launch_bounds__(BLOCK) keep_8(const Arguments g) { kept::met<8>(g); }
extern "C" __global__ void __launch_bounds__(BLOCK) keep_32(const Arguments g) { kept::met<32>(g); }
extern "C" __global__ void __launch_bounds__(BLOCK) find(const Arguments g) { kept::found(g); }
