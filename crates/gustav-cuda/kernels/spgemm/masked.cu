// The entries of C = A * B at given positions: a masked product.
//
//   weigh       assigns every row to one of the following kernels, and checks that the columns of B
//               and of the mask increase
//   merged_few, merged_many   thread -> a short row, of up to 8 or 16 rows of B
//   search_8, search_32   8 or 32 lanes -> a row; a lane searches the rows of B for its position
//   few         warp -> a row of few positions and products
//   cut         warp -> any other row, which is cut into tasks: some of its positions
//   many        warp -> a task, sums in A's order
//   shared      CTA -> a task, sums in any order
//   keep_8, keep_32   8 or 32 lanes -> a row: positions that have a product become C's entries
//   find        warp -> positions, looked up in all of C, which was computed before
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

// Counts are added to `c.offsets`, which is zero at the start.
extern "C" __global__ void __launch_bounds__(BLOCK) many(const Arguments g) {
    __shared__ tasks::Memory<32, FEW + 1> memory[WARPS];
    tasks::take_by_warps(g, memory[threadIdx.x / 32]);
}
extern "C" __global__ void __launch_bounds__(SHARING) shared(const Arguments g) {
    __shared__ tasks::Memory<SHARING, MANY + 1> memory;
    tasks::take_by_ctas(g, memory);
}

extern "C" __global__ void __launch_bounds__(BLOCK) keep_8(const Arguments g) { entries::keep<8>(g); }
extern "C" __global__ void __launch_bounds__(BLOCK) keep_32(const Arguments g) { entries::keep<32>(g); }
extern "C" __global__ void __launch_bounds__(BLOCK) find(const Arguments g) { entries::find(g); }
