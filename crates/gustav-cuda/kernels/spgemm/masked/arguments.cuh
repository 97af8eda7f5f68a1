// The parameter of every kernel of `masked`.
#pragma once
#include "common/semiring.cuh"
#include "common/warp.cuh"
#include "spgemm/operands.cuh"

typedef GUSTAV_SEMIRING<Sum> S;

constexpr u32 BLOCK = 128, WARPS = BLOCK / 32;
// Threads that share a task, and that weigh rows.
constexpr u32 SHARING = 256;
// Positions of a warp and of a CTA, and of the smallest tasks, as powers of two.
constexpr u32 FEW = 8, MANY = 10, LEAST = GUSTAV_LEAST;
// Products that a lane has under way.
constexpr u32 IN_FLIGHT = 4;

// The lists that rows are in, by what computes them. Two lists are the ends of one array.
enum List : u32 { MERGED_FEW, MERGED_MANY, SEARCHED_8, TABLE, SEARCHED_32, CUT, LISTS };

// Counters: rows of each list, tasks, tasks that are taken, products of all rows, and the work in each
// list, see `weigh`; then entries that are not above the one before in their row, of B and of the mask.
enum Counter : u32 { TASKS = LISTS, TAKEN, PRODUCTS, WORK, DESCENTS = WORK + LISTS };

#include "gustav_cuda::spgemm::masked::kernels::Arguments"

// Where row `i` of a list is.
__device__ __forceinline__ u32 *listed(const Arguments &g, u32 list, u64 i) {
    u32 *array = g.lists + list / 2 * g.rows;
    return array + (list % 2 == 0 ? i : g.rows - 1 - i);
}
