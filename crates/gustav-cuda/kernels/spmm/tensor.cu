// tensor: C = alpha A B + beta C, A in CSR, B and C row-major, on tensor cores. Ours.
//
// Idea: eight consecutive rows and one column that any of them has are an 8 x 1 vector. Sixteen such
// vectors of one block of rows are a factor of a matrix instruction, and sixteen columns of the
// sixteen rows of B that they name are the other: C^T (16 x 8) += B^T (16 x 16) A^T (16 x 8). A block
// of rows reads every row of B that it needs once.
//
//   grid.x -> blocks of 8 rows, SUBGROUPS warps each     grid.y -> panels of PANEL columns
//   warp   =  chunks w, w + SUBGROUPS, ... of 16 entries of a block (schedule/row_blocks.cuh)
//   lane (g, t) = (lane / 4, lane % 4)
//     brings VECTOR neighbours from column (8 p + g) VECTOR on, p < PIECES, of four rows of B
//     finds  the values of row g for those four by counting the bits before them
//     sums   the same columns of C, for rows 2t and 2t + 1
//
// Which columns the instruction takes for neighbours is its caller's choice: two of a lane's own, so
// that its sums go straight to C. Rows of B are loaded by eight neighbouring lanes each, which L1 gives
// by the line, and change lanes by shuffles.
//
// A row without an entry multiplies by zero, which makes NaN of infinity and NaN alone: sums that end
// as NaN are summed again from the row's own nonzeros. The warps of a block add up in their order.
//
// Invariants: as segmented.cu.
#include "common/epilogue.cuh"
#include "ptx/dependents.cuh"
#include "ptx/mma.cuh"
#include "schedule/row_blocks.cuh"

using Value = GUSTAV_VALUE;
using Index = GUSTAV_INDEX;
using Offset = GUSTAV_OFFSET;
using Out = GUSTAV_OUT;
using Word = GUSTAV_WORD;
using Position = GUSTAV_POSITION;
using Stride = GUSTAV_STRIDE;  // u32 when a row of B starts below 2^32 values
using Accum = Accumulator<Value>::Type;
using Ring = PlusTimes<Accum>;

constexpr int PANEL = GUSTAV_PANEL;
constexpr int VECTOR = GUSTAV_VECTOR;
constexpr int WARPS = GUSTAV_WARPS;
constexpr int SUBGROUPS = GUSTAV_SUBGROUPS;
constexpr int STEPS = GUSTAV_STEPS;  // of the epilogue
constexpr int RESIDENT = GUSTAV_RESIDENT;  // threads of a multiprocessor that registers allow
constexpr int BLOCK = WARPS * 32;
constexpr int ROWS = 8;
constexpr int CHUNK = 16;
constexpr int ALONG = CHUNK / 4;       // entries of a chunk that are a lane's
constexpr int HELD = PANEL / 8;        // columns that are a lane's
constexpr int PIECES = HELD / VECTOR;  // of so many neighbours
static_assert(HELD % 2 == 0 && HELD % VECTOR == 0 && WARPS % SUBGROUPS == 0, "whole tiles, whole blocks");

using Union = schedule::BlockEntry<Word, ROWS>;
// VECTOR neighbours as the words that are loaded: taken apart, they would be put together again.
constexpr int BYTES = VECTOR * sizeof(Value);
struct Piece {
    u32 word[BYTES < 4 ? 1 : BYTES / 4];
};
// Column i of a lane in its two rows: [i / 2][i % 2 * 2 + 0..1], as the instructions leave them.
using Sums = Accum[HELD / 2][4];

#include "gustav_cuda::spmm::tensor::Arguments"

// Lane (g, t) in the instruction, and (t, g) when it loads.
__device__ __forceinline__ int in_product_g() { return threadIdx.x % 32 / 4; }
__device__ __forceinline__ int in_product_t() { return threadIdx.x % 4; }
__device__ __forceinline__ int in_loads_g() { return threadIdx.x % 8; }
__device__ __forceinline__ int in_loads_t() { return threadIdx.x % 32 / 8; }
// The lane that loads what this one brings to the instruction.
__device__ __forceinline__ int loader() { return in_product_t() * 8 + in_product_g(); }

// Place in a chunk of entry `i` of the lanes with `t`.
__device__ __forceinline__ int along_k(int t, int i) {
    return sizeof(Value) == 2 ? 2 * t + i % 2 + i / 2 * 8 : t + 4 * i;
}

// A block of rows as a lane sees it.
struct Block {
    const Word *entries;        // from its own in chunk 0 on
    const Position *positions;  // of its row
    u32 count;                  // entries
};

__device__ __forceinline__ Block read_block(const Arguments &args, u64 block) {
    if (block * ROWS >= args.blocks.rows) return {nullptr, nullptr, 0};
    const u64 start = __ldg(args.blocks.offsets + block * ROWS);
    return {args.blocks.entries + start + along_k(in_loads_t(), 0),
            args.blocks.positions + (start / CHUNK + block) * ROWS + in_product_g(),
            __ldg(args.blocks.counts + block)};
}

// The entries of a chunk that a lane loads for, and where its row in the product has come to.
struct Chunk {
    Word entry[ALONG];
    Position position;
};

__device__ __forceinline__ Chunk read_chunk(const Block &block, u32 chunk) {
    Chunk read;
    const Word *from = block.entries + (u64)chunk * CHUNK;
    // Past the end any row of B will do, which no row of A has.
#pragma unroll
    for (int i = 0; i < ALONG; ++i) {
        const int k = along_k(in_loads_t(), i);
        read.entry[i] = 0;
        if (chunk * CHUNK + k < block.count)
            read.entry[i] = __ldg(from + (k - along_k(in_loads_t(), 0)));
    }
    read.position = __ldg(block.positions + (u64)chunk * ROWS);
    return read;
}

__device__ __forceinline__ Piece load_piece(const Value *from) {
    Piece piece;
    if constexpr (BYTES < 4)
        piece.word[0] = ptx::load_readonly_16(from);
    else
        ptx::load_readonly(from, piece.word);
    return piece;
}

// What a lane brings to the products of a chunk, B still with the lane that loads it; what stands for
// columns that are not there comes into sums that are not stored.
struct Factors {
    Value a[ALONG];
    Piece b[ALONG][PIECES];
};

// B from the first column that a lane loads on.
struct Source {
    const u8 *first;
    Stride row_bytes;
    u64 columns;  // from there on
};

__device__ __forceinline__ void load_factors(const Value *values, const Source &b,
                                             const Chunk &chunk, Factors &to) {
#pragma unroll
    for (int i = 0; i < ALONG; ++i) {
        const u64 row = (u64)(Stride)Union::column(chunk.entry[i]) * b.row_bytes;
        const Value *from = reinterpret_cast<const Value *>(b.first + row);
#pragma unroll
        for (int p = 0; p < PIECES; ++p)
            if (p * 8 * VECTOR < b.columns) to.b[i][p] = load_piece(from + p * 8 * VECTOR);
    }
    // Which of the chunk's entries row g of the loads has, and then that of the product.
    u32 row = 0;
#pragma unroll
    for (int i = 0; i < ALONG; ++i)
        row |= (u32)Union::has(chunk.entry[i], in_loads_g()) << along_k(in_loads_t(), i);
    row |= __shfl_xor_sync(~0u, row, 8);
    row |= __shfl_xor_sync(~0u, row, 16);
    row = __shfl_sync(~0u, row, in_product_g());
    const Value *from = values + chunk.position;
#pragma unroll
    for (int i = 0; i < ALONG; ++i) {
        const u32 bit = 1u << along_k(in_product_t(), i);
        to.a[i] = Value{};
        if (row & bit) to.a[i] = tile::load<Value, 1>(from + __popc(row & (bit - 1))).at[0];
    }
}

// Hands what was loaded to the lanes that bring it.
__device__ __forceinline__ void hand_over(Piece (&b)[ALONG][PIECES]) {
#pragma unroll
    for (int i = 0; i < ALONG; ++i)
#pragma unroll
        for (int p = 0; p < PIECES; ++p)
#pragma unroll
            for (u32 &word : b[i][p].word) word = __shfl_sync(~0u, word, loader());
}

__device__ __forceinline__ void mma(const u32 (&b)[4], const u32 (&a)[2], f16, f32 (&sum)[4]) {
    ptx::mma_f16(sum, b, a);
}
__device__ __forceinline__ void mma(const u32 (&b)[4], const u32 (&a)[2], bf16, f32 (&sum)[4]) {
    ptx::mma_bf16(sum, b, a);
}

// Column k of a lane's row of B, and in 16 bits columns k and k + 1.
template <class T>
__device__ __forceinline__ T at(const Piece (&row)[PIECES], int k) {
    T value;
    memcpy(&value, &row[k / VECTOR].word[k % VECTOR * sizeof(T) / 4], sizeof(T));
    return value;
}
__device__ __forceinline__ u32 two(const Piece (&row)[PIECES], int k) {
    if constexpr (VECTOR == 1) return row[k].word[0] | row[k + 1].word[0] << 16;
    return row[k / VECTOR].word[k % VECTOR / 2];
}

// Columns k and k + 1 of every lane by the block's rows. In 16 bits, words of neighbours along the
// columns become words of neighbours along the entries.
template <class V>
__device__ __forceinline__ void multiply_tile(const Piece (&b)[ALONG][PIECES], int k,
                                              const V (&a)[ALONG], f32 (&sum)[4]) {
    u32 from_b[4], from_a[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const u32 one = two(b[2 * half], k), next = two(b[2 * half + 1], k);
        from_b[2 * half] = __byte_perm(one, next, 0x5410);
        from_b[2 * half + 1] = __byte_perm(one, next, 0x7632);
    }
    memcpy(from_a, a, sizeof(from_a));
    mma(from_b, from_a, V{}, sum);
}
__device__ __forceinline__ void multiply_tile(const Piece (&b)[ALONG][PIECES], int k,
                                              const f32 (&a)[ALONG], f32 (&sum)[4]) {
#pragma unroll
    for (int i = 0; i < ALONG; i += 2) {
        u32 from_b[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) from_b[j] = ptx::round_tf32(at<f32>(b[i + j / 2], k + j % 2));
        const u32 from_a[2] = {ptx::round_tf32(a[i]), ptx::round_tf32(a[i + 1])};
        ptx::mma_tf32(sum, from_b, from_a);
    }
}
__device__ __forceinline__ void multiply_tile(const Piece (&b)[ALONG][PIECES], int k,
                                              const f64 (&a)[ALONG], f64 (&sum)[4]) {
#pragma unroll
    for (int i = 0; i < ALONG; ++i) {
        ptx::mma_f64(sum[0], sum[1], at<f64>(b[i], k), a[i]);
        ptx::mma_f64(sum[2], sum[3], at<f64>(b[i], k + 1), a[i]);
    }
}

__device__ __forceinline__ void multiply(Factors &factors, Sums &sum) {
    hand_over(factors.b);
#pragma unroll
    for (int k = 0; k < HELD; k += 2) multiply_tile(factors.b, k, factors.a, sum[k / 2]);
}

// A warp's share of a block in the panel from column `panel` on.
__device__ __forceinline__ void sum_block(const Arguments &args, const Block &block, int subgroup,
                                          u64 panel, Sums &sum) {
#pragma unroll
    for (int k = 0; k < HELD / 2; ++k)
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[k][i] = 0;
    const u32 chunks = (block.count + CHUNK - 1) / CHUNK;
    if (subgroup >= chunks) return;
    const u64 column = panel + in_loads_g() * VECTOR;
    const Source b = {reinterpret_cast<const u8 *>(args.blocks.b + column),
                      (Stride)(args.blocks.ldb * sizeof(Value)),
                      column < args.blocks.columns ? args.blocks.columns - column : 0};
    const Value *values = args.blocks.values;
    Chunk next = read_chunk(block, subgroup);
    Factors factors = {};
    for (u32 c = subgroup; c < chunks; c += SUBGROUPS) {
        load_factors(values, b, next, factors);
        if (c + SUBGROUPS < chunks) next = read_chunk(block, c + SUBGROUPS);
        multiply(factors, sum);
    }
}

// Adds the sums of a block's warps, in their order, to those of its first.
__device__ __forceinline__ void add_subgroups(int subgroup, Sums &sum) {
    constexpr int ITEMS = 2 * HELD;
    __shared__ Accum parts[WARPS][ITEMS][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) parts[warp][i][lane] = sum[i / 4][i % 4];
    __syncthreads();
    if (subgroup == 0)
#pragma unroll 1
        for (int other = 1; other < SUBGROUPS; ++other)
#pragma unroll
            for (int i = 0; i < ITEMS; ++i) sum[i / 4][i % 4] += parts[warp + other][i][lane];
    __syncthreads();
}

// The sums of one row from its own nonzeros alone.
__device__ __forceinline__ void sum_row(const Arguments &args, u64 row, u64 column,
                                        Accum (&sum)[VECTOR]) {
#pragma unroll
    for (int v = 0; v < VECTOR; ++v) sum[v] = 0;
#pragma unroll 1
    for (u64 at = args.blocks.offsets[row]; at < args.blocks.offsets[row + 1]; ++at) {
        const Accum a = widen(args.blocks.values[at]);
        const u64 row_of_b = (u64)args.indices[at] * args.blocks.ldb;
        const auto b = tile::load<Value, VECTOR>(args.blocks.b + row_of_b + column);
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) sum[v] = Ring::mul_add(a, tile::widen_at(b, v), sum[v]);
    }
}

__device__ __forceinline__ void store(const Arguments &args, u64 block, u64 column,
                                      const Sums &sum) {
    const u64 first_row = block * ROWS + threadIdx.x % 4 * 2;
    Accum total[VECTOR];
    u32 again = 0;
#pragma unroll
    for (int side = 0; side < 2; ++side)
#pragma unroll
        for (int p = 0; p < PIECES; ++p) {
            const u64 row = first_row + side, j = column + p * 8 * VECTOR;
            if (row >= args.blocks.rows || j >= args.blocks.columns) continue;
            bool lost = false;
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) {
                const int k = p * VECTOR + v;
                total[v] = sum[k / 2][k % 2 * 2 + side];
                lost |= total[v] != total[v];
            }
            if (lost)
                again |= 1u << (side * PIECES + p);
            else
                finish_row<Ring, STEPS>(args.blocks, total, row, j);
        }
    for (; again != 0; again &= again - 1) {
        const int i = __ffs(again) - 1;
        const u64 row = first_row + i / PIECES, j = column + i % PIECES * 8 * VECTOR;
        sum_row(args, row, j, total);
        finish_row<Ring, STEPS>(args.blocks, total, row, j);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT / BLOCK)
    tensor(const __grid_constant__ Arguments args) {
    ptx::wait_for_prerequisites();
    const int warp = threadIdx.x / 32, subgroup = warp % SUBGROUPS;
    const u64 block = (u64)blockIdx.x * (WARPS / SUBGROUPS) + warp / SUBGROUPS;
    const Block mine = read_block(args, block);
    for (u64 panel = blockIdx.y; panel * PANEL < args.blocks.columns; panel += gridDim.y) {
        Sums sum;
        sum_block(args, mine, subgroup, panel * PANEL, sum);
        if constexpr (SUBGROUPS > 1) add_subgroups(subgroup, sum);
        if (subgroup == 0) store(args, block, panel * PANEL + in_product_g() * VECTOR, sum);
    }
}
