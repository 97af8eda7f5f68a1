// even-shares: y = alpha A x + beta y, A in CSR. Ours.
//
// Idea: every CTA takes an equal share of rows' starts and nonzeros (schedule/even_shares.cuh),
// whatever the rows are. Its products are made one a thread, coalesced, and left in shared memory;
// then every thread sums ITEMS neighbours there, so that a hub costs no more than the same nonzeros in
// short rows.
//
//   products   a a a b b b b b b c e e e e e f f f f g ...   nonzero k THREADS + t by thread t, round k
//   last       . . ^ . . . . . ^ ^ . . . . ^ . . . ^ . ...   a bit each, set by the rows' owners
//   sums       |   thread 0    |   thread 1    |   ...       ITEMS each; at ^ the sum replaces the product
//   y                                                        rows one a thread, from the places ^
//
// What is open at a thread's last nonzero is carried on by a scan over the CTA that begins anew at every
// thread with a ^. Of a row in several shares, each puts its sum aside, in the slots 2 share (the row
// began before) and 2 share + 1; the last to come adds them, in their order.
//
// Where shares begin is searched by `even_shares_boundaries` once for a pattern, or in the launch itself.
// Invariant: `arrivals` is zero between launches; launches of one plan do not overlap.
#include "common/epilogue.cuh"
#include "schedule/even_shares.cuh"

using Value = GUSTAV_VALUE;
using Index = GUSTAV_INDEX;
using Offset = GUSTAV_OFFSET;
using Accum = Accumulator<Value>::Type;
using Ring = GUSTAV_SEMIRING<Accum>;
using Position = GUSTAV_POSITION;  // u32 when A has fewer than 2^31 rows and nonzeros

constexpr int THREADS = GUSTAV_THREADS;
constexpr int ITEMS = GUSTAV_ITEMS;
constexpr bool SEARCH = GUSTAV_SEARCH;  // whether shares look for their own beginning
constexpr int WARP = 32;
constexpr int WARPS = THREADS / WARP;
constexpr u32 ALL = 0xffffffffu;
constexpr Position WORK = THREADS * ITEMS;
// Neighbours that move between registers and shared memory at once, and how many of them a thread has.
constexpr int WIDE = 16 / sizeof(Accum);
constexpr int UNITS = ITEMS / WIDE;
static_assert(THREADS % WARP == 0, "whole warps");
static_assert(ITEMS % WIDE == 0 && UNITS <= 8 && (UNITS & (UNITS - 1)) == 0, "whole units");
static_assert(ITEMS <= WARP && (ITEMS & (ITEMS - 1)) == 0, "a thread's bits lie in one word");

struct Arguments {
    const Offset *offsets;
    const Index *indices;
    const Value *values;
    const Value *x;
    Value *y;
    Position *boundaries;  // one more than shares
    Accum *partials;       // two a share
    u32 *arrivals;         // parts of a row that have come, at its first share
    u64 rows;
    u64 nonzeros;
    u64 shares;
    u64 alpha;
    u64 beta;
};

// Where a share begins.
struct Boundary {
    Position row;  // of its first item
    bool begun;    // whether that row has items before

    __device__ __forceinline__ Position word() const { return 2 * row + (begun ? 1 : 0); }
    static __device__ __forceinline__ Boundary of(Position word) {
        return {word / 2, (word & 1) != 0};
    }
    // The first nonzero at or after item `item`, with which the share begins.
    __device__ __forceinline__ Position nonzero(Position item) const {
        return item - row - (begun ? 1 : 0);
    }
};

// The beginning of share `share`, by a warp.
__device__ __forceinline__ Boundary boundary(const Arguments &args, u64 share, int lane) {
    const Position rows = args.rows, nonzeros = args.nonzeros;
    if (share >= args.shares) return {rows, false};
    const Position item = (Position)share * WORK;
    const Position row = schedule::row_of_item<WARP, Position>(args.offsets, rows, nonzeros, item,
                                                               lane, ALL);
    return {row, (Position)__ldg(args.offsets + row) + row < item};
}

extern "C" __global__ void __launch_bounds__(THREADS)
    even_shares_boundaries(const __grid_constant__ Arguments args) {
    const u64 share = (u64)blockIdx.x * WARPS + threadIdx.x / WARP;
    if (share > args.shares) return;
    const int lane = threadIdx.x % WARP;
    const Boundary found = boundary(args, share, lane);
    if (lane == 0) args.boundaries[share] = found.word();
}

__device__ __forceinline__ void write_row(const Arguments &args, u64 row, Accum sum) {
    const Accum total[1] = {sum};
    finish<Ring>(total, from_bits<Accum>(args.alpha), from_bits<Accum>(args.beta), args.y + row);
}

// `sum` is one part of a row that lies in several shares; of their CTAs, the last adds the parts, by a
// warp.
__device__ __forceinline__ void meet(const Arguments &args, u64 share, u64 row, Accum sum,
                                     int lane) {
    const u64 begin = ((u64)__ldg(args.offsets + row) + row) / WORK;
    const u64 end = ((u64)__ldg(args.offsets + row + 1) + row) / WORK;
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
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        sum = Ring::add(sum, __shfl_xor_sync(ALL, sum, distance));
    if (lane == 0) write_row(args, row, sum);
}

// The place of a share's nonzero `i` in shared memory: threads that read their neighbours, a unit
// each, meet no bank twice.
__device__ __forceinline__ u32 place(u32 i) {
    const u32 unit = i / WIDE;
    return (unit ^ (unit >> 3 & (UNITS - 1))) * WIDE + i % WIDE;
}

extern "C" __global__ void __launch_bounds__(THREADS, GUSTAV_RESIDENT / THREADS)
    even_shares(const __grid_constant__ Arguments args) {
    __shared__ alignas(16) Accum sums[WORK];
    __shared__ u32 ends[WORK / 32];
    __shared__ Accum open[WARPS];
    __shared__ bool closes[WARPS];
    __shared__ Position found[2];
    const u64 share = blockIdx.x;
    const u32 thread = threadIdx.x;
    const int lane = thread % WARP, warp = thread / WARP;
    if (thread < WORK / 32) ends[thread] = 0;
    if constexpr (SEARCH)
        for (int side = warp; side < 2; side += WARPS) {
            const Position word = boundary(args, share + side, lane).word();
            if (lane == 0) found[side] = word;
        }
    __syncthreads();
    const Boundary from = Boundary::of(SEARCH ? found[0] : __ldg(args.boundaries + share));
    const Boundary to = Boundary::of(SEARCH ? found[1] : __ldg(args.boundaries + share + 1));
    const Position item = (Position)share * WORK;
    const Position all = (Position)args.rows + (Position)args.nonzeros;
    const Position first = from.nonzero(item);
    const Position last = to.nonzero(share + 1 == args.shares ? all : item + WORK);
    const Position after = to.begun ? to.row + 1 : to.row;  // one past the last row
    const u32 count = (u32)(last - first);

    // Products, and where rows end.
    {
        Index column[ITEMS];
        tile::Pack<Value, 1> a[ITEMS], x[ITEMS];
#pragma unroll
        for (int k = 0; k < ITEMS; ++k) {
            const u32 at = k * THREADS + thread;
            if (at >= count) continue;
            column[k] = __ldg(args.indices + first + at);
            a[k] = tile::load<Value, 1>(args.values + first + at);
        }
        Position row = from.row + thread, begin = 0, end = 0;
        if (row < after) begin = __ldg(args.offsets + row), end = __ldg(args.offsets + row + 1);
#pragma unroll
        for (int k = 0; k < ITEMS; ++k)
            if (k * THREADS + thread < count)
                x[k] = tile::load<Value, 1>(args.x + (u64)column[k]);
        while (row < after) {
            const u32 at = (u32)(end - 1 - first);
            if (begin < end && end <= last) atomicOr(&ends[at / 32], 1u << at % 32);
            row += THREADS;
            if (row < after) begin = __ldg(args.offsets + row), end = __ldg(args.offsets + row + 1);
        }
#pragma unroll
        for (int k = 0; k < ITEMS; ++k) {
            if (k * THREADS >= count) break;
            const bool live = k * THREADS + thread < count;
            sums[place(k * THREADS + thread)] =
                live ? Ring::mul_add(widen(a[k].at[0]), widen(x[k].at[0]), Ring::zero())
                     : Ring::zero();
        }
    }
    __syncthreads();

    // The sums of rows that end in my run, but for what is carried into the first of them.
    const u32 run = thread * ITEMS;
    const u32 mine = (ends[run / 32] >> run % 32) & (ALL >> (32 - ITEMS));
    const int first_end = __ffs(mine) - 1;
    Accum sum = Ring::zero(), head = Ring::zero();
    if (run < count) {
        tile::Pack<Accum, ITEMS> run_of;
#pragma unroll
        for (int q = 0; q < UNITS; ++q)
            reinterpret_cast<tile::Pack<Accum, WIDE> *>(&run_of)[q] =
                *reinterpret_cast<const tile::Pack<Accum, WIDE> *>(&sums[place(run + q * WIDE)]);
#pragma unroll
        for (int j = 0; j < ITEMS; ++j) {
            sum = Ring::add(sum, run_of.at[j]);
            if (mine >> j & 1) {
                if (j == first_end)
                    head = sum;
                else
                    sums[place(run + j)] = sum;
                sum = Ring::zero();
            }
        }
    }

    // What runs before mine carry into it.
    const u32 closing = __ballot_sync(ALL, mine != 0);
    const u32 before = closing & (ALL >> (WARP - 1 - lane));
    const int length = before == 0 ? lane : lane - (31 - __clz(before));
#pragma unroll
    for (int distance = 1; distance < WARP; distance *= 2) {
        const Accum other = __shfl_up_sync(ALL, sum, distance);
        if (length >= distance) sum = Ring::add(other, sum);
    }
    Accum carry = __shfl_up_sync(ALL, sum, 1);
    if (lane == 0) carry = Ring::zero();
    if (lane == WARP - 1) open[warp] = sum, closes[warp] = closing != 0;
    __syncthreads();
    if (mine != 0) {
        if ((closing & ((1u << lane) - 1)) == 0) {
            Accum warps = Ring::zero();
            for (int w = 0; w < warp; ++w) warps = closes[w] ? open[w] : Ring::add(warps, open[w]);
            carry = Ring::add(warps, carry);
        }
        sums[place(run + first_end)] = Ring::add(carry, head);
    }
    __syncthreads();

    const auto of = [&](Position row) {
        const Position begin = __ldg(args.offsets + row), end = __ldg(args.offsets + row + 1);
        return begin < end ? sums[place((u32)(end - 1 - first))] : Ring::zero();
    };
    // Rows that lie here whole.
    const Position whole = to.begun ? to.row : after;
    for (Position row = from.row + (from.begun ? 1 : 0) + thread; row < whole; row += THREADS)
        write_row(args, row, of(row));
    if (from.begun && from.row < whole && warp == 0) meet(args, share, from.row, of(from.row), lane);
    if (to.begun && warp == WARPS - 1) {
        Accum tail = Ring::zero();
        for (int w = 0; w < WARPS; ++w) tail = closes[w] ? open[w] : Ring::add(tail, open[w]);
        meet(args, share, to.row, tail, lane);
    }
}
