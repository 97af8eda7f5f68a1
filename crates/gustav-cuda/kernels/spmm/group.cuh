// A group of lanes, inside one warp, that sums runs of nonzeros into registers: what the schedules of
// segmented and even-shares have in common.
//
//   group  =  SUBGROUPS subgroups of LANES threads
//   lane l holds columns (k LANES + l) VECTOR + 0..VECTOR-1 of a panel for k < TILES
//
// Nonzeros come in chunks, aligned in the arrays of A, so that the column indices and the values of a
// chunk are one or two wide loads each; what a chunk holds before or after the run is predicated out.
//
// Rows whose nonzeros several groups sum are fixed up in a tree, in the order of their parts: the same bits
// in every run.
#pragma once
#include "common/epilogue.cuh"
#include "common/warp.cuh"
#include "schedule/arrival.cuh"
#include "schedule/fix_up.cuh"
#include "spmm/sums.cuh"
#include "tile/span.cuh"

using Value = GUSTAV_VALUE;
using Index = GUSTAV_INDEX;
using Offset = GUSTAV_OFFSET;
using Out = GUSTAV_OUT;
using Accum = Accumulator<Value>::Type;
using Ring = GUSTAV_SEMIRING<Accum>;
using Stride = GUSTAV_STRIDE;      // u32 when B has at most 2^32 rows, less than 2^32 bytes apart
using Position = GUSTAV_POSITION;  // u32 when A has fewer than 2^31 rows and nonzeros
using Winner = GUSTAV_WINNER;      // position of a nonzero that won, for the caller

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int VECTOR = GUSTAV_VECTOR;
constexpr int LANES = GUSTAV_LANES;
constexpr int TILES = GUSTAV_TILES;
constexpr int SUBGROUPS = GUSTAV_SUBGROUPS;
constexpr int CHUNK = GUSTAV_CHUNK;
constexpr int WHOLE = GUSTAV_WHOLE;  // tiles of which no lane lacks columns
constexpr bool WIDE_A = GUSTAV_WIDE_A;
constexpr int STEPS = GUSTAV_STEPS;  // of the epilogue
constexpr int RESIDENT = GUSTAV_RESIDENT;  // threads of a multiprocessor that registers allow

// Whether a nonzero counts in the columns alone that it won, by the winners of a product with max or min that this
// one is the gradient of: one for every element of B.
constexpr bool FILTERED = GUSTAV_FILTERED;

constexpr bool BATCHED = GUSTAV_BATCHED;  // whether there are several products

using Reduction = Reducing<GUSTAV_WINNERS, Ring, Accum, Position>::Type;
using Sum = Reduction::Sum;
using Won = Candidate<Accum, Position>;

constexpr int GROUP = LANES * SUBGROUPS;
constexpr int PANEL = LANES * TILES * VECTOR;
using Span = tile::Span<VECTOR, LANES, TILES, WHOLE>;
static_assert(GROUP <= 32 && 32 % GROUP == 0 && BLOCK % 32 == 0, "a group lies in one warp");
static_assert((CHUNK & (CHUNK - 1)) == 0, "chunks are aligned by a mask");

#include "gustav_cuda::spmm::group::Operands"

struct Chunk {
    tile::Pack<Index, CHUNK> column;
    tile::Pack<Value, CHUNK> value;
    int from, to;  // its entries that lie in the run

    __device__ __forceinline__ bool has(int u) const { return u >= from && u < to; }

    // Set when the chunk is used, not when it is loaded: two registers fewer on the way.
    __device__ __forceinline__ void bound(Position first, Position last, Position position) {
        from = position < first ? (int)(first - position) : 0;
        to = last <= position ? 0 : last - position < CHUNK ? (int)(last - position) : CHUNK;
    }
};

// Rows of B of a chunk.
using Rows = tile::Pack<Value, VECTOR>[CHUNK][TILES];

// Where the whole chunks of A end.
__device__ __forceinline__ Position whole_chunks(const Operands &args) {
    return args.nonzeros & ~(Position)(CHUNK - 1);
}

// CHUNK neighbours of an array of A from an aligned position, if that is before `last`; those outside the run may be
// anything. INSIDE: `last` is no further than the whole chunks, or A is not aligned.
template <bool INSIDE, class T>
__device__ __forceinline__ tile::Pack<T, CHUNK> load_part(const Operands &args, const T *array,
                                                          Position first, Position last,
                                                          Position position) {
    tile::Pack<T, CHUNK> part;
    if constexpr (WIDE_A && INSIDE)
        return tile::load_if<T, CHUNK>(position < last, array + position);
    if (WIDE_A && position < last && position + CHUNK <= args.nonzeros)
        return tile::load<T, CHUNK>(array + position);
    if constexpr (sizeof(T) == 2 && CHUNK % 2 == 0) {
        // Kept as words, two values a register, as the wide load leaves them.
#pragma unroll
        for (int u = 0; u < CHUNK; u += 2) {
            u32 word = 0;
            if (position + u >= first && position + u < last)
                word = ptx::load_readonly_16(array + position + u);
            if (position + u + 1 >= first && position + u + 1 < last)
                word |= (u32)ptx::load_readonly_16(array + position + u + 1) << 16;
            memcpy(&part.at[u], &word, 4);
        }
        return part;
    }
#pragma unroll
    for (int u = 0; u < CHUNK; ++u)
        if (position + u >= first && position + u < last)
            part.at[u] = tile::load<T, 1>(array + position + u).at[0];
    return part;
}

// A chunk of a run, if any of it lies in the run.
template <bool INSIDE>
__device__ __forceinline__ Chunk load_chunk(const Operands &args, Position first, Position last,
                                            Position position) {
    Chunk chunk;
    chunk.column = load_part<INSIDE, Index>(args, args.indices, first, last, position);
    chunk.value = load_part<INSIDE, Value>(args, args.values, first, last, position);
    return chunk;
}

// The first column of a lane in B. Hidden from the compiler, which would add it to the product of column and stride,
// one row at a time.
__device__ __forceinline__ const Value *own_column(const Operands &args, u64 column) {
    const Value *b = args.b + column;
    asm("" : "+l"(b));
    return b;
}

// Row `column` of B, where `b` is in row 0.
__device__ __forceinline__ const Value *row_of_b(const Operands &args, const Value *b, Index column) {
    const u64 bytes = (u64)(Stride)column * (Stride)(args.ldb * sizeof(Value));
    return reinterpret_cast<const Value *>(reinterpret_cast<const u8 *>(b) + bytes);
}

// `b` is at the span's column.
__device__ __forceinline__ void load_rows(const Operands &args, const Value *b, const Span &span,
                                          const Chunk &chunk, Rows &row) {
#pragma unroll
    for (int u = 0; u < CHUNK; ++u) {
        const Value *from = row_of_b(args, b, chunk.column.at[u]);
#pragma unroll
        for (int k = 0; k < TILES; ++k)
            row[u][k] = tile::load_if<Value, VECTOR>(chunk.has(u) && span.has(k), from + k * LANES * VECTOR);
    }
}

// Entry `u` of the chunk, which is nonzero `at`.
__device__ __forceinline__ void add_row(const Chunk &chunk, const Rows &row, int u, Position at,
                                        Sum (&sum)[TILES][VECTOR]) {
    const Accum a = tile::widen_at(chunk.value, u);
#pragma unroll
    for (int k = 0; k < TILES; ++k)
#pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            sum[k][v] = Reduction::mul_add(a, tile::widen_at(row[u][k], v), at, sum[k][v]);
}

// The winners beside the rows of B of a chunk, and the positions in A of its nonzeros.
struct Filter {
    tile::Pack<Winner, VECTOR> winner[FILTERED ? CHUNK : 1][FILTERED ? TILES : 1];
    Winner mine[FILTERED ? CHUNK : 1];
};

// `position` is that of the chunk.
__device__ __forceinline__ void load_filter(const Operands &args, const Span &span, const Chunk &chunk,
                                            Position position, Filter &filter) {
#pragma unroll
    for (int u = 0; u < CHUNK; ++u) {
        if (!chunk.has(u)) continue;
        const u64 at = position + u;
        filter.mine[u] = (Winner)(args.permutation ? (u64)__ldg(args.permutation + at) : at);
        const Winner *from = args.winners + (u64)chunk.column.at[u] * args.columns;
#pragma unroll
        for (int k = 0; k < TILES; ++k)
            if (span.has(k)) filter.winner[u][k] = tile::load<Winner, VECTOR>(from + span.at(k));
    }
}

__device__ __forceinline__ void add_won(const Chunk &chunk, const Rows &row, const Filter &filter, int u,
                                        Position at, Sum (&sum)[TILES][VECTOR]) {
    const Accum a = tile::widen_at(chunk.value, u);
#pragma unroll
    for (int k = 0; k < TILES; ++k)
#pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            if (filter.winner[u][k].at[v] == filter.mine[u])
                sum[k][v] = Reduction::mul_add(a, tile::widen_at(row[u][k], v), at, sum[k][v]);
}

__device__ __forceinline__ void clear(Sum (&sum)[TILES][VECTOR]) {
#pragma unroll
    for (int k = 0; k < TILES; ++k)
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) sum[k][v] = Reduction::zero();
}

// The sums of all subgroups, in each of them.
__device__ __forceinline__ void add_subgroups(Sum (&sum)[VECTOR], u32 lanes) {
#pragma unroll
    for (int distance = LANES; distance < GROUP; distance *= 2)
#pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            sum[v] = Reduction::add(sum[v], Reduction::shuffle_xor(lanes, sum[v], distance));
}

// Stores sums of columns j, j + 1, ... of `row` in C.
__device__ __forceinline__ void finish_sums(const Operands &args, const Accum (&sum)[VECTOR], u64 row,
                                            u64 j) {
    finish_row<Ring, STEPS>(args, sum, row, j);
}

// The same of products, and where their nonzeros are in A.
__device__ __forceinline__ void finish_sums(const Operands &args, const Won (&won)[VECTOR], u64 row,
                                            u64 j) {
    const u64 first = args.offsets[row];
    const bool is_empty = first == args.offsets[row + 1];
    Accum taken[VECTOR];
    tile::Pack<Winner, VECTOR> winner;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) {
        taken[v] = won[v].value;
        const Position none = ~Position(0);
        u64 at = won[v].position == none ? first : (u64)won[v].position;
        if (!is_empty && args.permutation) at = (u64)__ldg(args.permutation + at);
        winner.at[v] = is_empty ? ~Winner(0) : (Winner)at;
    }
    finish_row<Ring, STEPS>(args, taken, row, j);
    tile::store(args.winners + row * args.columns + j, winner);
}

__device__ __forceinline__ void put_aside(const Operands &args, u64 slot, u64 j,
                                          const Accum (&sum)[VECTOR]) {
    tile::Pack<Accum, VECTOR> pack;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) pack.at[v] = sum[v];
    *reinterpret_cast<tile::Pack<Accum, VECTOR> *>(args.partials + slot * args.columns + j) = pack;
}

__device__ __forceinline__ void put_aside(const Operands &args, u64 slot, u64 j,
                                          const Won (&won)[VECTOR]) {
    Accum taken[VECTOR];
    tile::Pack<Position, VECTOR> pack;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) taken[v] = won[v].value, pack.at[v] = won[v].position;
    put_aside(args, slot, j, taken);
    const u64 at = slot * args.columns + j;
    *reinterpret_cast<tile::Pack<Position, VECTOR> *>(args.positions + at) = pack;
}

// What another group put aside, added to `sum`.
__device__ __forceinline__ void add_aside(const Operands &args, u64 slot, u64 j,
                                          Accum (&sum)[VECTOR]) {
    const auto part =
        tile::load_shared_by_all<Accum, VECTOR>(args.partials + slot * args.columns + j);
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) sum[v] = Ring::add(sum[v], part.at[v]);
}

// Only of max and min: a template, so that other semirings need not compile it.
template <class P>
__device__ __forceinline__ void add_aside(const Operands &args, u64 slot, u64 j,
                                          Candidate<Accum, P> (&won)[VECTOR]) {
    const u64 at = slot * args.columns + j;
    const auto taken = tile::load_shared_by_all<Accum, VECTOR>(args.partials + at);
    const auto position = tile::load_shared_by_all<P, VECTOR>(args.positions + at);
#pragma unroll
    for (int v = 0; v < VECTOR; ++v)
        won[v] = Winners<Ring, Accum, P>::add(won[v], {taken.at[v], position.at[v]});
}

// The parts of a cut row and their slots.
struct Parts {
    u64 row;
    u64 first;       // slot of part 0
    u64 next, step;  // slot of part p > 0 is next + p step
    u32 count;

    __device__ __forceinline__ u64 slot(u64 part) const {
        return part == 0 ? first : next + part * step;
    }
};

// The operands of product `index` of a batch, whose columns take so many panels.
__device__ __forceinline__ Operands of_batch(const Operands &all, u64 index, u64 panels) {
    Operands one = all;
    one.values += index * all.next_values;
    one.b += index * all.next_b;
    one.c += index * all.next_c;
    one.partials += index * all.slots * all.columns;
    one.arrivals += index * panels * all.slots * fix_up::LEVELS;
    return one;
}

// Slots read at once: one where registers are few, and other work hides the wait.
constexpr int FIX_UP_LOADS = CHUNK > 2 ? 4 : 1;

// Brings a part of a cut row, and adds up what it is the last part of.
__device__ __forceinline__ void add_parts(const Operands &args, const Parts &parts, u32 part,
                                          const Span &span, int sub, u64 panel) {
    using fix_up::FAN, fix_up::FAN_BITS;
    const int first_lane = threadIdx.x % 32 / GROUP * GROUP;
    const u32 group = warp::lanes_of_group<GROUP>();
    for (int level = 0, shift = 0;; ++level, shift += FAN_BITS) {
        // The node of `fix_up::Node`, written out: as an object it costs registers in the main loop.
        const u32 brought = (parts.count + (1u << shift) - 1) >> shift;
        const u32 begin = part >> shift >> FAN_BITS << FAN_BITS;
        const int children = brought - begin < FAN ? (int)(brought - begin) : FAN;
        const u64 node = parts.slot((u64)begin << shift);
        u32 *const arrivals = args.arrivals + (panel * args.slots + node) * fix_up::LEVELS + level;
        if (!arrival::is_last(arrivals, children, group, first_lane)) return;
        const bool is_root = brought <= FAN;
        // One tile after another: this must not cost the main loop registers.
#pragma unroll 1
        for (int k = 0; k < TILES; ++k) {
            const u64 j = span.at(k);
            const bool live = span.has(k);
            Sum sum[VECTOR];
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) sum[v] = Reduction::zero();
#pragma unroll FIX_UP_LOADS
            for (int c = sub; c < children; c += SUBGROUPS)
                if (live) add_aside(args, parts.slot((u64)(begin + c) << shift), j, sum);
            add_subgroups(sum, group);
            if (sub != 0 || !live) continue;
            if (is_root)
                finish_sums(args, sum, parts.row, j);
            else
                put_aside(args, node, j, sum);
        }
        if (is_root) return;
    }
}
