// nonzero-split of SDDMM: values[p] = alpha <X[row p], Y[column p]> factors[p] + beta values[p] for every nonzero p. Ours.
//
// Idea: nonzeros do not depend on each other, so that equal numbers of them are equal work, whatever the
// lengths of rows. A group of lanes holds a panel of the depth, takes CHUNK nonzeros at a time and has all
// their rows of Y in flight at once. Neighbouring nonzeros share a row: its row of X stays in registers.
//
//   grid.x -> BATCHES batches of BATCH nonzeros for each of the BLOCK / LANES groups of a CTA, one after another
//   lane l of a group: elements (k LANES + l) VECTOR + 0..VECTOR-1 of a panel of the depth, k < TILES
//   batch  -> rows and columns come to shared memory while the batch before is computed, its values leave together:
//             a chunk waits for its rows of X and Y alone
//   the sums of a chunk are reduced together (sddmm/sums.cuh)
//
// Every sum is made in the same order wherever its nonzero stands: the same bits in every run.
//
// Invariants: VECTOR divides the depth, leading dimensions and the addresses of X and Y; no lane lacks elements of
// the first WHOLE tiles of a panel; there is a nonzero; values overlap no other operand.
#include "common/semiring.cuh"
#include "ptx/dependents.cuh"
#include "sddmm/sums.cuh"

using Value = GUSTAV_VALUE;
using Index = GUSTAV_INDEX;  // columns
using Offset = GUSTAV_OFFSET;
using Row = GUSTAV_ROW;        // rows of nonzeros
using Stride = GUSTAV_STRIDE;  // bytes between rows of X and of Y
using Accum = typename Accumulator<Value>::Type;

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int VECTOR = GUSTAV_VECTOR;
constexpr int LANES = GUSTAV_LANES;
constexpr int TILES = GUSTAV_TILES;
constexpr int WHOLE = GUSTAV_WHOLE;
constexpr int CHUNK = GUSTAV_CHUNK;
constexpr int BATCHES = GUSTAV_BATCHES;
constexpr bool ONE_PANEL = GUSTAV_ONE_PANEL;  // whether a panel holds the whole depth
constexpr int RESIDENT = GUSTAV_RESIDENT;

constexpr int GROUPS = BLOCK / LANES;
constexpr int BATCH = LANES >= 8 ? 32 : 4 * LANES < CHUNK ? CHUNK : 4 * LANES;
constexpr int EACH = (BATCH + LANES - 1) / LANES;  // nonzeros of a batch that a lane loads
constexpr int HALF = CHUNK < 4 ? CHUNK : 4;        // rows of X that are loaded together
static_assert(BATCH % CHUNK == 0 && BATCH % LANES == 0, "whole chunks, the same number for every lane");

using Span = tile::Span<VECTOR, LANES, TILES, WHOLE>;
using Part = tile::Pack<Value, VECTOR>;
using Total = sddmm::Totals<Accum, CHUNK, LANES>;

#include "gustav_cuda::sddmm::nonzero_split::Arguments"

// A group's batch and the next one. Groups of a warp begin in different banks.
struct alignas(16) Stage {
    Index column[2][BATCH];
    Row row[2][BATCH];
    Accum sum[BATCH];
    u32 apart[4];
};
template <class T>
struct alignas(sizeof(T) * CHUNK < 16 ? sizeof(T) * CHUNK : 16) Chunk {
    T at[CHUNK];
};
template <class T>
__device__ __forceinline__ Chunk<T> chunk_of(const T (&batch)[BATCH], int first) {
    return *reinterpret_cast<const Chunk<T> *>(batch + first);
}

// Brings a batch; what lies past the end is the last nonzero again.
__device__ __forceinline__ void bring(const Arguments &args, u64 at, u64 end, Stage &stage, int to) {
    const int lane = threadIdx.x % LANES;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const int k = i * LANES + lane;
        const u64 p = at + k < end ? at + k : end - 1;
        sddmm::bring(&stage.column[to][k], args.columns + p);
        sddmm::bring(&stage.row[to][k], args.rows + p);
    }
    ptx::close_copies();
}

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT / BLOCK)
    nonzero_split(const __grid_constant__ Arguments args) {
    __shared__ Stage stages[GROUPS];
    ptx::wait_for_prerequisites();
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    Stage &stage = stages[group];
    constexpr u64 STEP = GROUPS * BATCH;
    const u64 begin = blockIdx.x * (STEP * BATCHES);
    const u64 end = args.nonzeros - begin < STEP * BATCHES ? args.nonzeros : begin + STEP * BATCHES;
    const sddmm::Rows<Value, Stride> of_x(args.x, args.ldx), of_y(args.y, args.ldy);
    const Accum alpha = from_bits<Accum>(args.alpha), beta = from_bits<Accum>(args.beta);

    bool holds = false;  // whether there is a row of X in registers, and whose
    Row held = 0;
    Part x[TILES];
    u64 at = begin + group * BATCH;
    bring(args, at, end, stage, 0);
    int now = 0;
#pragma unroll 1
    for (u64 step = begin; step < end; step += STEP, at += STEP, now ^= 1) {
        ptx::wait_copies<0>();
        __syncwarp();
        if (BATCHES > 1 && step + STEP < end) bring(args, at + STEP, end, stage, now ^ 1);
#pragma unroll 1
        for (int c = 0; c < BATCH; c += CHUNK) {
            const auto column = chunk_of(stage.column[now], c);
            const auto row = chunk_of(stage.row[now], c);
            Accum sum[CHUNK];
#pragma unroll
            for (int u = 0; u < CHUNK; ++u) sum[u] = 0;
            for (u64 panel = 0; panel < (ONE_PANEL ? 1 : args.depth); panel += Span::PANEL) {
                const Span span(args.depth, panel + lane * VECTOR);
                Part y[CHUNK][TILES];
#pragma unroll
                for (int u = 0; u < CHUNK; ++u) of_y.load(column.at[u], span, y[u]);
                if (row.at[0] == row.at[CHUNK - 1]) {
                    if (!ONE_PANEL || !holds || row.at[0] != held) of_x.load(row.at[0], span, x);
                    holds = true, held = row.at[0];
#pragma unroll
                    for (int u = 0; u < CHUNK; ++u) sddmm::add_products(x, y[u], span, sum[u]);
                } else {
#pragma unroll
                    for (int h = 0; h < CHUNK; h += HALF) {
                        Part own[HALF][TILES];
#pragma unroll
                        for (int u = 0; u < HALF; ++u) of_x.load(row.at[h + u], span, own[u]);
#pragma unroll
                        for (int u = 0; u < HALF; ++u)
                            sddmm::add_products(own[u], y[h + u], span, sum[h + u]);
#pragma unroll
                        for (int k = 0; k < TILES; ++k) x[k] = own[HALF - 1][k];
                    }
                    holds = true, held = row.at[CHUNK - 1];
                }
            }
            __syncwarp();
            const int first = Total::add(sum);
            if (Total::mine())
#pragma unroll
                for (int u = 0; u < Total::COUNT; ++u) stage.sum[c + first + u] = sum[u];
        }
        __syncwarp();
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const int k = i * LANES + lane;
            if (at + k < end) sddmm::finish<Value>(args, at + k, stage.sum[k], alpha, beta);
        }
        __syncwarp();
    }
}

#include "gustav_cuda::sddmm::nonzero_split::RowArguments"

// The row of every nonzero, for the plan: thread p looks for that of nonzero p.
extern "C" __global__ void __launch_bounds__(256) rows_of_nonzeros(const RowArguments args) {
    const u64 p = (u64)blockIdx.x * 256 + threadIdx.x;
    if (p >= args.nonzeros) return;
    u64 low = 0, high = args.row_count;  // offsets[low] <= p < offsets[high]
    while (high - low > 1) {
        const u64 middle = low + (high - low) / 2;
        if (__ldg(args.offsets + middle) <= p)
            low = middle;
        else
            high = middle;
    }
    args.rows[p] = (Row)low;
}
