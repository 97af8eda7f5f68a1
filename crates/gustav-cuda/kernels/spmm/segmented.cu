// segmented: C = alpha A B + beta C, A in CSR, B and C row-major. Ours.
//
// Idea: every segment (a row, or at most S nonzeros of a long row) is summed by a group of
// threads that holds all columns of a panel of C in registers, so that A is read once per panel
// and B in 16-byte pieces.
//
//   grid.x -> segments, BLOCK / GROUP a CTA     grid.y -> panels of PANEL columns
//   group  =  SHARE sub-groups of LANES threads, inside one warp
//   sub-group s takes chunks s, s + SHARE, ... of CHUNK nonzeros; sums meet by shuffles
//   lane l holds columns (k LANES + l) VECTOR + 0..VECTOR-1 for k < TILES
//
// A chunk is aligned in the arrays of A, so that its column indices and its values are one or two
// wide loads each; what a chunk holds before or after the segment is predicated out.
//
// A part of a row either writes its sums to its slot, where the last to come adds the slots in their
// order (the same bits in every run), or adds them to C by reductions, after `segmented_prepare` has
// scaled C.
//
// Invariants: PANEL divides columns when EXACT; VECTOR divides columns, leading dimensions and
// the addresses of B and C; C does not overlap A or B.
#include "common/epilogue.cuh"
#include "schedule/segments.cuh"

using Value = GUSTAV_VALUE;
using Index = GUSTAV_INDEX;
using Offset = GUSTAV_OFFSET;
using Out = GUSTAV_OUT;
using Accum = Accumulator<Value>::Type;
using Ring = GUSTAV_SEMIRING<Accum>;
using Stride = GUSTAV_STRIDE;      // u32 when a row of B starts below 2^32 values
using Position = GUSTAV_POSITION;  // u32 when A has fewer than 2^31 nonzeros

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int VECTOR = GUSTAV_VECTOR;
constexpr int LANES = GUSTAV_LANES;
constexpr int TILES = GUSTAV_TILES;
constexpr int SHARE = GUSTAV_SHARE;
constexpr int CHUNK = GUSTAV_CHUNK;
constexpr int AHEAD = GUSTAV_AHEAD;  // chunks of B rows on their way through shared memory
constexpr bool LIST = GUSTAV_LIST;
constexpr bool ORDERED = GUSTAV_ORDERED;  // whole rows as listed
constexpr bool EXACT = GUSTAV_EXACT;
constexpr bool WIDE_A = GUSTAV_WIDE_A;
constexpr int RESIDENT = GUSTAV_RESIDENT;  // threads of a multiprocessor that registers allow

using Segment = schedule::Segment<Position>;

constexpr int GROUP = LANES * SHARE;
constexpr int PANEL = LANES * TILES * VECTOR;
static_assert(GROUP <= 32 && 32 % GROUP == 0 && BLOCK % 32 == 0, "a group lies in one warp");
static_assert((CHUNK & (CHUNK - 1)) == 0, "chunks are aligned by a mask");
constexpr int STEP = CHUNK * SHARE;

// Rows of B pass through shared memory where the chip can copy there by itself.
constexpr bool STAGED = AHEAD > 0 && ptx::HAS_ASYNC_COPY && VECTOR * sizeof(Value) >= 4;
using Stage = tile::Pack<Value, VECTOR>;
constexpr int DEPTH = STAGED ? AHEAD : 1;

struct Arguments {
    const Offset *offsets;
    const Index *indices;
    const Value *values;
    const u64 *segments;  // null without a list
    const u32 *order;     // rows, when ORDERED
    const u64 *cut_rows;  // row, first slot, number of slots
    const u32 *slot_rows; // place in cut_rows of each slot
    u32 *arrivals;        // parts that have come, LEVELS a slot and panel; zero between launches
    u64 slots;
    const Value *b;
    Out *c;
    Accum *partials;
    u64 count;      // segments, or rows without a list
    u64 nonzeros;
    u64 columns;
    u64 ldb;
    u64 ldc;
    u64 alpha;
    u64 beta;
};

struct Chunk {
    tile::Pack<Index, CHUNK> column;
    tile::Pack<Value, CHUNK> value;
    int from, to;  // its entries that lie in the segment

    __device__ __forceinline__ bool has(int u) const { return u >= from && u < to; }
};

// CHUNK neighbours of an array of A from an aligned position; those outside the segment may be
// anything.
template <class T>
__device__ __forceinline__ tile::Pack<T, CHUNK> load_part(const Arguments &args, const T *array,
                                                          Position first, Position last,
                                                          Position position) {
    if (WIDE_A && position + CHUNK <= args.nonzeros)
        return tile::load<T, CHUNK>(array + position);
    tile::Pack<T, CHUNK> part;
#pragma unroll
    for (int u = 0; u < CHUNK; ++u)
        if (position + u >= first && position + u < last)
            part.at[u] = tile::load<T, 1>(array + position + u).at[0];
    return part;
}

__device__ __forceinline__ Chunk load_chunk(const Arguments &args, Position first, Position last,
                                            Position position) {
    Chunk chunk;
    chunk.from = position < first ? (int)(first - position) : 0;
    chunk.to = last - position < CHUNK ? (int)(last - position) : CHUNK;
    chunk.column = load_part<Index>(args, args.indices, first, last, position);
    chunk.value = load_part<Value>(args, args.values, first, last, position);
    return chunk;
}

// Adds the entries of a chunk that lie in the segment.
__device__ __forceinline__ void sum_chunk(const Arguments &args, const Value *b, u64 column,
                                          const Chunk &chunk, Accum (&sum)[TILES][VECTOR]) {
    tile::Pack<Value, VECTOR> row[CHUNK][TILES];
#pragma unroll
    for (int u = 0; u < CHUNK; ++u) {
        if (!chunk.has(u)) continue;
        const Value *from = b + (u64)(Stride)chunk.column.at[u] * (Stride)args.ldb;
#pragma unroll
        for (int k = 0; k < TILES; ++k)
            if (EXACT || column + k * LANES * VECTOR < args.columns)
                row[u][k] = tile::load<Value, VECTOR>(from + k * LANES * VECTOR);
    }
#pragma unroll
    for (int u = 0; u < CHUNK; ++u) {
        if (!chunk.has(u)) continue;
        const Accum a = widen(chunk.value.at[u]);
#pragma unroll
        for (int k = 0; k < TILES; ++k)
#pragma unroll
            for (int v = 0; v < VECTOR; ++v)
                sum[k][v] = Ring::mul_add(a, widen(row[u][k].at[v]), sum[k][v]);
    }
}

// The sums of all sub-groups, in each of them.
__device__ __forceinline__ void add_shares(Accum (&sum)[VECTOR], u32 lanes) {
#pragma unroll
    for (int distance = LANES; distance < GROUP; distance *= 2)
#pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            sum[v] = Ring::add(sum[v], __shfl_xor_sync(lanes, sum[v], distance));
}

__device__ __forceinline__ void put_aside(const Arguments &args, u64 slot, u64 j,
                                          const Accum (&sum)[VECTOR]) {
    tile::Pack<Accum, VECTOR> pack;
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) pack.at[v] = sum[v];
    *reinterpret_cast<tile::Pack<Accum, VECTOR> *>(args.partials + slot * args.columns + j) = pack;
}

// Sums of the cut row of `slot` meet here, FAN slots at a time: of the groups that bring the slots
// of one node of the tree, the last adds them in their order and brings the sum one level up. Which
// group that is depends on the run, the order of the sums does not.
constexpr int FAN_BITS = 5;
constexpr int FAN = 1 << FAN_BITS;
constexpr int LEVELS = 6;
// Slots read at once: one where registers are few, and other work hides the wait.
constexpr int MEETING = CHUNK > 2 ? 4 : 1;

__device__ __forceinline__ void meet(const Arguments &args, u64 slot, u64 column, int sub,
                                     u64 panel) {
    const int first_lane = threadIdx.x % 32 / GROUP * GROUP;
    const u32 group = (GROUP == 32 ? ~0u : (1u << GROUP % 32) - 1) << first_lane;
    const u64 *cut = args.cut_rows + 3 * (u64)args.slot_rows[slot];
    const u64 row = cut[0], first = cut[1];
    const u32 parts = (u32)cut[2], part = (u32)(slot - first);
    for (int level = 0, shift = 0;; ++level, shift += FAN_BITS) {
        // Of 2^shift parts each, as many as there are; those of this node begin at `begin`.
        const u32 brought = (parts + (1u << shift) - 1) >> shift;
        const u32 begin = part >> shift >> FAN_BITS << FAN_BITS;
        const int children = brought - begin < FAN ? (int)(brought - begin) : FAN;
        const u64 node = first + ((u64)begin << shift);
        __threadfence();
        __syncwarp(group);
        u32 before = 0;
        if (threadIdx.x % 32 == first_lane)
            before = atomicInc(args.arrivals + (panel * args.slots + node) * LEVELS + level,
                               children - 1);
        before = __shfl_sync(group, before, first_lane);
        if (before != children - 1) return;
        __threadfence();
        const bool top = brought <= FAN;
        // One tile after another: this must not cost the main loop registers.
#pragma unroll 1
        for (int k = 0; k < TILES; ++k) {
            const u64 j = column + k * LANES * VECTOR;
            const bool live = EXACT || j < args.columns;
            Accum sum[VECTOR];
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) sum[v] = Ring::zero();
            const Accum *from = args.partials + node * args.columns + j;
#pragma unroll MEETING
            for (int c = sub; c < children; c += SHARE) {
                if (!live) continue;
                const auto part =
                    tile::load_shared_by_all<Accum, VECTOR>(from + ((u64)c << shift) * args.columns);
#pragma unroll
                for (int v = 0; v < VECTOR; ++v) sum[v] = Ring::add(sum[v], part.at[v]);
            }
            add_shares(sum, group);
            if (sub != 0 || !live) continue;
            if (top)
                finish<Ring>(sum, from_bits<Accum>(args.alpha), from_bits<Accum>(args.beta),
                             args.c + row * args.ldc + j);
            else
                put_aside(args, node, j, sum);
        }
        if (top) return;
    }
}

__device__ __forceinline__ Segment segment(const Arguments &args, u64 i) {
    if (i >= args.count) return schedule::no_segment<Position>();
    if (LIST) return schedule::segment<Position>(args.segments, i);
    return schedule::row<Position>(args.offsets, ORDERED ? (u64)__ldg(args.order + i) : i);
}

__device__ __forceinline__ void store(const Arguments &args, const Segment &s,
                                      const Accum (&sum)[TILES][VECTOR], u64 column, int sub) {
    if (s.none()) return;
    const Accum alpha = from_bits<Accum>(args.alpha), beta = from_bits<Accum>(args.beta);
#pragma unroll
    for (int k = 0; k < TILES; ++k) {
        const u64 j = column + k * LANES * VECTOR;
        if (sub != 0 || (!EXACT && j >= args.columns)) continue;
        if (!LIST || !s.cut()) {
            finish<Ring>(sum[k], alpha, beta, args.c + s.target() * args.ldc + j);
        } else {
#if GUSTAV_REDUCE
            Accum scaled[VECTOR];
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) scaled[v] = Ring::scale(alpha, sum[k][v]);
            ptx::reduce_add(args.c + s.target() * args.ldc + j, scaled);
#else
            put_aside(args, s.target(), j, sum[k]);
#endif
        }
    }
}

// Sums a segment through registers; the next chunk of A is loaded before this one is used.
__device__ __forceinline__ void sum_direct(const Arguments &args, const Value *b, u64 column,
                                           Position first, Position last, Position position,
                                           Accum (&sum)[TILES][VECTOR]) {
    Chunk next;
    if (position < last) next = load_chunk(args, first, last, position);
    while (position < last) {
        const Chunk chunk = next;
        position += STEP;
        if (position < last) next = load_chunk(args, first, last, position);
        sum_chunk(args, b, column, chunk, sum);
    }
}

// Sums a segment through shared memory, where AHEAD chunks of rows of B are on their way: more than
// registers hold. A lane reads only what it copied itself.
__device__ __forceinline__ void sum_staged(const Arguments &args, const Value *b, u64 column,
                                           Position first, Position last, Position position,
                                           Stage *stage, Accum (&sum)[TILES][VECTOR]) {
    const auto copy = [&](const tile::Pack<Index, CHUNK> &columns, Position at, int slot) {
        const int from = at < first ? (int)(first - at) : 0;
        const int to = last - at < CHUNK ? (int)(last - at) : CHUNK;
#pragma unroll
        for (int u = 0; u < CHUNK; ++u) {
            if (u < from || u >= to) continue;
            const Value *row = b + (u64)(Stride)columns.at[u] * (Stride)args.ldb;
#pragma unroll
            for (int k = 0; k < TILES; ++k)
                if (EXACT || column + k * LANES * VECTOR < args.columns)
                    ptx::copy_async<VECTOR * sizeof(Value)>(
                        &stage[((slot * CHUNK + u) * TILES + k) * BLOCK],
                        row + k * LANES * VECTOR);
        }
    };
    tile::Pack<Index, CHUNK> columns[DEPTH];
#pragma unroll
    for (int d = 0; d < DEPTH; ++d)
        if (position + d * STEP < last)
            columns[d] = load_part<Index>(args, args.indices, first, last, position + d * STEP);
    tile::Pack<Value, CHUNK> values;
    if (position < last) values = load_part<Value>(args, args.values, first, last, position);
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
        if (position + d * STEP < last) copy(columns[d], position + d * STEP, d);
        ptx::close_copies();
    }
    Position far = position + DEPTH * STEP;
    if (far < last) columns[0] = load_part<Index>(args, args.indices, first, last, far);
    for (int slot = 0; position < last; slot = slot + 1 < DEPTH ? slot + 1 : 0) {
        const tile::Pack<Value, CHUNK> now = values;
        if (position + STEP < last)
            values = load_part<Value>(args, args.values, first, last, position + STEP);
        ptx::wait_copies<DEPTH - 1>();
        const int from = position < first ? (int)(first - position) : 0;
        const int to = last - position < CHUNK ? (int)(last - position) : CHUNK;
#pragma unroll
        for (int u = 0; u < CHUNK; ++u) {
            if (u < from || u >= to) continue;
#pragma unroll
            for (int k = 0; k < TILES; ++k) {
                const Stage row = stage[((slot * CHUNK + u) * TILES + k) * BLOCK];
#pragma unroll
                for (int v = 0; v < VECTOR; ++v)
                    sum[k][v] = Ring::mul_add(widen(now.at[u]), widen(row.at[v]), sum[k][v]);
            }
        }
        if (far < last) copy(columns[0], far, slot);
        ptx::close_copies();
        position += STEP, far += STEP;
        if (far < last) columns[0] = load_part<Index>(args, args.indices, first, last, far);
    }
}

// One group's segment in one panel.
__device__ __forceinline__ void multiply(const Arguments &args, const Segment &s, u64 panel,
                                         u64 column, int sub, Stage *stage) {
    Accum sum[TILES][VECTOR];
#pragma unroll
    for (int k = 0; k < TILES; ++k)
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) sum[k][v] = Ring::zero();

    // A lane past the last column has nothing to sum, but takes part in the shuffles.
    const Position last = EXACT || column < args.columns ? s.last : 0;
    const Position position = (s.first & ~(Position)(CHUNK - 1)) + sub * CHUNK;
    if constexpr (STAGED)
        sum_staged(args, args.b + column, column, s.first, last, position, stage, sum);
    else
        sum_direct(args, args.b + column, column, s.first, last, position, sum);
#pragma unroll
    for (int k = 0; k < TILES; ++k) add_shares(sum[k], ~0u);
    store(args, s, sum, column, sub);
    if (LIST && !GUSTAV_REDUCE && s.cut()) meet(args, s.target(), column, sub, panel);
}

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT / BLOCK)
    segmented(const __grid_constant__ Arguments args) {
    __shared__ Stage stage[STAGED ? DEPTH * CHUNK * TILES * BLOCK : 1];
    const Segment s = segment(args, (u64)blockIdx.x * (BLOCK / GROUP) + threadIdx.x / GROUP);
    const int sub = threadIdx.x % GROUP / LANES;
    const u64 lane = threadIdx.x % LANES * VECTOR;
    for (u64 panel = blockIdx.y; panel * PANEL < args.columns; panel += gridDim.y)
        multiply(args, s, panel, panel * PANEL + lane, sub, stage + (STAGED ? threadIdx.x : 0));
}

// Scales the cut rows of C by beta before their parts are added. One CTA a row.
extern "C" __global__ void __launch_bounds__(BLOCK) segmented_prepare(const Arguments args) {
    const u64 row = args.cut_rows[3 * (u64)blockIdx.x];
    const Accum beta = from_bits<Accum>(args.beta);
    for (u64 j = threadIdx.x; j < args.columns; j += BLOCK) {
        Out *to = args.c + row * args.ldc + j;
        const Accum empty[1] = {Ring::zero()};
        finish<Ring>(empty, Ring::one(), beta, to);
    }
}
