// tensor: C = alpha A B + beta C, A in CSR, B and C row-major, on tensor cores. Ours.
//
// Idea: eight consecutive rows and one column that any of them has are an 8 x 1 vector. Sixteen such
// vectors of one block of rows are the 16 x 8 factor of a matrix instruction, and sixteen columns of
// the sixteen rows of B that they name are the other: C^T (16 x 8) += B^T (16 x 16) A^T (16 x 8). A
// block of rows reads every row of B that it needs once.
//
//   grid.x -> blocks of 8 rows, SHARE warps each     grid.y -> panels of PANEL columns
//   warp   =  chunks w, w + SHARE, ... of 16 entries of a block (schedule/row_blocks.cuh)
//   lane l -> entry l of a chunk; pieces of the rows of B, which it copies to shared memory one chunk
//             ahead; four values of A, which it finds by counting the bits of its row
//
// A row without an entry multiplies by zero, which is why operands must be finite; rows of B that a
// chunk lacks at its end are zero in shared memory. The warps of a block add up in their order.
//
// Invariants: as segmented.cu.
#include "common/epilogue.cuh"
#include "ptx/mma.cuh"
#include "schedule/row_blocks.cuh"

using Value = GUSTAV_VALUE;
using Offset = GUSTAV_OFFSET;
using Out = GUSTAV_OUT;
using Word = GUSTAV_WORD;
using Position = GUSTAV_POSITION;
using Ring = PlusTimes<f32>;

constexpr int PANEL = GUSTAV_PANEL;
constexpr int VECTOR = GUSTAV_VECTOR;
constexpr int WARPS = GUSTAV_WARPS;
constexpr int SHARE = GUSTAV_SHARE;
constexpr int BLOCK = WARPS * 32;
constexpr int ROWS = 8;
constexpr int CHUNK = 16;
constexpr int TILES = PANEL / 16;
constexpr int PIECES = PANEL / VECTOR;
// Rows of B in shared memory lie so that reads of a fragment meet no bank twice.
constexpr int LD = PANEL + 8;
constexpr int LD_OUT = PANEL + 4;
static_assert(PANEL % 16 == 0 && WARPS % SHARE == 0, "whole tiles, whole blocks");

using Union = schedule::BlockEntry<Word, ROWS>;

struct Arguments {
    const Offset *offsets;
    const Value *values;
    const Word *entries;
    const Position *positions;
    const u32 *counts;
    const Value *b;
    Out *c;
    u64 rows;
    u64 columns;
    u64 ldb;
    u64 ldc;
    u64 alpha;
    u64 beta;
};

// What a warp has in shared memory: rows of B of two chunks, then its sums.
union Stage {
    alignas(16) Value b[2][CHUNK][LD];
    f32 sums[ROWS][LD_OUT];
};

// A chunk as a lane holds it.
struct Chunk {
    u64 column;      // of entry `lane`
    int count;       // entries of the chunk
    Value value[4];  // of the lane's row
};

// Entries along K that a lane holds of the 16 x 8 factor.
__device__ __forceinline__ int along_k(int i) {
    const int t = threadIdx.x % 4;
    return sizeof(Value) == 2 ? 2 * t + i % 2 + i / 2 * 8 : t + 4 * i;
}

__device__ __forceinline__ Chunk read_chunk(const Arguments &args, u64 block, u64 start, u32 count,
                                            u32 chunk) {
    const int lane = threadIdx.x % 32, g = lane / 4;
    Chunk read;
    const int left = (int)count - (int)(chunk * CHUNK);
    read.count = left < CHUNK ? (left > 0 ? left : 0) : CHUNK;
    const Word entry =
        lane < read.count ? __ldg(args.entries + start + chunk * CHUNK + lane) : (Word)0;
    read.column = Union::column(entry);
    u32 mine = 0;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const u32 having = __ballot_sync(~0u, Union::has(entry, r));
        if (r == g) mine = having;
    }
    Position first = 0;
    if (mine != 0) first = __ldg(args.positions + (start / CHUNK + block + chunk) * ROWS + g);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int k = along_k(i);
        read.value[i] = Value{0};
        if (mine >> k & 1)
            read.value[i] =
                tile::load<Value, 1>(args.values + first + __popc(mine & ((1u << k) - 1))).at[0];
    }
    return read;
}

// Brings the rows of B of a chunk to shared memory.
__device__ __forceinline__ void fetch(const Arguments &args, const Chunk &chunk, u64 column,
                                      Value (&to)[CHUNK][LD]) {
    using Piece = tile::Pack<Value, VECTOR>;
#pragma unroll 8
    for (int i = threadIdx.x % 32; i < CHUNK * PIECES; i += 32) {
        const int k = i / PIECES, j = i % PIECES * VECTOR;
        const u64 row = __shfl_sync(~0u, chunk.column, k);
        Piece *place = reinterpret_cast<Piece *>(&to[k][j]);
        const Value *from = args.b + row * args.ldb + column + j;
        if (k >= chunk.count) {
            *place = Piece{};
        } else if (column + j < args.columns) {
            if constexpr (ptx::HAS_ASYNC_COPY && sizeof(Piece) >= 4)
                ptx::copy_async<sizeof(Piece)>(place, from);
            else
                *place = tile::load<Value, VECTOR>(from);
        }
    }
}

template <class V>
struct IsF16 {
    static constexpr bool value = false;
};
template <>
struct IsF16<f16> {
    static constexpr bool value = true;
};

// Sixteen columns by eight rows, from the fetched rows of B and the lane's values of A.
template <class V>
__device__ __forceinline__ void multiply_tile(const V (&b)[CHUNK][LD], int tile,
                                              const V (&value)[4], f32 (&sum)[4]) {
    const int lane = threadIdx.x % 32;
    u32 from_b[4], from_a[2];
    ptx::load_transposed(&b[lane % 8 + lane / 16 * 8][tile * 16 + lane / 8 % 2 * 8], from_b);
    memcpy(from_a, value, 8);
    if constexpr (IsF16<V>::value)
        ptx::mma_f16(sum, from_b, from_a);
    else
        ptx::mma_bf16(sum, from_b, from_a);
}
__device__ __forceinline__ void multiply_tile(const f32 (&b)[CHUNK][LD], int tile,
                                              const f32 (&value)[4], f32 (&sum)[4]) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        u32 from_b[4], from_a[2];
#pragma unroll
        for (int i = 0; i < 4; ++i)
            from_b[i] = ptx::round_tf32(b[half * 8 + i / 2 * 4 + t][tile * 16 + i % 2 * 8 + g]);
#pragma unroll
        for (int i = 0; i < 2; ++i) from_a[i] = ptx::round_tf32(value[2 * half + i]);
        ptx::mma_tf32(sum, from_b, from_a);
    }
}

// A warp's share of a block in one panel; its sums are left in shared memory.
__device__ __forceinline__ void multiply(const Arguments &args, u64 block, u64 start, u32 count,
                                         int share, u64 column, Stage &stage) {
    const u32 chunks = (count + CHUNK - 1) / CHUNK;
    f32 sum[TILES][4] = {};
    Chunk next = read_chunk(args, block, start, count, share);
    fetch(args, next, column, stage.b[0]);
    ptx::close_copies();
    int slot = 0;
    for (u32 c = share; c < chunks; c += SHARE, slot ^= 1) {
        const Chunk chunk = next;
        if (c + SHARE < chunks) {
            next = read_chunk(args, block, start, count, c + SHARE);
            fetch(args, next, column, stage.b[slot ^ 1]);
        }
        ptx::close_copies();
        ptx::wait_copies<1>();
        __syncwarp();
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile)
            multiply_tile(stage.b[slot], tile, chunk.value, sum[tile]);
        __syncwarp();
    }
    ptx::wait_copies<0>();
    __syncwarp();
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            stage.sums[2 * t + i % 2][tile * 16 + g + i / 2 * 8] = sum[tile][i];
}

// Adds the sums of a block's warps in their order, and writes them.
__device__ __forceinline__ void store(const Arguments &args, u64 block, int share, u64 column,
                                      const Stage *stages) {
    for (int i = share * 32 + threadIdx.x % 32; i < ROWS * PIECES; i += SHARE * 32) {
        const u64 row = block * ROWS + i / PIECES, j = column + i % PIECES * VECTOR;
        if (row >= args.rows || j >= args.columns) continue;
        f32 sum[VECTOR];
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) {
            sum[v] = 0;
#pragma unroll
            for (int s = 0; s < SHARE; ++s)
                sum[v] += stages[s].sums[i / PIECES][i % PIECES * VECTOR + v];
        }
        finish<Ring>(sum, from_bits<f32>(args.alpha), from_bits<f32>(args.beta),
                     args.c + row * args.ldc + j);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) tensor(const __grid_constant__ Arguments args) {
    __shared__ Stage stages[WARPS];
    const int warp = threadIdx.x / 32, share = warp % SHARE;
    const u64 block = (u64)blockIdx.x * (WARPS / SHARE) + warp / SHARE;
    const bool live = block * ROWS < args.rows;
    const u64 start = live ? (u64)__ldg(args.offsets + block * ROWS) : 0;
    const u32 count = live ? __ldg(args.counts + block) : 0;
    for (u64 panel = blockIdx.y; panel * PANEL < args.columns; panel += gridDim.y) {
        multiply(args, block, start, count, share, panel * PANEL, stages[warp]);
        __syncthreads();
        store(args, block, share, panel * PANEL, stages + warp - share);
        __syncthreads();
    }
}
