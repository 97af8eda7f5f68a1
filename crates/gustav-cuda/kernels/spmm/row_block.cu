// row-block: C = alpha A B + beta C, A in CSR, B and C row-major. A kernel of Gustav.
//
// Idea: consecutive rows with the same or nearly the same columns share every load of B. A block is
// ROWS consecutive rows; its entries are the union of their columns, each with the rows that have
// it (schedule/row_blocks.cuh). A row that lacks an entry's column skips it; nothing is multiplied
// by zero.
//
//   grid.x -> blocks, BLOCK / GROUP a CTA     grid.y -> panels of PANEL columns
//   group  =  SUBGROUPS subgroups of LANES threads, inside one warp
//   subgroup s takes chunks s, s + SUBGROUPS, ... of LANES entries; sums are reduced by shuffles
//   lane l reads entry l of a chunk and the values of its rows, one chunk ahead, and stores them
//   in shared memory; then, entry after entry, it holds columns (k LANES + l) VECTOR + 0..VECTOR-1
//   for k < TILES of every row of the block
//
// Invariants: as segmented.cu.
#include "common/epilogue.cuh"
#include "ptx/dependents.cuh"
#include "schedule/row_blocks.cuh"
#include "tile/span.cuh"

using Value = GUSTAV_VALUE;
using Index = GUSTAV_INDEX;
using Offset = GUSTAV_OFFSET;
using Out = GUSTAV_OUT;
using Accum = Accumulator<Value>::Type;
using Ring = GUSTAV_SEMIRING<Accum>;
using Stride = GUSTAV_STRIDE;
using Word = GUSTAV_WORD;
using Position = GUSTAV_POSITION;

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int ROWS = GUSTAV_ROWS;
constexpr int VECTOR = GUSTAV_VECTOR;
constexpr int LANES = GUSTAV_LANES;
constexpr int TILES = GUSTAV_TILES;
constexpr int SUBGROUPS = GUSTAV_SUBGROUPS;
constexpr int UNROLL = GUSTAV_UNROLL;
constexpr int WHOLE = GUSTAV_WHOLE;  // tiles of which no lane lacks columns
constexpr int STEPS = GUSTAV_STEPS;  // of the epilogue
constexpr int RESIDENT = GUSTAV_RESIDENT;  // threads of a multiprocessor that registers allow

constexpr int GROUP = LANES * SUBGROUPS;
constexpr int PANEL = LANES * TILES * VECTOR;
using Span = tile::Span<VECTOR, LANES, TILES, WHOLE>;
static_assert(GROUP <= 32 && 32 % GROUP == 0 && BLOCK % 32 == 0, "a group lies in one warp");
static_assert(LANES % UNROLL == 0, "a chunk is unrolled whole");

using Union = schedule::BlockEntry<Word, ROWS>;

#include "gustav_cuda::spmm::row_block::BlockOperands"

// An entry with the values of its rows in shared memory, read 16 bytes at a time.
constexpr int STAGED = (int)(sizeof(Word) + ROWS * sizeof(Accum));
struct alignas(STAGED <= 8 ? 8 : 16) Staged {
    Accum value[ROWS];
    Word entry;
};

// A block of rows: where its entries and positions begin, and the number of entries.
struct Header {
    u64 start;
    u64 positions;
    u32 count;
};

__device__ __forceinline__ Header read_header(const BlockOperands &args, u64 block) {
    if (block * ROWS >= args.rows) return {0, 0, 0};
    const u64 start = __ldg(args.offsets + block * ROWS);
    return {start, start / LANES + block, __ldg(args.counts + block)};
}

// Entry `lane` of a chunk with the values of its rows; past the end, an entry without rows.
__device__ __forceinline__ Staged read_entry(const BlockOperands &args, const Header &block, u32 chunk,
                                             int lane) {
    Staged staged;
    staged.entry = 0;
    const u32 e = chunk * LANES + lane;
    const bool live = e < block.count;
    if (live) staged.entry = __ldg(args.entries + block.start + e);
    // Lanes before this one in its subgroup.
    const u32 before = ~(~0u << threadIdx.x % 32) & ~0u << threadIdx.x % 32 / LANES * LANES;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const bool has = Union::has(staged.entry, r);
        const u32 rank = __popc(__ballot_sync(~0u, has) & before);
        if (!has) continue;
        const Position position = __ldg(args.positions + (block.positions + chunk) * ROWS + r);
        staged.value[r] = widen(tile::load<Value, 1>(args.values + position + rank).at[0]);
    }
    return staged;
}

// Adds a staged chunk to the sums.
__device__ __forceinline__ void sum_chunk(const BlockOperands &args, const Staged *stage, int live,
                                          const Value *b, const Span &span,
                                          Accum (&sum)[ROWS][TILES][VECTOR]) {
#pragma unroll 1
    for (int e = 0; e < live; e += UNROLL) {
        Staged staged[UNROLL];
        tile::Pack<Value, VECTOR> row[UNROLL][TILES];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            staged[u] = stage[e + u];
            const Value *from =
                b + (u64)(Stride)Union::column(staged[u].entry) * (Stride)args.ldb;
#pragma unroll
            for (int k = 0; k < TILES; ++k)
                row[u][k] = tile::load_if<Value, VECTOR>(e + u < live && span.has(k), from + k * LANES * VECTOR);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
                if (Union::has(staged[u].entry, r))
#pragma unroll
                    for (int k = 0; k < TILES; ++k)
#pragma unroll
                        for (int v = 0; v < VECTOR; ++v)
                            sum[r][k][v] = Ring::mul_add(
                                staged[u].value[r], tile::widen_at(row[u][k], v), sum[r][k][v]);
    }
}

__device__ __forceinline__ void store(const BlockOperands &args, u64 block, const Span &span,
                                      int sub, Accum (&sum)[ROWS][TILES][VECTOR]) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int k = 0; k < TILES; ++k) {
#pragma unroll
            for (int distance = LANES; distance < GROUP; distance *= 2)
#pragma unroll
                for (int v = 0; v < VECTOR; ++v)
                    sum[r][k][v] = Ring::add(sum[r][k][v],
                                             __shfl_xor_sync(~0u, sum[r][k][v], distance));
            const u64 row = block * ROWS + r;
            if (sub == 0 && row < args.rows && span.has(k))
                finish_row<Ring, STEPS>(args, sum[r][k], row, span.at(k));
        }
}

// One group's block in one panel. The groups of a warp step through chunks together; the next chunk
// is loaded while this one is summed.
__device__ __forceinline__ void multiply(const BlockOperands &args, u64 block, const Header &header,
                                         u64 column, int sub, Staged *stage) {
    const Span span(args.columns, column);
    Accum sum[ROWS][TILES][VECTOR];
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int k = 0; k < TILES; ++k)
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) sum[r][k][v] = Ring::zero();

    const int lane = threadIdx.x % LANES;
    Staged next = read_entry(args, header, sub, lane);
    bool more = true;
    for (u32 chunk = sub; more; chunk += SUBGROUPS) {
        __syncwarp();
        stage[lane] = next;
        __syncwarp();
        more = __any_sync(~0u, (chunk + SUBGROUPS) * LANES < header.count);
        if (more) next = read_entry(args, header, chunk + SUBGROUPS, lane);
        const int left = (int)header.count - (int)(chunk * LANES);
        sum_chunk(args, stage, left < LANES ? left : LANES, args.b + column, span, sum);
    }
    store(args, block, span, sub, sum);
}

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT / BLOCK)
    row_block(const __grid_constant__ BlockOperands args) {
    ptx::wait_for_prerequisites();
    // One element of padding a subgroup, so that the subgroups of a warp read different banks.
    __shared__ Staged stage[BLOCK / LANES][LANES + 1];
    const u64 block = (u64)blockIdx.x * (BLOCK / GROUP) + threadIdx.x / GROUP;
    const Header header = read_header(args, block);
    const int sub = threadIdx.x % GROUP / LANES;
    const u64 lane = threadIdx.x % LANES * VECTOR;
    for (u64 panel = blockIdx.y; panel * PANEL < args.columns; panel += gridDim.y)
        multiply(args, block, header, panel * PANEL + lane, sub, stage[threadIdx.x / LANES]);
}
