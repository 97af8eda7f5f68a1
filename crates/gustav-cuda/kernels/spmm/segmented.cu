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
// A part of a row either writes its sums to its slot, and `segmented_fix_up` adds the slots of a
// row in their order (the same bits in every run), or adds them to C by reductions, after
// `segmented_prepare` has scaled C.
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
constexpr bool LIST = GUSTAV_LIST;
constexpr bool EXACT = GUSTAV_EXACT;
constexpr bool WIDE_A = GUSTAV_WIDE_A;
constexpr bool PREFETCH = GUSTAV_PREFETCH;

constexpr int GROUP = LANES * SHARE;
constexpr int PANEL = LANES * TILES * VECTOR;
static_assert(GROUP <= 32 && 32 % GROUP == 0 && BLOCK % 32 == 0, "a group lies in one warp");
static_assert((CHUNK & (CHUNK - 1)) == 0, "chunks are aligned by a mask");

struct Arguments {
    const Offset *offsets;
    const Index *indices;
    const Value *values;
    const u64 *segments;  // null without a list
    const u64 *cut_rows;  // row, first slot, number of slots
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

__device__ __forceinline__ Chunk load_chunk(const Arguments &args, Position first, Position last,
                                            Position position) {
    Chunk chunk;
    chunk.from = position < first ? (int)(first - position) : 0;
    chunk.to = last - position < CHUNK ? (int)(last - position) : CHUNK;
    if (WIDE_A && position + CHUNK <= args.nonzeros) {
        chunk.column = tile::load<Index, CHUNK>(args.indices + position);
        chunk.value = tile::load<Value, CHUNK>(args.values + position);
        return chunk;
    }
#pragma unroll
    for (int u = 0; u < CHUNK; ++u) {
        if (!chunk.has(u)) continue;
        chunk.column.at[u] = tile::load<Index, 1>(args.indices + position + u).at[0];
        chunk.value.at[u] = tile::load<Value, 1>(args.values + position + u).at[0];
    }
    return chunk;
}

__device__ __forceinline__ void sum_segment(const Arguments &args, const schedule::Segment &s,
                                            u64 column, int sub, Accum (&sum)[TILES][VECTOR]) {
    const Value *b = args.b + column;
    const Position first = (Position)s.first, last = (Position)s.last;
    Position position = (first & ~(Position)(CHUNK - 1)) + sub * CHUNK;
    Chunk next;
    if (PREFETCH && position < last) next = load_chunk(args, first, last, position);
    for (; position < last; position += CHUNK * SHARE) {
        Chunk chunk;
        if (PREFETCH) {
            chunk = next;
            if (position + CHUNK * SHARE < last)
                next = load_chunk(args, first, last, position + CHUNK * SHARE);
        } else {
            chunk = load_chunk(args, first, last, position);
        }
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
}

// One group's share of one panel.
__device__ __forceinline__ void multiply(const Arguments &args, u64 i, u64 column, int sub) {
    Accum sum[TILES][VECTOR];
#pragma unroll
    for (int k = 0; k < TILES; ++k)
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) sum[k][v] = Ring::zero();

    schedule::Segment s = {0, 0, 0, false};
    const bool mine = i < args.count;
    if (mine) s = LIST ? schedule::segment(args.segments, i) : schedule::row(args.offsets, i);
    // A lane past the last column has nothing to sum, but takes part in the shuffles.
    if (EXACT || column < args.columns) sum_segment(args, s, column, sub, sum);

#pragma unroll
    for (int distance = LANES; distance < GROUP; distance *= 2)
#pragma unroll
        for (int k = 0; k < TILES; ++k)
#pragma unroll
            for (int v = 0; v < VECTOR; ++v)
                sum[k][v] =
                    Ring::add(sum[k][v], __shfl_xor_sync(0xffffffffu, sum[k][v], distance));

    if (!mine || sub != 0) return;
    const Accum alpha = from_bits<Accum>(args.alpha), beta = from_bits<Accum>(args.beta);
#pragma unroll
    for (int k = 0; k < TILES; ++k) {
        const u64 j = column + k * LANES * VECTOR;
        if (!EXACT && j >= args.columns) continue;
        if (!LIST || !s.cut) {
            finish<Ring>(sum[k], alpha, beta, args.c + s.target * args.ldc + j);
        } else {
#if GUSTAV_REDUCE
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) sum[k][v] = Ring::scale(alpha, sum[k][v]);
            ptx::reduce_add(args.c + s.target * args.ldc + j, sum[k]);
#else
            tile::Pack<Accum, VECTOR> pack;
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) pack.at[v] = sum[k][v];
            *reinterpret_cast<tile::Pack<Accum, VECTOR> *>(args.partials +
                                                           s.target * args.columns + j) = pack;
#endif
        }
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) segmented(const Arguments args) {
    const u64 i = (u64)blockIdx.x * (BLOCK / GROUP) + threadIdx.x / GROUP;
    const int sub = threadIdx.x % GROUP / LANES;
    const u64 lane = threadIdx.x % LANES * VECTOR;
    for (u64 panel = blockIdx.y; panel * PANEL < args.columns; panel += gridDim.y)
        multiply(args, i, panel * PANEL + lane, sub);
}

// Adds the slots of each cut row in their order. One CTA a row (grid.x) and WIDTH columns (grid.y);
// strip s adds every STRIPS-th slot, then strip 0 adds the strips.
constexpr int STRIPS = GUSTAV_STRIPS;
constexpr int WIDTH = GUSTAV_FIX_UP_WIDTH;

extern "C" __global__ void __launch_bounds__(WIDTH *STRIPS) segmented_fix_up(const Arguments args) {
    __shared__ Accum strip_sum[STRIPS][WIDTH];
    const u64 *cut = args.cut_rows + 3 * (u64)blockIdx.x;
    const u64 row = cut[0], first = cut[1], slots = cut[2];
    const int lane = threadIdx.x % WIDTH, strip = threadIdx.x / WIDTH;
    for (u64 base = (u64)blockIdx.y * WIDTH; base < args.columns; base += (u64)gridDim.y * WIDTH) {
        const u64 j = base + lane;
        Accum sum = Ring::zero();
        if (j < args.columns) {
#pragma unroll 8
            for (u64 slot = strip; slot < slots; slot += STRIPS)
                sum = Ring::add(sum, args.partials[(first + slot) * args.columns + j]);
        }
        strip_sum[strip][lane] = sum;
        __syncthreads();
        if (strip == 0 && j < args.columns) {
            for (int s = 1; s < STRIPS; ++s) sum = Ring::add(sum, strip_sum[s][lane]);
            const Accum total[1] = {sum};
            finish<Ring>(total, from_bits<Accum>(args.alpha), from_bits<Accum>(args.beta),
                         args.c + row * args.ldc + j);
        }
        __syncthreads();
    }
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
