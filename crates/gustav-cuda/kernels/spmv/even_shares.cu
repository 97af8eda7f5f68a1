// even-shares: y = alpha A x + beta y, A in CSR. A kernel of Gustav.
//
// Idea: every CTA takes an equal partition of row starts and nonzeros (schedule/even_shares.cuh),
// and every thread ITEMS consecutive nonzeros of it, so that a long row costs no more than the same
// nonzeros in short rows.
//
//   nonzeros   . a a a b b|b b b b c e|e e e e f f|f f g ...   ITEMS a thread, from an aligned one on
//   last       . . . ^ . .|. . . ^ ^ .|. . . ^ . .|. ^ . ...   a bit each, set by the rows' threads
//   sums       .     ^    |      ^ ^  |      ^    |  ^         stored at ^
//   y                                                          one row a thread, read at ^
//
// The sum of the row open at a thread's last nonzero is carried to later threads by a segmented
// scan over the CTA, with segments that begin at threads with a ^. For a row in two partitions, an
// atomic exchange leaves the sum of the first to finish, which the other adds. For a row in more,
// each writes its sum to slot 2 partition (if the row began before) or 2 partition + 1, and the
// last to arrive adds them. In both cases sums are added in the order of partitions.
//
// Partition boundaries are found by `even_shares_boundaries` once per pattern, or in the launch
// itself. Invariant: between launches, `arrivals` is zero and `exchange` has all bits set; launches
// of one plan do not overlap.
#include "common/epilogue.cuh"
#include "ptx/dependents.cuh"
#include "schedule/arrival.cuh"
#include "schedule/even_shares.cuh"
#include "tile/slices.cuh"

using Value = GUSTAV_VALUE;
using Index = GUSTAV_INDEX;
using Offset = GUSTAV_OFFSET;
using Accum = Accumulator<Value>::Type;
using Ring = GUSTAV_SEMIRING<Accum>;
using Position = GUSTAV_POSITION;  // u32 when A has fewer than 2^31 rows and nonzeros

constexpr int THREADS = GUSTAV_THREADS;
constexpr int ITEMS = GUSTAV_ITEMS;
constexpr bool SEARCH = GUSTAV_SEARCH;  // whether CTAs search for their own boundaries
constexpr bool WIDE_A = GUSTAV_WIDE_A;  // arrays of A begin at multiples of 16 bytes
constexpr int WARP = 32;
constexpr int WARPS = THREADS / WARP;
constexpr u32 ALL = 0xffffffffu;
// Consecutive nonzeros of A in one aligned load.
constexpr int CHUNK = 4;
constexpr int CHUNKS = ITEMS / CHUNK;
constexpr int CAPACITY = THREADS * ITEMS;
// Items of a partition: few enough that its nonzeros fit, wherever the first one is in its chunk.
constexpr Position WORK = CAPACITY - CHUNK;
static_assert(THREADS % WARP == 0, "whole warps");
static_assert(ITEMS % CHUNK == 0 && ITEMS <= WARP && (ITEMS & (ITEMS - 1)) == 0,
              "whole chunks, and a thread's bits are in one word");

#include "gustav_cuda::spmv::even_shares::Arguments"

// Where a partition begins.
struct Boundary {
    Position row;  // of its first item
    bool begun;    // whether that row has earlier items

    __device__ __forceinline__ Position word() const { return 2 * row + (begun ? 1 : 0); }
    static __device__ __forceinline__ Boundary of(Position word) {
        return {word / 2, (word & 1) != 0};
    }
    // The first nonzero at or after `item`, the first item of the partition.
    __device__ __forceinline__ Position nonzero(Position item) const {
        return item - row - (begun ? 1 : 0);
    }
};

// The beginning of partition `partition`, by a warp.
__device__ __forceinline__ Boundary boundary(const Arguments &args, u64 partition, int lane) {
    const Position rows = args.rows, nonzeros = args.nonzeros;
    if (partition >= args.partitions) return {rows, false};
    const Position item = (Position)partition * WORK;
    const Position row = schedule::row_of_item<WARP, Position>(args.offsets, rows, nonzeros, item,
                                                               lane, ALL);
    return {row, (Position)__ldg(args.offsets + row) + row < item};
}

extern "C" __global__ void __launch_bounds__(THREADS)
    even_shares_boundaries(const __grid_constant__ Arguments args) {
    const u64 partition = (u64)blockIdx.x * WARPS + threadIdx.x / WARP;
    if (partition > args.partitions) return;
    const int lane = threadIdx.x % WARP;
    const Boundary found = boundary(args, partition, lane);
    if (lane == 0) args.boundaries[partition] = found.word();
}

__device__ __forceinline__ void write_row(const Arguments &args, u64 row, Accum sum) {
    const Accum total[1] = {sum};
    finish<Ring>(total, from_bits<Accum>(args.alpha), from_bits<Accum>(args.beta), args.y + row);
}

// Exchanges the sum between two CTAs. The word is all that they pass on, so that no fence is
// needed. A word with all bits set means empty. That is a NaN, for which another NaN can be stored;
// integers have no such spare value.
template <class A>
struct Exchange {
    static constexpr bool POSSIBLE = false;
    static __device__ bool take(A *, A, A &) { return false; }
};
template <class A, class Word, Word NOT_A_NUMBER>
struct ExchangeAs {
    static constexpr bool POSSIBLE = true;
    // If `place` is empty, stores `sum` there and returns false; otherwise returns the other sum
    // and empties it.
    static __device__ __forceinline__ bool take(A *place, A sum, A &other) {
        Word word = NOT_A_NUMBER;
        if (sum == sum) memcpy(&word, &sum, sizeof(A));
        Word *const words = reinterpret_cast<Word *>(place);
        const Word found = atomicExch(words, word);
        if (found == ~(Word)0) return false;
        ptx::store_relaxed(words, ~(Word)0);
        memcpy(&other, &found, sizeof(A));
        return true;
    }
};
template <>
struct Exchange<f32> : ExchangeAs<f32, u32, 0x7fc00000u> {};
template <>
struct Exchange<f64> : ExchangeAs<f64, u64, 0x7ff8000000000000ull> {};

// `sum` is one part of a row in several partitions, with nonzeros `begin` to `end`; a warp of the
// last CTA adds the parts.
__device__ __forceinline__ void fix_up(const Arguments &args, u64 partition, u64 row, Position begin,
                                       Position end, Accum sum, int lane) {
    const u64 first = (begin + (Position)row) / WORK, last = (end + (Position)row) / WORK;
    if constexpr (Exchange<Accum>::POSSIBLE)
        if (last - first == 1) {
            Accum other;
            if (lane == 0 && Exchange<Accum>::take(args.exchange + first, sum, other))
                write_row(args, row, partition == first ? Ring::add(sum, other) : Ring::add(other, sum));
            return;
        }
    if (lane == 0) args.partials[2 * partition + (partition == first ? 1 : 0)] = sum;
    if (!arrival::is_last(args.arrivals + first, (u32)(last - first) + 1, ALL, 0)) return;
    sum = Ring::zero();
#pragma unroll 1
    for (u64 i = first + lane; i <= last; i += WARP)
        sum = Ring::add(sum, tile::load_shared_by_all<Accum, 1>(args.partials + 2 * i +
                                                                (i == first ? 1 : 0))
                                 .at[0]);
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        sum = Ring::add(sum, __shfl_xor_sync(ALL, sum, distance));
    if (lane == 0) write_row(args, row, sum);
}

// CHUNK consecutive elements of an array of A; none from `end` on.
template <class T>
__device__ __forceinline__ tile::Pack<T, CHUNK> load_chunk(const T *array, Position at,
                                                           Position end) {
    tile::Pack<T, CHUNK> chunk;
    const bool wide = WIDE_A && at + CHUNK <= end;
    if constexpr (WIDE_A) chunk = tile::load_if<T, CHUNK>(wide, array + at);
    if (wide) return chunk;
#pragma unroll
    for (int u = 0; u < CHUNK; ++u)
        if (at + u < end) chunk.at[u] = tile::load<T, 1>(array + at + u).at[0];
    return chunk;
}

// The carry-out of the first `warps` warps: the sum since the last row end among them.
__device__ __forceinline__ Accum carried(const Accum (&open)[WARPS], const bool (&closes)[WARPS],
                                         int warps, int lane) {
    const bool there = lane < warps;
    const u32 closed = __ballot_sync(ALL, there && closes[lane]);
    const int from = closed == 0 ? 0 : 31 - __clz(closed);
    Accum sum = there && lane >= from ? open[lane] : Ring::zero();
#pragma unroll
    for (int distance = 1; distance < WARPS; distance *= 2)
        sum = Ring::add(sum, __shfl_xor_sync(ALL, sum, distance));
    return __shfl_sync(ALL, sum, 0);
}

extern "C" __global__ void __launch_bounds__(THREADS, GUSTAV_RESIDENT / THREADS)
    even_shares(const __grid_constant__ Arguments args) {
    ptx::wait_for_prerequisites();
    __shared__ Accum sums[CAPACITY];
    __shared__ u32 ends[CAPACITY / 32];
    __shared__ Accum open[WARPS];
    __shared__ bool closes[WARPS];
    __shared__ Position found[2];
    const u64 partition = blockIdx.x;
    const u32 thread = threadIdx.x;
    const int lane = thread % WARP, warp = thread / WARP;
    const auto prefetch = [&] {
        tile::prefetch_slices(args.slices, args.indices, args.values, args.nonzeros, args.x);
    };
    if constexpr (SEARCH) {
        prefetch();
        for (int side = warp; side < 2; side += WARPS) {
            const Position word = boundary(args, partition + side, lane).word();
            if (lane == 0) found[side] = word;
        }
        __syncthreads();
    }
    const Position from_word = SEARCH ? found[0] : __ldg(args.boundaries + partition);
    const Position to_word = SEARCH ? found[1] : __ldg(args.boundaries + partition + 1);
    if constexpr (!SEARCH) prefetch();
    const Boundary from = Boundary::of(from_word), to = Boundary::of(to_word);
    const Position nonzeros = args.nonzeros;
    const Position item = (Position)partition * WORK;
    const Position first = from.nonzero(item);
    const Position last =
        to.nonzero(partition + 1 == args.partitions ? (Position)args.rows + nonzeros : item + WORK);
    const Position after = to.begun ? to.row + 1 : to.row;  // one past the last row
    const Position base = first & ~(Position)(CHUNK - 1);   // the nonzero with index 0 in `sums`
    const u32 run = thread * ITEMS;                         // the thread's first index in `sums`

    tile::Pack<Index, CHUNK> column[CHUNKS];
    tile::Pack<Value, CHUNK> a[CHUNKS];
    if (base + run < last) {
#pragma unroll
        for (int c = 0; c < CHUNKS; ++c) {
            column[c] = load_chunk<Index>(args.indices, base + run + c * CHUNK, nonzeros);
            a[c] = load_chunk<Value>(args.values, base + run + c * CHUNK, nonzeros);
        }
    }
    Position begin = 0, end = 0;
    if (from.row + thread < after)
        begin = __ldg(args.offsets + from.row + thread), end = __ldg(args.offsets + from.row + thread + 1);
    // Thread 0 has the partition's first row, which may have begun before.
    const Position my_begin = begin, my_end = end;
    Position tail_begin = 0, tail_end = 0;
    if (to.begun && warp == WARPS - 1)
        tail_begin = __ldg(args.offsets + to.row), tail_end = __ldg(args.offsets + to.row + 1);
    if (thread < CAPACITY / 32) ends[thread] = 0;
    __syncthreads();

    tile::Pack<Value, 1> x[ITEMS];
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
        const Position at = base + run + j;
        x[j] = tile::load_if<Value, 1>(at >= first && at < last,
                                       args.x + (u64)column[j / CHUNK].at[j % CHUNK]);
    }
    // Mark the last nonzeros of rows.
#pragma unroll 1
    for (Position row = from.row + thread; row < after;) {
        const u32 place = (u32)(end - 1 - base);
        if (begin < end && end <= last) atomicOr(&ends[place / 32], 1u << place % 32);
        row += THREADS;
        if (row < after) begin = __ldg(args.offsets + row), end = __ldg(args.offsets + row + 1);
    }
    __syncthreads();

    // The sums of rows that end in the thread's nonzeros; the first still lacks its carry-in.
    const u32 mine = (ends[run / 32] >> run % 32) & (ALL >> (32 - ITEMS));
    const int first_end = __ffs(mine) - 1;
    Accum sum = Ring::zero(), head = Ring::zero();
#pragma unroll
    for (int j = 0; j < ITEMS; ++j) {
        const Position at = base + run + j;
        if (at >= first && at < last)
            sum = Ring::mul_add(widen(a[j / CHUNK].at[j % CHUNK]), widen(x[j].at[0]), sum);
        if (mine >> j & 1) {
            if (j == first_end)
                head = sum;
            else
                sums[run + j] = sum;
            sum = Ring::zero();
        }
    }

    // The carry-in: a segmented scan over the warp, then over warps.
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
    if (closing != 0) {
        const Accum warps = carried(open, closes, warp, lane);
        if (mine != 0) {
            if ((closing & ((1u << lane) - 1)) == 0) carry = Ring::add(warps, carry);
            sums[run + first_end] = Ring::add(carry, head);
        }
    }
    __syncthreads();

    const auto of = [&](Position begin, Position end) {
        return begin < end ? sums[(u32)(end - 1 - base)] : Ring::zero();
    };
    // Rows that are wholly in the partition.
    const Position whole = to.begun ? to.row : after;
    Position row = from.row + thread;
    if (row < whole && (thread > 0 || !from.begun)) write_row(args, row, of(my_begin, my_end));
    for (row += THREADS; row < whole; row += THREADS)
        write_row(args, row, of(__ldg(args.offsets + row), __ldg(args.offsets + row + 1)));
    if (from.begun && from.row < whole && warp == 0)
        fix_up(args, partition, from.row, __shfl_sync(ALL, my_begin, 0), __shfl_sync(ALL, my_end, 0),
               lane == 0 ? of(my_begin, my_end) : Ring::zero(), lane);
    if (to.begun && warp == WARPS - 1)
        fix_up(args, partition, to.row, tail_begin, tail_end, carried(open, closes, WARPS, lane), lane);
}
