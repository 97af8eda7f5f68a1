// What every kernel of `masked` is told.
#pragma once
#include "common/semiring.cuh"
#include "common/warp.cuh"
#include "spgemm/operands.cuh"

typedef GUSTAV_SEMIRING<Sum> S;

constexpr u32 BLOCK = 128, WARPS = BLOCK / 32;
// Threads that share a task, and that weigh rows.
constexpr u32 SHARING = 256;
// Places of a warp and of a CTA, and of the smallest tasks, as powers of two.
constexpr u32 FEW = 8, MANY = 10, LEAST = GUSTAV_LEAST;
// Products that a lane has under way.
constexpr u32 AHEAD = 4;

// The lists that rows are in, by what computes them. Two lists are the ends of one array.
enum List : u32 { MERGED_FEW, MERGED_MANY, SEARCHED_8, TABLE, SEARCHED_32, CUT, LISTS };

// Counters: rows of each list, tasks, tasks that are taken, products of all rows, and the work in each
// list, see `weigh`; then entries that are not above the one before in their row, of B and of the mask.
enum Counter : u32 { TASKS = LISTS, TAKEN, PRODUCTS, WORK, DESCENTS = WORK + LISTS };

struct Arguments : Matrices {
    const Offset *places_offsets;
    const Index *places;
    // Of every place: its value, and whether a product met it; the latter may be missing.
    Out *values;
    u8 *met;
    u64 rows;
    // Rows and entries of B, places of all rows.
    u64 rows_b;
    u64 nnz_b;
    u64 count;
    u64 alpha;
    // Three arrays with room for all rows.
    u32 *lists;
    // A row above the number of the task among its tasks and 4 bits for the logarithm of their places.
    u64 *tasks;
    // Zeros at the start.
    u64 *counters;
    // CTAs that weigh rows; those after them look for descents.
    u32 weighing;
    // Products of a row that a warp takes alone, and tasks that keep the device busy.
    u32 alone;
    u32 busy;
    // Products of rows that a thread merges, with few rows of B and with many, at most.
    u32 merged_few;
    u32 merged_many;
    // Whether columns of B's rows increase.
    u32 ordered;
    // Whether a sum must be in A's order.
    u32 in_order;

    // Where row `i` of a list is.
    __device__ __forceinline__ u32 *listed(u32 list, u64 i) const {
        u32 *array = lists + list / 2 * rows;
        return array + (list % 2 == 0 ? i : rows - 1 - i);
    }
};
