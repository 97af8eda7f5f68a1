// nonzero-split of SDDMM: values[p] = alpha <X[row p], Y[column p]> factors[p] + beta values[p] for every nonzero p. Ours.
//
// Idea: nonzeros do not depend on each other, so that equal numbers of them are equal work, whatever the
// lengths of rows. A group of lanes holds a panel of the depth, takes CHUNK nonzeros at a time and has all
// their rows of Y in flight at once. Neighbouring nonzeros share a row: its row of X stays in registers.
//
//   grid.x -> NONZEROS a group, BLOCK / LANES groups a CTA
//   lane l of a group: elements (k LANES + l) VECTOR + 0..VECTOR-1 of a panel of the depth, k < TILES
//   the CHUNK sums of a group are reduced together: every step halves the lanes of a sum and the sums of a
//   lane, CHUNK - 1 + log2(LANES / CHUNK) shuffles in all, where one after another takes CHUNK log2(LANES)
//
// Every sum is made in the same order wherever its nonzero stands: the same bits in every run.
//
// Invariants: VECTOR divides the depth, leading dimensions and the addresses of X and Y; there is a nonzero;
// values overlap no other operand.
#include "common/semiring.cuh"
#include "ptx/dependents.cuh"
#include "tile/pack.cuh"
#include "tile/span.cuh"

using Value = GUSTAV_VALUE;
using Index = GUSTAV_INDEX;  // columns
using Offset = GUSTAV_OFFSET;
using Row = GUSTAV_ROW;      // rows of nonzeros
using Accum = typename Accumulator<Value>::Type;

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int VECTOR = GUSTAV_VECTOR;
constexpr int LANES = GUSTAV_LANES;
constexpr int TILES = GUSTAV_TILES;
constexpr int CHUNK = GUSTAV_CHUNK;
constexpr int NONZEROS = GUSTAV_NONZEROS;  // of a group
constexpr bool ONE_PANEL = GUSTAV_ONE_PANEL;  // whether a panel holds the whole depth
constexpr bool WIDE = GUSTAV_WIDE;            // whether rows and columns begin at multiples of 16 bytes
constexpr int RESIDENT = GUSTAV_RESIDENT;

constexpr int PANEL = LANES * TILES * VECTOR;
constexpr int SUMS = CHUNK > LANES ? CHUNK / LANES : 1;  // of a lane, after they were reduced

using Span = tile::Span<VECTOR, LANES, TILES, 0>;
using Part = tile::Pack<Value, VECTOR>;

#include "gustav_cuda::sddmm::nonzero_split::Arguments"

// CHUNK neighbours from `at` on, of which the last stands for those past the end.
template <class T>
__device__ __forceinline__ tile::Pack<T, CHUNK> neighbours(const T *from, u64 at, u64 count) {
    if (WIDE && at + CHUNK <= count) return tile::load<T, CHUNK>(from + at);
    tile::Pack<T, CHUNK> pack;
#pragma unroll
    for (int u = 0; u < CHUNK; ++u) pack.at[u] = __ldg(from + (at + u < count ? at + u : count - 1));
    return pack;
}

__device__ __forceinline__ void load_row(const Value *row, const Span &span, Part (&part)[TILES]) {
#pragma unroll
    for (int k = 0; k < TILES; ++k)
        if (span.has(k)) part[k] = tile::load<Value, VECTOR>(row + span.at(k));
}

__device__ __forceinline__ void add_products(const Part (&x)[TILES], const Part (&y)[TILES],
                                             const Span &span, Accum &sum) {
#pragma unroll
    for (int k = 0; k < TILES; ++k) {
        if (!span.has(k)) continue;
#pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            sum = times_plus(tile::widen_at(x[k], v), tile::widen_at(y[k], v), sum);
    }
}

// Adds the sums up over the lanes. Lane l ends with those of nonzeros first.. first + SUMS - 1 of the chunk;
// returns first. Lanes that differ in the bits below LANES / CHUNK have the same.
__device__ __forceinline__ int reduce(Accum (&sum)[CHUNK]) {
    const int lane = threadIdx.x % LANES;
    int first = 0;
    int count = CHUNK;
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) {
        if (count > 1) {
            count /= 2;
            const bool upper = lane & step;
            first += upper ? count : 0;
#pragma unroll
            for (int u = 0; u < CHUNK / 2; ++u) {
                if (u >= count) continue;
                const Accum sent = upper ? sum[u] : sum[u + count];
                const Accum held = upper ? sum[u + count] : sum[u];
                sum[u] = plus(held, __shfl_xor_sync(~0u, sent, step));
            }
        } else {
            sum[0] = plus(sum[0], __shfl_xor_sync(~0u, sum[0], step));
        }
    }
    return first;
}

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT / BLOCK)
    nonzero_split(const __grid_constant__ Arguments args) {
    ptx::wait_for_prerequisites();
    const int lane = threadIdx.x % LANES;
    const u64 count = args.nonzeros;
    u64 at = ((u64)blockIdx.x * (BLOCK / LANES) + threadIdx.x / LANES) * NONZEROS;
    const Accum alpha = from_bits<Accum>(args.alpha);
    const Accum beta = from_bits<Accum>(args.beta);
    const bool writes = LANES <= CHUNK || lane % (LANES / CHUNK) == 0;

    Row held = ~(Row)0;  // whose row of X is in registers
    Part x[TILES];
    auto columns = neighbours(args.columns, at, count);
    auto rows = neighbours(args.rows, at, count);
#pragma unroll 1
    for (int done = 0; done < NONZEROS; done += CHUNK, at += CHUNK) {
        const auto column = columns;
        const auto row = rows;
        if (done + CHUNK < NONZEROS) {
            columns = neighbours(args.columns, at + CHUNK, count);
            rows = neighbours(args.rows, at + CHUNK, count);
        }
        Accum sum[CHUNK];
#pragma unroll
        for (int u = 0; u < CHUNK; ++u) sum[u] = 0;
        for (u64 panel = 0; panel < (ONE_PANEL ? 1 : args.depth); panel += PANEL) {
            const Span span(args.depth, panel + lane * VECTOR);
            Part y[CHUNK][TILES];
#pragma unroll
            for (int u = 0; u < CHUNK; ++u) load_row(args.y + (u64)column.at[u] * args.ldy, span, y[u]);
            if (row.at[0] == row.at[CHUNK - 1]) {
                if (!ONE_PANEL || row.at[0] != held) load_row(args.x + (u64)row.at[0] * args.ldx, span, x);
                held = row.at[0];
#pragma unroll
                for (int u = 0; u < CHUNK; ++u) add_products(x, y[u], span, sum[u]);
            } else {
                Part own[CHUNK][TILES];
#pragma unroll
                for (int u = 0; u < CHUNK; ++u) load_row(args.x + (u64)row.at[u] * args.ldx, span, own[u]);
#pragma unroll
                for (int u = 0; u < CHUNK; ++u) add_products(own[u], y[u], span, sum[u]);
#pragma unroll
                for (int k = 0; k < TILES; ++k) x[k] = own[CHUNK - 1][k];
                held = row.at[CHUNK - 1];
            }
        }
        __syncwarp();
        const int first = reduce(sum);
        if (!writes) continue;
#pragma unroll
        for (int u = 0; u < SUMS; ++u) {
            const u64 p = at + first + u;
            if (p >= count) continue;
            Accum result = times(alpha, sum[u]);
            if (args.factors) result = times(result, widen(args.factors[p]));
            if (beta != 0) result = times_plus(beta, widen(args.values[p]), result);
            args.values[p] = Narrow<Value>::from(result);
        }
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
