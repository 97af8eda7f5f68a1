// even-shares: y = alpha A x + beta y, A in CSR. Ours.
//
// Idea: nothing is prepared for a pattern. Every warp takes an equal share of rows' starts and
// nonzeros (schedule/even_shares.cuh), finds its rows by a search, and goes through them 32 at a time,
// a window: lane l owns row l of it. The nonzeros of a window are taken 32 at a time, one a lane,
// whatever rows they belong to: a scan that begins anew at every row's first nonzero sums them, and
// each owner fetches the sum at its row's last nonzero from the lane that has it.
//
//   window      rows r .. r + 31, a lane each
//   nonzeros    a a a b b b b b b c e e e e | e f f f g ...     32 a batch, BATCHES in flight
//   scan        > > ^ > > > > > ^ ^ > > > > | ^ > > ^ > ...     ^ fetched by the row's owner
//
// What a batch leaves open is carried into the next one; a batch inside a row is not even scanned, its
// lanes sum for themselves. Of a row in several shares, each puts its sum aside, in the slots 2 share
// (the row began before) and 2 share + 1; the last to come adds them, in their order.
//
// Invariant: `arrivals` is zero between launches; launches of one plan do not overlap.
#include "common/epilogue.cuh"
#include "ptx/warp.cuh"
#include "schedule/even_shares.cuh"

using Value = GUSTAV_VALUE;
using Index = GUSTAV_INDEX;
using Offset = GUSTAV_OFFSET;
using Accum = Accumulator<Value>::Type;
using Ring = GUSTAV_SEMIRING<Accum>;
using Position = GUSTAV_POSITION;  // u32 when A has fewer than 2^31 rows and nonzeros

constexpr int THREADS = GUSTAV_THREADS;
constexpr int BATCHES = GUSTAV_BATCHES;
constexpr int WORK_BITS = GUSTAV_WORK_BITS;
constexpr int WARP = 32;
constexpr u32 ALL = 0xffffffffu;
static_assert(THREADS % WARP == 0, "whole warps");

struct Arguments {
    const Offset *offsets;
    const Index *indices;
    const Value *values;
    const Value *x;
    Value *y;
    Accum *partials;  // two a share
    u32 *arrivals;    // parts of a row that have come, at its first share
    u64 rows;
    u64 nonzeros;
    u64 shares;
    u64 alpha;
    u64 beta;
};

__device__ __forceinline__ void write_row(const Arguments &args, u64 row, Accum sum) {
    const Accum total[1] = {sum};
    finish<Ring>(total, from_bits<Accum>(args.alpha), from_bits<Accum>(args.beta), args.y + row);
}

// The sum over all lanes, in each of them.
__device__ __forceinline__ Accum over_warp(Accum sum) {
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        sum = Ring::add(sum, __shfl_xor_sync(ALL, sum, distance));
    return sum;
}

// `sum` is one part of a row that lies in several shares; of their warps, the last adds the parts.
__device__ __forceinline__ void meet(const Arguments &args, u64 share, u64 row, Accum sum,
                                     int lane) {
    const u64 begin = ((u64)__ldg(args.offsets + row) + row) >> WORK_BITS;
    const u64 end = ((u64)__ldg(args.offsets + row + 1) + row) >> WORK_BITS;
    bool last = false;
    if (lane == 0) {
        args.partials[2 * share + (share == begin ? 1 : 0)] = sum;
        const u32 others = (u32)(end - begin);
        last = ptx::arrive(args.arrivals + begin, others) == others;
    }
    if (!__shfl_sync(ALL, (int)last, 0)) return;
    sum = Ring::zero();
    for (u64 i = begin + lane; i <= end; i += WARP)
        sum = Ring::add(sum, tile::load_shared_by_all<Accum, 1>(args.partials + 2 * i +
                                                                (i == begin ? 1 : 0))
                                 .at[0]);
    sum = over_warp(sum);
    if (lane == 0) write_row(args, row, sum);
}

// The sum of the nonzeros of my row, `begin` to `end`; the warp has those of its lanes' rows, which
// are neighbours.
__device__ __forceinline__ Accum sum_window(const Arguments &args, Position begin, Position end,
                                            int lane) {
    const bool filled = begin < end;
    const Position start = __shfl_sync(ALL, begin, 0), stop = __shfl_sync(ALL, end, WARP - 1);
    Accum result = Ring::zero();
    Accum carry = Ring::zero();  // of the row that is open between batches
    Accum alone = Ring::zero();  // what my lane has summed of it since
    bool summed_alone = false;
    for (Position chunk = start; chunk < stop; chunk += BATCHES * WARP) {
        tile::Pack<Value, 1> a[BATCHES], x[BATCHES];
#pragma unroll
        for (int k = 0; k < BATCHES; ++k) {
            const Position at = chunk + k * WARP + lane;
            if (at >= stop) continue;
            a[k] = tile::load<Value, 1>(args.values + at);
            x[k] = tile::load<Value, 1>(args.x + (u64)__ldg(args.indices + at));
        }
#pragma unroll
        for (int k = 0; k < BATCHES; ++k) {
            const Position batch = chunk + k * WARP;
            if (batch >= stop) break;
            const bool live = batch + lane < stop;
            // Where in the batch my row begins and has its last nonzero.
            const u32 first = (u32)(begin - batch), last = (u32)(end - 1 - batch);
            const bool closes = filled && last < WARP;
            const u32 starts = ptx::or_over_warp(filled && first < WARP ? 1u << first : 0u);
            if (starts == 0 && __ballot_sync(ALL, closes) == 0) {
                if (live) alone = Ring::mul_add(widen(a[k].at[0]), widen(x[k].at[0]), alone);
                summed_alone = true;
                continue;
            }
            if (summed_alone) {
                carry = Ring::add(carry, over_warp(alone));
                alone = Ring::zero();
                summed_alone = false;
            }
            Accum sum = Ring::zero();
            if (live) sum = Ring::mul_add(widen(a[k].at[0]), widen(x[k].at[0]), sum);
            const u32 before = starts & (ALL >> (WARP - 1 - lane));
            const int length = before == 0 ? lane : lane - (31 - __clz(before));
#pragma unroll
            for (int distance = 1; distance < WARP; distance *= 2) {
                const Accum other = __shfl_up_sync(ALL, sum, distance);
                if (length >= distance) sum = Ring::add(other, sum);
            }
            if (before == 0) sum = Ring::add(carry, sum);
            const Accum fetched = __shfl_sync(ALL, sum, last % WARP);
            if (closes) result = fetched;
            // Of a row that ends with the batch nothing is left: the next batch begins with a start.
            carry = __shfl_sync(ALL, sum, WARP - 1);
        }
    }
    return result;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    even_shares(const __grid_constant__ Arguments args) {
    const u64 share = (u64)blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP;
    if (share >= args.shares) return;
    const int lane = threadIdx.x % WARP;
    const Position rows = args.rows, nonzeros = args.nonzeros, all = rows + nonzeros;
    const Position from = (Position)share << WORK_BITS;
    const Position to = share + 1 == args.shares ? all : from + ((Position)1 << WORK_BITS);
    // Half of the warp searches the share's first row, the other half its last.
    constexpr int HALF = WARP / 2;
    const Position found = schedule::row_of_item<HALF, Position>(
        args.offsets, rows, nonzeros, lane < HALF ? from : to - 1, lane % HALF,
        lane < HALF ? ALL >> HALF : ALL << HALF);
    const Position first_row = __shfl_sync(ALL, found, 0), last_row = __shfl_sync(ALL, found, HALF);
    const bool begun = (Position)__ldg(args.offsets + first_row) + first_row < from;
    const bool goes_on = (Position)__ldg(args.offsets + last_row + 1) + last_row >= to;
    const Position first = begun ? from - first_row - 1 : (Position)__ldg(args.offsets + first_row);
    const Position last = to - 1 - last_row;

    Accum head = Ring::zero(), tail = Ring::zero();
    for (Position window = first_row; window <= last_row; window += WARP) {
        const Position row = window + lane;
        const bool mine = row <= last_row;
        Position begin = last, end = last;
        if (mine) {
            begin = max((Position)__ldg(args.offsets + row), first);
            end = min((Position)__ldg(args.offsets + row + 1), last);
        }
        const Accum sum = sum_window(args, begin, end, lane);
        const bool whole = !(begun && row == first_row) && !(goes_on && row == last_row);
        if (mine && whole) write_row(args, row, sum);
        if (window == first_row) head = __shfl_sync(ALL, sum, 0);
        tail = __shfl_sync(ALL, sum, (int)(last_row - window) % WARP);
    }
    if (begun) meet(args, share, first_row, head, lane);
    if (goes_on && !(begun && first_row == last_row)) meet(args, share, last_row, tail, lane);
}
