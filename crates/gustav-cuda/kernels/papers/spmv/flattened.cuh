// Sums of flattened partitions for a vector: the part of nonzero-split and merge-path after the
// partitioning.
//
//   grid.x -> partitions, one a CTA     thread t -> nonzeros t ITEMS .. (t + 1) ITEMS of the partition
//
// The CTA multiplies its nonzeros coalesced and leaves the products in shared memory. Each thread
// then sums ITEMS neighbours: rows that begin and end there go straight to y; the end of a row that
// began earlier is the thread's head, the sum of its last row the tail. A segmented scan of the
// tails gives every thread the carry-in of its head. The row that is open at the end of the
// partition is the carry-out: `add_carries` adds the carry-outs of each row in a fixed order, so
// that the bits are the same in every run.
#pragma once
#include "common/epilogue.cuh"
#include "schedule/partitions.cuh"

using Value = GUSTAV_VALUE;
using Ring = PlusTimes<Value>;

constexpr int THREADS = GUSTAV_THREADS;
constexpr int ITEMS = GUSTAV_ITEMS;
constexpr int WARPS = THREADS / 32;
static_assert(THREADS % 32 == 0, "whole warps");

// No row: nothing is carried out.
constexpr u32 NONE = 0xffffffffu;
constexpr u32 ALL = 0xffffffffu;

#include "gustav_cuda::papers::spmv::flattened::Arguments"

__device__ __forceinline__ void write_row(const Arguments &args, u64 row, Value sum) {
    const Value total[1] = {sum};
    finish<Ring>(total, from_bits<Value>(args.alpha), from_bits<Value>(args.beta), args.y + row);
}

// Consecutive threads: the sum of the row open at their end, and whether that row began among them.
struct Tail {
    Value sum;
    bool begun;

    // These threads together with those of `before`, which precede them.
    __device__ __forceinline__ Tail after(const Tail &before) const {
        return {begun ? sum : Ring::add(before.sum, sum), begun || before.begun};
    }
};

// The carry from all threads before this one.
__device__ __forceinline__ Tail exclusive_scan(Tail mine) {
    __shared__ Value warp_sum[WARPS];
    __shared__ bool warp_begun[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const Tail other = {__shfl_up_sync(ALL, mine.sum, distance),
                            (bool)__shfl_up_sync(ALL, (int)mine.begun, distance)};
        if (lane >= distance) mine = mine.after(other);
    }
    if (lane == 31) warp_sum[warp] = mine.sum, warp_begun[warp] = mine.begun;
    __syncthreads();
    Tail before = {Ring::zero(), false};
    for (int w = 0; w < warp; ++w) before = Tail{warp_sum[w], warp_begun[w]}.after(before);
    const Tail left = {__shfl_up_sync(ALL, mine.sum, 1),
                       (bool)__shfl_up_sync(ALL, (int)mine.begun, 1)};
    return lane == 0 ? before : left.after(before);
}

// Sums one partition. All threads of the CTA take part.
__device__ __forceinline__ void sum_partition(const Arguments &args) {
    __shared__ u32 row_of[THREADS * ITEMS];
    __shared__ Value product[THREADS * ITEMS];
    const schedule::Partition s = schedule::partition(args.boundaries, blockIdx.x);
    const int count = (int)(s.last - s.first), thread = threadIdx.x;
    Value a[ITEMS], x[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        const int at = thread + k * THREADS;
        if (at >= count) continue;
        a[k] = __ldg(args.values + s.first + at);
        x[k] = __ldg(args.x + __ldg(args.indices + s.first + at));
    }
#pragma unroll
    for (int k = 0; k < ITEMS; ++k)
        if (thread + k * THREADS < count) product[thread + k * THREADS] = times(a[k], x[k]);
    // Ends with a barrier, which also makes the products visible.
    schedule::flatten<THREADS, ITEMS>(args.offsets, args.rows, s, row_of);

    const int first = thread * ITEMS;
    const bool busy = first < count;
    // Whether the thread's first nonzero continues a row of the thread before it.
    const bool goes_on = busy && (first == 0 || row_of[first - 1] == row_of[first]);
    u32 row = busy ? row_of[first] : 0;
    const u32 head_row = row;
    bool is_head = goes_on, has_head = false;
    Value sum = Ring::zero(), head = Ring::zero();
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        if (first + k >= count) break;
        const u32 next = row_of[first + k];
        if (next != row) {
            if (is_head)
                head = sum, has_head = true;
            else
                write_row(args, (u64)s.first_row + row, sum);
            is_head = false;
            row = next;
            sum = Ring::zero();
        }
        sum = Ring::add(sum, product[first + k]);
    }
    const Tail tail = {sum, busy && !is_head};
    const Tail before = exclusive_scan(tail);
    if (busy && !goes_on) write_row(args, (u64)s.first_row + row_of[first - 1], before.sum);
    if (has_head) write_row(args, (u64)s.first_row + head_row, Ring::add(before.sum, head));
    if (busy && first + ITEMS >= count) {
        const Value open = tail.after(before).sum;
        const u32 last = s.first_row + row;
        if (last < s.last_row) write_row(args, last, open);
        args.carry_rows[blockIdx.x] = last < s.last_row ? NONE : last;
        args.carries[blockIdx.x] = open;
    }
    if (count == 0 && thread == 0) args.carry_rows[blockIdx.x] = NONE;
    // Rows that end in this partition without a nonzero in it.
    for (u64 r = (u64)s.first_row + thread; r < s.last_row; r += THREADS)
        if (schedule::part(args.offsets, s, (u32)r).empty()) write_row(args, r, Ring::zero());
}

// Adds the carry-outs of each row in a fixed order: one warp a partition, idle unless the partition
// is the first of its row.
__device__ __forceinline__ void add_carries(const Arguments &args) {
    const u64 first = (u64)blockIdx.x * WARPS + threadIdx.x / 32;
    if (first >= args.partitions) return;
    const u32 row = args.carry_rows[first];
    if (row == NONE || (first > 0 && args.carry_rows[first - 1] == row)) return;
    const int lane = threadIdx.x % 32;
    Value sum = Ring::zero();
    for (u64 i = first + lane; i < args.partitions && args.carry_rows[i] == row; i += 32)
        sum = Ring::add(sum, args.carries[i]);
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        sum = Ring::add(sum, __shfl_xor_sync(ALL, sum, distance));
    if (lane == 0)
        args.y[row] =
            Ring::add(args.y[row], Ring::scale(from_bits<Value>(args.alpha), sum));
}
