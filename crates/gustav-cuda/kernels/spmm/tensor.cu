// tensor: C = alpha A B + beta C, A in CSR, B and C row-major, on tensor cores. A kernel of Gustav.
//
// Idea: a column that occurs in any of eight consecutive rows makes an 8 x 1 vector. Sixteen such
// vectors of one block of rows are one operand of an MMA instruction, and sixteen columns of the
// sixteen corresponding rows of B the other: C^T (16 x 8) += B^T (16 x 16) A^T (16 x 8). A block of
// rows reads every row of B that it needs once.
//
//   grid.x -> blocks of 8 rows, SUBGROUPS warps each     grid.y -> panels of PANEL columns
//   warp   =  chunks w, w + SUBGROUPS, ... of 16 entries of a block (schedule/row_blocks.cuh)
//   lane (g, t) = (lane / 4, lane % 4)
//     has VECTOR columns from (8 p + g) VECTOR on, p < VECTORS, of four rows of B
//     finds  the values of row g for those four by counting the bits before them
//     sums   the same columns of C, for rows 2t and 2t + 1
//
// The columns of C may be assigned to the instruction's rows in any order; here two columns of one
// lane are adjacent, so that its sums are stored directly. Eight neighbouring lanes load a row of
// B, a coalesced access, and shuffles move the values to the lanes that need them.
//
// A row that lacks an entry's column multiplies by zero, which is wrong only for infinity and NaN:
// sums that end as NaN are recomputed from the row's own nonzeros. The sums of a block's warps are
// added in order.
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
using Stride = GUSTAV_STRIDE;  // u32 when B has at most 2^32 rows, less than 2^32 bytes apart
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
constexpr int ALONG = CHUNK / 4;       // entries of a chunk a lane
constexpr int HELD = PANEL / 8;        // columns a lane
constexpr int VECTORS = HELD / VECTOR;  // vectors a lane
static_assert(HELD % 2 == 0 && HELD % VECTOR == 0 && WARPS % SUBGROUPS == 0, "whole tiles, whole blocks");

using Union = schedule::BlockEntry<Word, ROWS>;
// VECTOR values as 32-bit words, as the MMA instruction takes words, not single values.
constexpr int BYTES = VECTOR * sizeof(Value);
struct Words {
    u32 word[BYTES < 4 ? 1 : BYTES / 4];
};
// Column i of a lane in its two rows: [i / 2][i % 2 * 2 + 0..1], the layout of the instructions.
using Sums = Accum[HELD / 2][4];

#include "gustav_cuda::spmm::tensor::Arguments"

// Coordinates of a lane in the instruction (g, t), and for loads (t, g).
__device__ __forceinline__ int in_product_g() { return threadIdx.x % 32 / 4; }
__device__ __forceinline__ int in_product_t() { return threadIdx.x % 4; }
__device__ __forceinline__ int in_loads_g() { return threadIdx.x % 8; }
__device__ __forceinline__ int in_loads_t() { return threadIdx.x % 32 / 8; }
// The lane that loads the B operand of this one.
__device__ __forceinline__ int loader() { return in_product_t() * 8 + in_product_g(); }

// The index in a chunk of entry `i` of the lanes with `t`.
__device__ __forceinline__ int along_k(int t, int i) {
    return sizeof(Value) == 2 ? 2 * t + i % 2 + i / 2 * 8 : t + 4 * i;
}

// A block of rows as a lane sees it.
struct Block {
    const Word *entries;        // from the lane's own in chunk 0 on
    const Position *positions;  // of the lane's row
    u32 count;                  // entries
};

__device__ __forceinline__ Block read_block(const Arguments &args, u64 block) {
    if (block * ROWS >= args.blocks.rows) return {nullptr, nullptr, 0};
    const u64 start = __ldg(args.blocks.offsets + block * ROWS);
    return {args.blocks.entries + start + along_k(in_loads_t(), 0),
            args.blocks.positions + (start / CHUNK + block) * ROWS + in_product_g(),
            __ldg(args.blocks.counts + block)};
}

// The entries of a chunk whose rows of B a lane loads, and the position of its row of A at the
// chunk.
struct Chunk {
    Word entry[ALONG];
    Position position;
};

__device__ __forceinline__ Chunk read_chunk(const Block &block, u32 chunk) {
    Chunk read;
    const Word *from = block.entries + (u64)chunk * CHUNK;
    // Past the end: row 0 of B, for no row of A.
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

__device__ __forceinline__ Words load_words(const Value *from) {
    Words words;
    if constexpr (BYTES < 4)
        words.word[0] = ptx::load_readonly_16(from);
    else
        ptx::load_readonly(from, words.word);
    return words;
}

// The operands of a lane for a chunk; B as loaded, before the shuffles. Columns past the end of B
// are undefined; they affect only sums that are not stored.
struct Factors {
    Value a[ALONG];
    Words b[ALONG][VECTORS];
};

// B, from the first column that a lane loads.
struct Source {
    const u8 *first;
    Stride row_bytes;
    u64 columns;  // from that column on
};

__device__ __forceinline__ void load_factors(const Value *values, const Source &b,
                                             const Chunk &chunk, Factors &to) {
#pragma unroll
    for (int i = 0; i < ALONG; ++i) {
        const u64 row = (u64)(Stride)Union::column(chunk.entry[i]) * b.row_bytes;
        const Value *from = reinterpret_cast<const Value *>(b.first + row);
#pragma unroll
        for (int p = 0; p < VECTORS; ++p)
            if (p * 8 * VECTOR < b.columns) to.b[i][p] = load_words(from + p * 8 * VECTOR);
    }
    // A mask of the chunk's entries that row g has, for the g of loads, then shuffled to that of
    // the instruction.
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

// Moves loaded values to the lanes that need them.
__device__ __forceinline__ void exchange(Words (&b)[ALONG][VECTORS]) {
#pragma unroll
    for (int i = 0; i < ALONG; ++i)
#pragma unroll
        for (int p = 0; p < VECTORS; ++p)
#pragma unroll
            for (u32 &word : b[i][p].word) word = __shfl_sync(~0u, word, loader());
}

__device__ __forceinline__ void mma(const u32 (&b)[4], const u32 (&a)[2], f16, f32 (&sum)[4]) {
    ptx::mma_f16(sum, b, a);
}
__device__ __forceinline__ void mma(const u32 (&b)[4], const u32 (&a)[2], bf16, f32 (&sum)[4]) {
    ptx::mma_bf16(sum, b, a);
}

// Column k of a lane's row of B; `two`, for 16-bit types, columns k and k + 1.
template <class T>
__device__ __forceinline__ T at(const Words (&row)[VECTORS], int k) {
    T value;
    memcpy(&value, &row[k / VECTOR].word[k % VECTOR * sizeof(T) / 4], sizeof(T));
    return value;
}
__device__ __forceinline__ u32 two(const Words (&row)[VECTORS], int k) {
    if constexpr (VECTOR == 1) return row[k].word[0] | row[k + 1].word[0] << 16;
    return row[k / VECTOR].word[k % VECTOR / 2];
}

// Multiplies columns k and k + 1 of every lane by the block's rows. For 16-bit types, words of two
// neighbouring columns are permuted to words of two neighbouring entries.
template <class V>
__device__ __forceinline__ void multiply_tile(const Words (&b)[ALONG][VECTORS], int k,
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
__device__ __forceinline__ void multiply_tile(const Words (&b)[ALONG][VECTORS], int k,
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
__device__ __forceinline__ void multiply_tile(const Words (&b)[ALONG][VECTORS], int k,
                                              const f64 (&a)[ALONG], f64 (&sum)[4]) {
#pragma unroll
    for (int i = 0; i < ALONG; ++i) {
        ptx::mma_f64(sum[0], sum[1], at<f64>(b[i], k), a[i]);
        ptx::mma_f64(sum[2], sum[3], at<f64>(b[i], k + 1), a[i]);
    }
}

__device__ __forceinline__ void multiply(Factors &factors, Sums &sum) {
    exchange(factors.b);
#pragma unroll
    for (int k = 0; k < HELD; k += 2) multiply_tile(factors.b, k, factors.a, sum[k / 2]);
}

// A warp's chunks of a block, in the panel from column `panel` on.
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

// Adds the sums of a block's warps, in order, to those of its first.
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

// Recomputes sums of one row from its own nonzeros.
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
        for (int p = 0; p < VECTORS; ++p) {
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
                again |= 1u << (side * VECTORS + p);
            else
                finish_row<Ring, STEPS>(args.blocks, total, row, j);
        }
    for (; again != 0; again &= again - 1) {
        const int i = __ffs(again) - 1;
        const u64 row = first_row + i / VECTORS, j = column + i % VECTORS * 8 * VECTOR;
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
