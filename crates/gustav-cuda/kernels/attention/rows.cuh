// Rows of attention and what becomes of them, by a group of lanes: what its schedules have in common.
//
//   lane l of a group: columns (k LANES + l) VECTOR + 0..VECTOR-1 of a row
//
// A part of a cut row puts its sums aside, with the largest score and the sum of exponentials; the last to arrive
// merges the parts in their order: the same bits in every run.
#pragma once
#include "common/exponential.cuh"
#include "common/warp.cuh"
#include "schedule/arrival.cuh"
#include "schedule/fix_up.cuh"
#include "schedule/segments.cuh"
#include "tile/pack.cuh"
#include "tile/span.cuh"

using Value = GUSTAV_VALUE;
using Index = GUSTAV_INDEX;
using Offset = GUSTAV_OFFSET;
using Position = GUSTAV_POSITION;  // any position in the pattern
using Accum = typename Accumulator<Value>::Type;

enum Pass { FORWARD, ROWS, COLUMNS };
constexpr Pass PASS = GUSTAV_PASS;
constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int VECTOR = GUSTAV_VECTOR;
constexpr int LANES = GUSTAV_LANES;
constexpr int LEFT = GUSTAV_LEFT;    // vectors of a lane in a left row
constexpr int RIGHT = GUSTAV_RIGHT;  // in a right row
constexpr int RESIDENT = GUSTAV_RESIDENT;
constexpr bool BIASED = GUSTAV_BIASED;

// What a pass does.
constexpr bool SUMS_LEFT = PASS != FORWARD, SUMS_RIGHT = PASS != ROWS;

#include "gustav_cuda::attention::segmented::Arguments"

using Segment = schedule::Segment<Position>;
using Part = tile::Pack<Value, VECTOR>;
// p and ds of a nonzero in a head.
using Weights = tile::Pack<Accum, 2>;
template <int TILES>
using Row = Part[TILES];
template <int TILES>
using Sums = Accum[TILES][VECTOR];
template <int TILES>
using Span = tile::Span<VECTOR, LANES, TILES, 0>;

__device__ __forceinline__ Accum none() { return Limits<Accum>::lowest(); }

template <int TILES>
__device__ __forceinline__ void load_row(const Value *row, const Span<TILES> &span, Row<TILES> &to) {
#pragma unroll
    for (int k = 0; k < TILES; ++k)
        if (span.has(k)) to[k] = tile::load<Value, VECTOR>(row + span.at(k));
}

template <int TILES>
__device__ __forceinline__ void scale(Sums<TILES> &sum, Accum factor) {
#pragma unroll
    for (int k = 0; k < TILES; ++k)
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) sum[k][v] = times(factor, sum[k][v]);
}

template <int TILES>
__device__ __forceinline__ void store_row(Value *row, const Span<TILES> &span, const Sums<TILES> &sum) {
#pragma unroll
    for (int k = 0; k < TILES; ++k) {
        if (!span.has(k)) continue;
        Part pack;
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) pack.at[v] = Narrow<Value>::from(sum[k][v]);
        tile::store(row + span.at(k), pack);
    }
}

// The rows of a segment in one head, and what it sums.
struct Group {
    Span<LEFT> left;
    Span<RIGHT> right;
    Sums<LEFT> left_sum;
    Sums<RIGHT> right_sum;
    Accum largest;  // of the scores so far (FORWARD)
    Accum total;    // of a lane's weights (FORWARD)

    __device__ __forceinline__ Group(const Arguments &args)
        : left(args.depth, threadIdx.x % LANES * VECTOR), right(args.value_depth, threadIdx.x % LANES * VECTOR),
          largest(none()), total(0) {
        if constexpr (SUMS_LEFT) clear(left_sum);
        if constexpr (SUMS_RIGHT) clear(right_sum);
    }
    template <int TILES>
    static __device__ __forceinline__ void clear(Sums<TILES> &sum) {
#pragma unroll
        for (int k = 0; k < TILES; ++k)
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) sum[k][v] = 0;
    }
};

// Stores the sums of a whole row.
__device__ __forceinline__ void finish(const Arguments &args, u64 row, u64 head, Group &group, Accum total) {
    if constexpr (PASS == FORWARD) {
        if (total == 0)
            Group::clear(group.right_sum);
        else
            scale(group.right_sum, Accum(1) / total);
        if (args.lse && threadIdx.x % LANES == 0)
            args.lse[head * args.rows + row] = total == 0 ? none() : group.largest + logarithm(total);
    }
    if constexpr (SUMS_LEFT) {
        scale(group.left_sum, from_bits<Accum>(args.scale));
        store_row(args.left_result.address + head * args.left_result.head + row * args.left_result.row, group.left,
                  group.left_sum);
    }
    if constexpr (SUMS_RIGHT)
        store_row(args.right_result.address + head * args.right_result.head + row * args.right_result.row, group.right,
                  group.right_sum);
}

// Sums that are put aside: `left_sum`, then `right_sum`, as far as the pass has them.
__device__ __forceinline__ u64 width(const Arguments &args) {
    return (SUMS_LEFT ? args.depth : 0) + (SUMS_RIGHT ? args.value_depth : 0);
}

using Aside = tile::Pack<Accum, VECTOR>;

template <int TILES>
__device__ __forceinline__ void put_aside(Accum *to, const Span<TILES> &span, const Sums<TILES> &sum) {
#pragma unroll
    for (int k = 0; k < TILES; ++k) {
        if (!span.has(k)) continue;
        Aside pack;
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) pack.at[v] = sum[k][v];
        *reinterpret_cast<Aside *>(to + span.at(k)) = pack;
    }
}

template <int TILES>
__device__ __forceinline__ void add_aside(const Accum *from, const Span<TILES> &span, Accum weight, Sums<TILES> &sum) {
#pragma unroll
    for (int k = 0; k < TILES; ++k) {
        if (!span.has(k)) continue;
        const Aside part = tile::load_shared_by_all<Accum, VECTOR>(from + span.at(k));
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) sum[k][v] = times_plus(weight, part.at[v], sum[k][v]);
    }
}

// Brings a part of a cut row, and merges what it is the last part of.
__device__ __forceinline__ void merge(const Arguments &args, const Segment &s, u64 head, Group &group, Accum total) {
    const schedule::CutRow cut = schedule::cut_row(args.slot_rows, s.target());
    const u64 row = cut.row, first = cut.first, wide = width(args), slots = head * args.slots;
    const u32 count = cut.count;
    const int first_lane = threadIdx.x % 32 / LANES * LANES;
    const u32 lanes = warp::lanes_of_group<LANES>();
    const u32 part = (u32)(s.target() - first);
#pragma unroll 1
    for (int level = 0;; ++level) {
        const fix_up::Node node(count, part, level);
        const u64 slot = slots + first + ((u64)(part >> node.shift) << node.shift);
        Accum *to = args.partials + slot * wide;
        if constexpr (SUMS_LEFT) put_aside(to, group.left, group.left_sum);
        if constexpr (SUMS_RIGHT) put_aside(to + (SUMS_LEFT ? args.depth : 0), group.right, group.right_sum);
        if constexpr (PASS == FORWARD) {
            if (threadIdx.x % 32 == first_lane) {
                args.states[2 * slot] = group.largest;
                args.states[2 * slot + 1] = total;
            }
        }
        const auto child = [&](int c) { return slots + first + node.part(c); };
        u32 *const arrivals = args.arrivals + child(0) * fix_up::LEVELS + level;
        if (!arrival::is_last(arrivals, node.children, lanes, first_lane)) return;
        group = Group(args);
        if constexpr (PASS == FORWARD) {
            for (int c = 0; c < node.children; ++c) {
                u32 word[sizeof(Accum) / 4];
                ptx::load_cached(args.states + 2 * child(c), word);
                Accum largest;
                memcpy(&largest, word, sizeof(Accum));
                group.largest = larger(group.largest, largest);
            }
            total = 0;
        }
#pragma unroll 1
        for (int c = 0; c < node.children; ++c) {
            Accum weight = 1;
            if constexpr (PASS == FORWARD) {
                const auto state = tile::load_shared_by_all<Accum, 2>(args.states + 2 * child(c));
                weight = exponential(state.at[0] - base_of(group.largest));
                total = times_plus(weight, state.at[1], total);
            }
            const Accum *from = args.partials + child(c) * wide;
            if constexpr (SUMS_LEFT) add_aside(from, group.left, weight, group.left_sum);
            if constexpr (SUMS_RIGHT)
                add_aside(from + (SUMS_LEFT ? args.depth : 0), group.right, weight, group.right_sum);
        }
        if (node.is_root) break;
        // The states of the children were read by all lanes.
        __syncwarp(lanes);
    }
    finish(args, row, head, group, total);
}

