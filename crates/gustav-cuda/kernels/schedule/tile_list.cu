// tile_list: rows cut where tiles of B's rows begin, tile after tile. See schedule/segments.cuh for the
// words.
//
//   list = segments of all rows in tile 0 | in tile 1 | ...      (rows without entries are in tile 0)
//
// A segment is a run of entries of one row whose columns lie in one tile, at most MOST of them. A
// row with one segment is whole; of other rows, the parts are added up in the order of their
// entries. A row with unsorted columns has its segments in the last tile; with BY_CLASS, a segment
// ends where the tile of the next column differs. Segments of a tile are sorted into CLASSES by
// length, the longest first.
//
// One CTA a window of WINDOW rows, a warp a row. `tile_count` counts the segments of every bin, a
// class of a tile; `tile_list` writes them: behind those of other windows. With COUNTED, shared
// memory counts all bins, and a window reserves its range of every bin by one addition.
#include "schedule/segments.cuh"

using Offset = GUSTAV_OFFSET;
using Index = GUSTAV_INDEX;

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int WINDOW = GUSTAV_WINDOW;
constexpr int MOST_BINS = GUSTAV_MOST_BINS;
constexpr int MOST = GUSTAV_MOST;
constexpr int CLASSES = GUSTAV_CLASSES;
constexpr bool BY_CLASS = GUSTAV_BY_CLASS;
constexpr bool COUNTED = GUSTAV_COUNTED;
// The target of parts of a cut row: their slot, their row, or its index among cut rows.
constexpr int SLOT = 0, CUT_ROW = 2;
constexpr int TARGET = GUSTAV_TARGET;
constexpr int WARPS = BLOCK / 32;
static_assert(schedule::LENGTH_BITS == GUSTAV_LENGTH_BITS, "the host sees the same fields");

#include "gustav_cuda::schedule::tiles::Arguments"

constexpr u32 UNSORTED = 1u << 31;

// The index of a segment's class: lengths up to MOST in CLASSES of one width.
__device__ __forceinline__ u32 class_of(u32 tile, u64 length) {
    return tile * CLASSES + (u32)(MOST - length) * CLASSES / (MOST + 1);
}

// Calls `segment(first, last, tile, number)` in one lane for every segment of a row, and returns
// the number of segments in every lane.
template <class F>
__device__ __forceinline__ u32 each_segment(const Arguments &args, u64 first, u64 last, bool sorted,
                                            F segment) {
    const int lane = threadIdx.x % 32;
    const auto tile_at = [&](u64 k) {
        return sorted || BY_CLASS ? (u32)(args.indices[k] / args.tile) : args.tiles - 1;
    };
    if (first == last) {
        if (lane == 0) segment(first, last, 0, 0);
        return 1;
    }
    u32 before = 0;      // segments begun so far
    u64 open = first;    // where the last of them begins
    for (u64 batch = first; batch < last; batch += 32) {
        const u64 k = batch + lane;
        bool begins = false;
        if (k > first && k < last)
            begins = (k - first) % MOST == 0 || tile_at(k) != tile_at(k - 1);
        const u32 starts = __ballot_sync(~0u, begins);
        const u32 earlier = starts & ((1u << lane) - 1);
        if (begins) {
            const u64 from = earlier ? batch + 31 - __clz(earlier) : open;
            segment(from, k, tile_at(from), before + __popc(earlier));
        }
        before += __popc(starts);
        if (starts) open = batch + 31 - __clz(starts);
    }
    if (lane == 0) segment(open, last, tile_at(open), before);
    return before + 1;
}

__device__ __forceinline__ bool is_sorted(const Arguments &args, u64 first, u64 last) {
    bool sorted = true;
    for (u64 k = first + 1 + threadIdx.x % 32; k < last; k += 32)
        sorted &= args.indices[k - 1] <= args.indices[k];
    return __all_sync(~0u, sorted);
}

template <class Work>
__device__ __forceinline__ void each_row(const Arguments &args, Work work) {
    const u64 window = (u64)blockIdx.x * WINDOW;
    for (u64 row = window + threadIdx.x / 32; row < window + WINDOW && row < args.rows; row += WARPS)
        work(row, (u64)args.offsets[row], (u64)args.offsets[row + 1]);
}

extern "C" __global__ void __launch_bounds__(BLOCK) tile_count(const Arguments args) {
    __shared__ u32 counts[COUNTED ? MOST_BINS : 1];
    const u32 bins = args.tiles * CLASSES;
    for (u32 p = threadIdx.x; COUNTED && p < bins; p += BLOCK) counts[p] = 0;
    __syncthreads();
    each_row(args, [&](u64 row, u64 first, u64 last) {
        const bool sorted = is_sorted(args, first, last);
        const u32 count =
            each_segment(args, first, last, sorted, [&](u64 from, u64 to, u32 tile, u32) {
                const u32 bin = class_of(tile, to - from);
                if constexpr (COUNTED)
                    atomicAdd(counts + bin, 1);
                else
                    atomicAdd(args.cursors + 2 + bin, 1);
            });
        if (threadIdx.x % 32 != 0) return;
        args.segments[row] = count | (sorted ? 0 : UNSORTED);
        if (count > 1) atomicAdd(args.cursors, count), atomicAdd(args.cursors + 1, 1);
    });
    __syncthreads();
    for (u32 p = threadIdx.x; COUNTED && p < bins; p += BLOCK)
        if (counts[p] != 0) atomicAdd(args.cursors + 2 + p, counts[p]);
}

extern "C" __global__ void __launch_bounds__(BLOCK) tile_list(const Arguments args) {
    __shared__ u32 counts[COUNTED ? MOST_BINS : 1];
    __shared__ u64 begins[COUNTED ? MOST_BINS : 1];
    const u32 bins = args.tiles * CLASSES;
    const auto sorted = [&](u64 row) { return (args.segments[row] & UNSORTED) == 0; };
    if constexpr (COUNTED) {
        for (u32 p = threadIdx.x; p < bins; p += BLOCK) counts[p] = 0;
        __syncthreads();
        each_row(args, [&](u64 row, u64 first, u64 last) {
            each_segment(args, first, last, sorted(row), [&](u64 from, u64 to, u32 tile, u32) {
                atomicAdd(counts + class_of(tile, to - from), 1);
            });
        });
        __syncthreads();
        for (u32 p = threadIdx.x; p < bins; p += BLOCK) {
            if (counts[p] != 0) begins[p] = atomicAdd(args.cursors + 2 + p, counts[p]);
            counts[p] = 0;
        }
        __syncthreads();
    }
    each_row(args, [&](u64 row, u64 first, u64 last) {
        const u32 count = args.segments[row] & ~UNSORTED;
        u64 slot = 0, index = 0;
        if (count > 1 && threadIdx.x % 32 == 0) {
            slot = atomicAdd(args.cursors, count);
            index = atomicAdd(args.cursors + 1, 1);
            args.cut_rows[index] = row;
        }
        slot = __shfl_sync(~0u, slot, 0);
        index = __shfl_sync(~0u, index, 0);
        each_segment(args, first, last, sorted(row), [&](u64 from, u64 to, u32 tile, u32 number) {
            const u32 p = class_of(tile, to - from);
            u64 bin;
            if constexpr (COUNTED)
                bin = begins[p] + atomicAdd(counts + p, 1);
            else
                bin = atomicAdd(args.cursors + 2 + p, 1);
            const bool cut = count > 1;
            if (cut && TARGET == SLOT) schedule::put_cut_row(args.slot_rows, slot + number, {row, (u32)slot, count});
            const u64 part = TARGET == SLOT ? slot + number : TARGET == CUT_ROW ? index : row;
            schedule::put(args.list, bin, from, to - from, cut, cut ? part : row);
        });
    });
}
