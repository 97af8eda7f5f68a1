// Values of consecutive entries of a list of nonzeros, by the groups of a CTA.
//
//   lane l of a group: elements (k LANES + l) VECTOR + 0..VECTOR-1 of a panel of the depth, k < TILES
//   batch  -> rows and columns of BATCH nonzeros come to shared memory while the batch before is computed, their
//             values leave together: a chunk of CHUNK nonzeros waits for its rows of X and Y alone
//   chunk  -> all its rows of Y are in flight at once; a row of X is loaded where it differs from that before
//   the sums of a chunk are reduced together (sddmm/sums.cuh)
//
// Every sum is made in the same order wherever its nonzero stands: the same bits in every run.
//
// Invariants: VECTOR divides the depth, leading dimensions and the addresses of X and Y; no lane lacks elements of
// the first WHOLE tiles of a panel; there is a nonzero; values overlap no other operand. ORDERED is declared by who
// includes this: whether `positions` says where the values of the list's entries are.
#include "common/semiring.cuh"
#include "ptx/dependents.cuh"
#include "sddmm/sums.cuh"

using Value = GUSTAV_VALUE;
using Index = GUSTAV_INDEX;        // columns
using Row = GUSTAV_ROW;            // rows of nonzeros
using Position = GUSTAV_POSITION;  // of nonzeros in the values
using Stride = GUSTAV_STRIDE;      // bytes between rows of X and of Y
using Accum = typename Accumulator<Value>::Type;

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int VECTOR = GUSTAV_VECTOR;
constexpr int LANES = GUSTAV_LANES;
constexpr int TILES = GUSTAV_TILES;
constexpr int WHOLE = GUSTAV_WHOLE;
constexpr int CHUNK = GUSTAV_CHUNK;
constexpr bool ONE_PANEL = GUSTAV_ONE_PANEL;  // whether a panel holds the whole depth
constexpr int RESIDENT = GUSTAV_RESIDENT;

constexpr int GROUPS = BLOCK / LANES;
constexpr int BATCH = GUSTAV_BATCH;
constexpr int EACH = (BATCH + LANES - 1) / LANES;  // nonzeros of a batch that a lane loads
constexpr int HALF = CHUNK < 4 ? CHUNK : 4;        // rows of X that are loaded together
constexpr u64 STEP = GROUPS * BATCH;               // nonzeros of a batch of every group
static_assert(BATCH % CHUNK == 0, "whole chunks");

using Span = tile::Span<VECTOR, LANES, TILES, WHOLE>;
using Part = tile::Pack<Value, VECTOR>;
using Total = tile::Totals<Accum, CHUNK, LANES>;

#include "gustav_cuda::sddmm::nonzeros::List"

// A group's batch and the next one. Groups of a warp begin in different banks.
struct alignas(16) Stage {
    Index column[2][BATCH];
    Row row[2][BATCH];
    Position position[ORDERED ? 2 : 1][ORDERED ? BATCH : 1];
    Accum sum[BATCH];
    u32 apart[4];
};
template <class T>
struct alignas(sizeof(T) * CHUNK < 16 ? sizeof(T) * CHUNK : 16) Chunk {
    T at[CHUNK];
};
// Whether all of a chunk are of one row. Rows of the stored order never come back; those of another order may.
__device__ __forceinline__ bool is_of_one_row(const Chunk<Row> &row) {
    bool same = row.at[0] == row.at[CHUNK - 1];
#pragma unroll
    for (int u = 1; ORDERED && u < CHUNK - 1; ++u) same &= row.at[u] == row.at[0];
    return same;
}
template <class T>
__device__ __forceinline__ Chunk<T> chunk_of(const T (&batch)[BATCH], int first) {
    return *reinterpret_cast<const Chunk<T> *>(batch + first);
}

// Brings a batch; what lies past the end is the last nonzero again.
__device__ __forceinline__ void bring(const List &args, u64 at, u64 end, Stage &stage, int to) {
    const int lane = threadIdx.x % LANES;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        const int k = i * LANES + lane;
        if (k >= BATCH) continue;
        const u64 n = at + k < end ? at + k : end - 1;
        sddmm::bring(&stage.column[to][k], args.columns + n);
        sddmm::bring(&stage.row[to][k], args.rows + n);
        if constexpr (ORDERED) sddmm::bring(&stage.position[to][k], args.positions + n);
    }
    ptx::close_copies();
}

// Computes entries begin to end - 1, of which there is one at least.
__device__ __forceinline__ void compute(const List &args, u64 begin, u64 end) {
    __shared__ Stage stages[GROUPS];
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    Stage &stage = stages[group];
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
        if (step + STEP < end) bring(args, at + STEP, end, stage, now ^ 1);
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
                // Of the row in x, if it is there.
                const auto is_held = [&](Row of) { return ONE_PANEL && holds && of == held; };
                if (is_of_one_row(row)) {
                    if (!is_held(row.at[0])) of_x.load(row.at[0], span, x);
#pragma unroll
                    for (int u = 0; u < CHUNK; ++u) sddmm::add_products(x, y[u], span, sum[u]);
                } else {
#pragma unroll
                    for (int h = 0; h < CHUNK; h += HALF) {
                        Part own[HALF][TILES];
                        const bool goes_on = h > 0 ? row.at[h] == row.at[h - 1] : is_held(row.at[0]);
#pragma unroll
                        for (int u = 0; u < HALF; ++u)
                            if (u == 0 ? !goes_on : row.at[h + u] != row.at[h + u - 1])
                                of_x.load(row.at[h + u], span, own[u]);
#pragma unroll
                        for (int u = 0; u < HALF; ++u) {
                            if (u == 0 ? goes_on : row.at[h + u] == row.at[h + u - 1])
#pragma unroll
                                for (int k = 0; k < TILES; ++k) own[u][k] = u == 0 ? x[k] : own[u - 1][k];
                            sddmm::add_products(own[u], y[h + u], span, sum[h + u]);
                        }
#pragma unroll
                        for (int k = 0; k < TILES; ++k) x[k] = own[HALF - 1][k];
                    }
                }
                holds = true, held = row.at[CHUNK - 1];
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
            if (k >= BATCH || at + k >= end) continue;
            u64 p = at + k;
            if constexpr (ORDERED) p = stage.position[now][k];
            sddmm::finish<Value>(args, p, stage.sum[k], alpha, beta);
        }
        __syncwarp();
    }
}
