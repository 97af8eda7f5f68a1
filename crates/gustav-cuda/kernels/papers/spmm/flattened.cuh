// Sums of flattened partitions: the part of nonzero-split and merge-path after the partitioning.
//
//   grid.x -> partitions, one a CTA     grid.y -> strips of COLUMNS columns (strided)
//   group  =  COLUMNS lanes         group g -> nonzeros g CHUNK .. (g + 1) CHUNK of the partition
//   lane l -> column COLUMNS strip + l
//
// A group walks its nonzeros in order. It broadcasts them one after another, so that reads of B are
// coalesced, holds the values of B of a round in registers, and then adds product after product to
// the sum of the current row. Rows that begin and end in one group go straight to C. The others
// leave a head (the end of a row that began in an earlier group) and a tail (the sum of the last
// row) in shared memory, which the first group adds up in their order. The row that is still open
// at the end of the partition is the carry-out: `add_carries` adds the carry-outs of each row in
// their order, so that the bits are the same in every run.
#pragma once
#include "common/epilogue.cuh"
#include "papers/spmm/column.cuh"
#include "schedule/partitions.cuh"

using Value = GUSTAV_VALUE;
using Ring = PlusTimes<Value>;

constexpr int THREADS = GUSTAV_THREADS;
constexpr int ITEMS = GUSTAV_ITEMS;
constexpr int COLUMNS = GUSTAV_COLUMNS;
constexpr int GROUPS = THREADS / COLUMNS;
constexpr int CHUNK = ITEMS * COLUMNS;
static_assert(32 % COLUMNS == 0 && THREADS % 32 == 0, "a group lies in one warp");

// Loads of B that a thread issues before it waits for them: a round. The paper issues COLUMNS.
constexpr int AHEAD = COLUMNS < GUSTAV_AHEAD ? COLUMNS : GUSTAV_AHEAD;
static_assert(COLUMNS % AHEAD == 0, "a round is a part of COLUMNS nonzeros");

// No row: nothing is carried out.
constexpr u32 NONE = 0xffffffffu;

#include "gustav_cuda::papers::spmm::flattened::Arguments"

__device__ __forceinline__ void write_row(const Arguments &args, u64 row, u64 j, Value sum) {
    const Value total[1] = {sum};
    finish<Ring>(total, from_bits<Value>(args.alpha), from_bits<Value>(args.beta),
                 args.c + row * args.ldc + j);
}

// Sums one partition. All threads of the CTA take part.
__device__ __forceinline__ void sum_partition(const Arguments &args) {
    __shared__ u32 row_of[THREADS * ITEMS];
    __shared__ Value head[GROUPS][COLUMNS], tail[GROUPS][COLUMNS];
    const schedule::Partition s = schedule::partition(args.boundaries, blockIdx.x);
    schedule::flatten<THREADS, ITEMS>(args.offsets, args.rows, s, row_of);
    const int count = (int)(s.last - s.first);
    const int lane = threadIdx.x % COLUMNS;
    // Broadcast where a warp is a group, so that the compiler sees that it does not diverge.
    const int group = COLUMNS == 32 ? __shfl_sync(0xffffffffu, threadIdx.x / COLUMNS, 0)
                                    : threadIdx.x / COLUMNS;
    const int first = group * CHUNK, first_of_warp = group / (32 / COLUMNS) * (32 / COLUMNS) * CHUNK;
    // Whether the group's first nonzero continues a row of the group before it.
    const auto goes_on = [&](int at) { return at == 0 || row_of[at - 1] == row_of[at]; };

    for (u64 strip = blockIdx.y; strip * COLUMNS < args.columns; strip += gridDim.y) {
        const u64 j = strip * COLUMNS + lane;
        const bool live = j < args.columns;
        const Column<Value> column_of_b(args.b, args.columns, args.ldb, j);
        u32 row = first < count ? row_of[first] : 0;
        bool is_head = first < count && goes_on(first);
        Value sum = Ring::zero();
#pragma unroll 1
        for (int item = 0; item < CHUNK && first_of_warp + item < count; item += COLUMNS) {
            const int base = first + item;
            // Past the partition lies its last nonzero again, which is read but not added.
            const u64 at = s.first + min(base + lane, count - 1);
            const u32 column = __ldg(args.indices + at);
            const Value value = __ldg(args.values + at);
#pragma unroll 1
            for (int k = 0; k < COLUMNS && first_of_warp + item + k < count; k += AHEAD) {
                Value a[AHEAD], b[AHEAD];
#pragma unroll
                for (int i = 0; i < AHEAD; ++i) {
                    b[i] = column_of_b[__shfl_sync(0xffffffffu, column, k + i, COLUMNS)];
                    a[i] = __shfl_sync(0xffffffffu, value, k + i, COLUMNS);
                }
#pragma unroll
                for (int i = 0; i < AHEAD; ++i) {
                    if (base + k + i >= count) break;
                    const u32 next = row_of[base + k + i];
                    if (next != row) {
                        if (is_head)
                            head[group][lane] = sum;
                        else if (live)
                            write_row(args, (u64)s.first_row + row, j, sum);
                        is_head = false;
                        row = next;
                        sum = Ring::zero();
                    }
                    sum = Ring::mul_add(a[i], b[i], sum);
                }
            }
        }
        tail[group][lane] = sum;
        __syncthreads();

        if (group == 0 && live) {
            Value carry = Ring::zero();
            for (int g = 0; g * CHUNK < count; ++g) {
                const int from = g * CHUNK, to = min(from + CHUNK, count) - 1;
                const bool continued = goes_on(from);
                if (!continued) write_row(args, (u64)s.first_row + row_of[from - 1], j, carry);
                if (continued && row_of[from] == row_of[to]) {
                    carry = Ring::add(carry, tail[g][lane]);
                } else {
                    if (continued)
                        write_row(args, (u64)s.first_row + row_of[from], j,
                                  Ring::add(carry, head[g][lane]));
                    carry = tail[g][lane];
                }
            }
            u32 open = NONE;
            if (count > 0) {
                const u32 last = s.first_row + row_of[count - 1];
                if (last < s.last_row) {
                    write_row(args, last, j, carry);
                } else {
                    open = last;
                    args.carries[blockIdx.x * args.columns + j] = carry;
                }
            }
            if (strip == 0 && lane == 0) args.carry_rows[blockIdx.x] = open;
        }
        // Rows that end in this partition without a nonzero in it.
        for (u64 r = (u64)s.first_row + group; r < s.last_row; r += GROUPS)
            if (live && schedule::part(args.offsets, s, (u32)r).empty())
                write_row(args, r, j, Ring::zero());
        __syncthreads();
    }
}

// Adds the carry-outs of each row in their order. One CTA a partition (grid.x) and 32 columns
// (grid.y), idle unless the partition is the first of its row; strip s adds every STRIPS-th
// carry-out, then strip 0 adds the strips.
constexpr int STRIPS = 8;
constexpr int WIDTH = 32;

__device__ __forceinline__ void add_carries(const Arguments &args) {
    __shared__ Value strip_sum[STRIPS][WIDTH];
    const u64 first = blockIdx.x;
    const u32 row = args.carry_rows[first];
    if (row == NONE || (first > 0 && args.carry_rows[first - 1] == row)) return;
    const int lane = threadIdx.x % WIDTH, strip = threadIdx.x / WIDTH;
    for (u64 base = (u64)blockIdx.y * WIDTH; base < args.columns; base += (u64)gridDim.y * WIDTH) {
        const u64 j = base + lane;
        Value sum = Ring::zero();
        if (j < args.columns)
            for (u64 i = first + strip; i < args.partitions && args.carry_rows[i] == row; i += STRIPS)
                sum = Ring::add(sum, args.carries[i * args.columns + j]);
        strip_sum[strip][lane] = sum;
        __syncthreads();
        if (strip == 0 && j < args.columns) {
            for (int k = 1; k < STRIPS; ++k) sum = Ring::add(sum, strip_sum[k][lane]);
            Value *to = args.c + row * args.ldc + j;
            *to = Ring::add(*to, Ring::scale(from_bits<Value>(args.alpha), sum));
        }
        __syncthreads();
    }
}
