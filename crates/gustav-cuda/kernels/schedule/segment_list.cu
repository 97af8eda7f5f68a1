// segment_list: rows cut into segments, ordered so that the groups of a warp have similar lengths
// and nearby rows stay together. See schedule/segments.cuh for the words.
//
//   list = parts of cut rows | long whole rows by length | windows of WINDOW rows, each by length
//
// One CTA a window of rows, as stored or as an order lists them. Rows with at least 2^longest
// nonzeros are cut; those with at least `first` and the cut ones go to the head, where each bin of
// lengths has a range of its own, in unspecified order. The others are sorted inside the window,
// longest first, otherwise in that order: a warp counts 32 rows at a time, and the counts are added
// up by length and then by warp; without SORTED, all count as one length. Unused slots of a window
// stay zero, which is no segment.
#include "schedule/lengths.cuh"
#include "schedule/segments.cuh"

using Offset = GUSTAV_OFFSET;

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int WINDOW = GUSTAV_WINDOW;
constexpr bool SORTED = GUSTAV_SORTED;  // whether windows are sorted by length
constexpr int KINDS = SORTED ? GUSTAV_MOST_FIRST : 1;  // lengths that are distinguished
constexpr int WARPS = BLOCK / 32;
constexpr int ROUNDS = WINDOW / BLOCK;
static_assert(schedule::LENGTH_BITS == GUSTAV_LENGTH_BITS, "the host sees the same fields");
static_assert(WINDOW % BLOCK == 0 && BLOCK % 32 == 0, "whole rounds of whole warps");

#include "gustav_cuda::schedule::segments::Arguments"

// The parts of a cut row, written by the lanes of a warp.
__device__ __forceinline__ void cut(const Arguments &args, u64 row, u64 first, u64 last) {
    const int lane = threadIdx.x % 32;
    const u64 count = schedule::parts(first, last, args.longest_bits);
    u64 slot = 0;
    if (lane == 0) {
        slot = atomicAdd(args.cursors, count);
        const u64 index = atomicAdd(args.cursors + 1, 1);
        args.cut_rows[index] = row;
    }
    slot = __shfl_sync(~0u, slot, 0);
    const u64 start = first & ~(schedule::ALIGNMENT - 1), step = (u64)1 << args.longest_bits;
    for (u64 part = lane; part < count; part += 32) {
        const u64 begin = part == 0 ? first : start + part * step;
        const u64 end = start + (part + 1) * step < last ? start + (part + 1) * step : last;
        if (!args.to_rows) schedule::put_cut_row(args.slot_rows, slot + part, {row, (u32)slot, (u32)count});
        schedule::put(args.list, slot + part, begin, end - begin, true,
                      args.to_rows ? row : slot + part);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) segment_list(const Arguments args) {
    __shared__ u32 counts[KINDS][WARPS];
    __shared__ u32 totals[KINDS];
    for (int i = threadIdx.x; i < KINDS * WARPS; i += BLOCK) (&counts[0][0])[i] = 0;
    __syncthreads();
    const u64 window = (u64)blockIdx.x * WINDOW;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    // A warp has consecutive rows in all rounds.
    u64 rows[ROUNDS], first[ROUNDS], length[ROUNDS];
#pragma unroll
    for (int k = 0; k < ROUNDS; ++k) {
        const u64 place = window + (warp * ROUNDS + k) * 32 + lane;
        const bool live = place < args.rows;
        const u64 row = live && args.order ? (u64)args.order[place] : place;
        rows[k] = row;
        first[k] = live ? (u64)args.offsets[row] : 0;
        length[k] = live ? (u64)args.offsets[row + 1] - first[k] : 0;
        const bool isCut = live && length[k] >> args.longest_bits != 0;
        for (u32 left = __ballot_sync(~0u, isCut); left != 0; left &= left - 1) {
            const int from = __ffs(left) - 1;
            const u64 begin = __shfl_sync(~0u, first[k], from);
            cut(args, __shfl_sync(~0u, row, from), begin, begin + __shfl_sync(~0u, length[k], from));
        }
        if (live && !isCut && length[k] >= args.first) {
            const u64 place = atomicAdd(args.cursors + 2 + schedule::length_bin(length[k]), 1);
            schedule::put(args.list, place, first[k], length[k], false, row);
        }
        if (live && length[k] < args.first) atomicAdd(&counts[SORTED ? length[k] : 0][warp], 1);
    }
    __syncthreads();
    // Longest first: the rows before those of a length are all longer ones.
    const int kinds = SORTED ? (int)args.first : 1;
    for (int l = threadIdx.x; l < kinds; l += BLOCK) {
        u32 total = 0;
        for (int w = 0; w < WARPS; ++w) {
            const u32 count = counts[l][w];
            counts[l][w] = total;
            total += count;
        }
        totals[l] = total;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 before = 0;
        for (int l = kinds - 1; l >= 0; --l) {
            const u32 total = totals[l];
            totals[l] = before;
            before += total;
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ROUNDS; ++k) {
        const bool live = window + (warp * ROUNDS + k) * 32 + lane < args.rows;
        const bool mine = live && length[k] < args.first;
        const u32 kind = SORTED ? (u32)length[k] : 0;
        const u32 same = __match_any_sync(~0u, mine ? kind : ~0u);
        if (mine) {
            const u32 rank = __popc(same & ((1u << lane) - 1));
            const u64 place = totals[kind] + counts[kind][warp] + rank;
            schedule::put(args.list, args.windows + window + place, first[k], length[k], false,
                          rows[k]);
        }
        __syncwarp();
        if (mine && (same & ((1u << lane) - 1)) == 0) counts[kind][warp] += __popc(same);
        __syncwarp();
    }
}
