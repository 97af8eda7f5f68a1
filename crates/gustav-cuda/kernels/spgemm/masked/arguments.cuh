// The parameter of every kernel of `masked`.
#pragma once
#include "common/semiring.cuh"
#include "common/warp.cuh"
#include "spgemm/operands.cuh"

typedef GUSTAV_SEMIRING<Sum> S;

constexpr u32 BLOCK = 128, WARPS = BLOCK / 32;
// Threads of a CTA for a shared task, and of `weigh`.
constexpr u32 SHARING = 256;
// Positions of a warp and of a CTA, and of the smallest tasks, as powers of two.
constexpr u32 FEW = 8, MANY = 10, LEAST = GUSTAV_LEAST;
// Products that a lane has in flight.
constexpr u32 IN_FLIGHT = 4;

// Lists of rows, one per kernel that computes them. Two lists share an array, from both ends.
enum List : u32 { MERGED_FEW, MERGED_MANY, SEARCHED_8, TABLE, SEARCHED_32, CUT, LISTS };

// Counters: rows of each list, tasks, tasks that have been taken, products of all rows, and the
// work of each list, see `weigh`; then descents in the rows of B and of the mask.
enum Counter : u32 { TASKS = LISTS, TAKEN, PRODUCTS, WORK, DESCENTS = WORK + LISTS };

#include "gustav_cuda::spgemm::masked::kernels::Arguments"

// The address of row `i` of a list.
__device__ __forceinline__ u32 *listed(const Arguments &g, u32 list, u64 i) {
    u32 *array = g.lists + list / 2 * g.rows;
    return array + (list % 2 == 0 ? i : g.rows - 1 - i);
}
