// segmented of softmax: weights = exp(s - m) / sum of exp(s - m) over the nonzeros of every row, and the gradient
// weights (g - <weights, g>). Ours.
//
// Idea: a segment (a row, or at most S nonzeros of a long one) is read twice by a group of lanes, the second time
// from L1: once to reduce it, once to write it. Of cut rows, `parts` reduces the parts ahead; the last to arrive merges
// them in their order, so that the bits are the same in every run.
//
//   grid.x -> segments, BLOCK / LANES a CTA     grid.y -> heads
//
// Scores are NaN or +infinity: the row is NaN. All are -infinity: zeros, and a gradient of zero.
//
// Invariants: the result overlaps nothing.
#include "common/exponential.cuh"
#include "common/warp.cuh"
#include "ptx/dependents.cuh"
#include "schedule/arrival.cuh"
#include "schedule/segments.cuh"
#include "tile/pack.cuh"

using Value = GUSTAV_VALUE;
using Position = GUSTAV_POSITION;  // any position in the pattern
using Accum = typename Accumulator<Value>::Type;
using Segment = schedule::Segment<Position>;

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int LANES = GUSTAV_LANES;
constexpr bool GRADIENT = GUSTAV_GRADIENT;

#include "gustav_cuda::softmax::segmented::Arguments"

// What a row is reduced to: the largest score and the sum of exponentials; <weights, g> as `total` (GRADIENT).
struct alignas(2 * sizeof(Accum)) State {
    Accum largest, total;
};

__device__ __forceinline__ State empty() { return {Limits<Accum>::lowest(), 0}; }

__device__ __forceinline__ State merged(const State &a, const State &b) {
    if constexpr (GRADIENT) return {0, plus(a.total, b.total)};
    const Accum largest = larger(a.largest, b.largest), base = base_of(largest);
    return {largest, times_plus(a.total, exponential(a.largest - base), b.total * exponential(b.largest - base))};
}

// The states of the lanes of a group, in every lane.
__device__ __forceinline__ State over_lanes(State mine) {
#pragma unroll
    for (int step = 1; step < LANES; step *= 2) {
        const State other = {__shfl_xor_sync(~0u, mine.largest, step), __shfl_xor_sync(~0u, mine.total, step)};
        // The lower lane's first, in both.
        mine = threadIdx.x & step ? merged(other, mine) : merged(mine, other);
    }
    return mine;
}

__device__ __forceinline__ u64 place(const Arguments &args, u64 head, Position p) {
    return head * args.head + (u64)p * args.nonzero;
}

__device__ __forceinline__ State reduced(const Arguments &args, const Segment &s, u64 head) {
    State mine = empty();
    for (Position p = s.first + threadIdx.x % LANES; p < s.last; p += LANES) {
        const u64 at = place(args, head, p);
        const Accum value = widen(args.values[at]);
        if constexpr (GRADIENT)
            mine.total = times_plus(value, widen(args.of_weights[at]), mine.total);
        else
            mine = merged(mine, {value, value == Limits<Accum>::lowest() ? Accum(0) : Accum(1)});
    }
    return over_lanes(mine);
}

__device__ __forceinline__ Segment mine(const Arguments &args, u64 count) {
    const u64 i = (u64)blockIdx.x * (BLOCK / LANES) + threadIdx.x / LANES;
    return i < count ? schedule::segment<Position>(args.segments, i) : schedule::no_segment<Position>();
}

// Reduces the parts of cut rows.
extern "C" __global__ void __launch_bounds__(BLOCK) parts(const __grid_constant__ Arguments args) {
    ptx::wait_for_prerequisites();
    const Segment s = mine(args, args.slots);
    const int first_lane = threadIdx.x % 32 / LANES * LANES, lane = threadIdx.x % LANES;
    const u32 lanes = warp::lanes_of_group<LANES>();
    for (u64 head = blockIdx.y; head < args.heads; head += gridDim.y) {
        const State part = reduced(args, s, head);
        bool last = false;
        State state = empty();
        State *states = reinterpret_cast<State *>(args.states) + head * args.slots;
        schedule::CutRow cut = {};
        if (!s.none()) {
            cut = schedule::cut_row(args.slot_rows, s.target());
            if (lane == 0) states[s.target()] = part;
            last = arrival::is_last(args.arrivals + head * args.slots + cut.first, cut.count, lanes, first_lane);
            for (u32 c = lane; last && c < cut.count; c += LANES) {
                const auto child = tile::load_shared_by_all<Accum, 2>(
                    reinterpret_cast<const Accum *>(states + cut.first + c));
                state = merged(state, {child.at[0], child.at[1]});
            }
        }
        state = over_lanes(state);
        // The first slot takes the row's state: all parts are stored, and are read no more.
        if (last && lane == 0) states[cut.first] = state;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) softmax(const __grid_constant__ Arguments args) {
    ptx::wait_for_prerequisites();
    const Segment s = mine(args, args.count);
    for (u64 head = blockIdx.y; head < args.heads; head += gridDim.y) {
        // Groups of a warp reduce together: a part of a cut row takes part in it with nothing.
        State state = reduced(args, s.cut() ? schedule::no_segment<Position>() : s, head);
        if (s.none()) continue;
        if (s.cut()) {
            const u64 first = schedule::cut_row(args.slot_rows, s.target()).first;
            state = reinterpret_cast<const State *>(args.states)[head * args.slots + first];
        }
        const Accum base = base_of(state.largest), factor = state.total == 0 ? Accum(0) : Accum(1) / state.total;
        for (Position p = s.first + threadIdx.x % LANES; p < s.last; p += LANES) {
            const u64 at = place(args, head, p);
            const Accum value = widen(args.values[at]);
            Accum result;
            if constexpr (GRADIENT)
                result = times(value, widen(args.of_weights[at]) - state.total);
            else
                result = times(exponential(value - base), factor);
            args.result[at] = Narrow<Value>::from(result);
        }
    }
}
