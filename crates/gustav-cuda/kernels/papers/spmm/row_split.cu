// row-split: C = alpha A B + beta C, A in CSR, B row-major, C in either layout.
// Yang, Buluc, Owens 2018, section 4.1.
//
// Idea: one warp owns one row and 32 columns of C. It reads a batch of 32 nonzeros coalesced, one
// a lane, then broadcasts them one after another; for each, lane l reads element l of the
// 32-column strip of a row of B, so that those reads are coalesced too.
//
//   grid.x -> WARPS rows a CTA     grid.y -> strips of 32 columns
//   warp   =  one row              lane l -> column 32 strip + l
//
// Variants that the paper tried and discarded (sections 4.1 and 5.2):
//   CTA_PER_ROW  the warps of a CTA share the batches of one row; sums are added in shared memory
//   SHARED       the batch is broadcast through shared memory in place of shuffles
//   TRANSPOSED   lane l reads the row of B of nonzero l, column after column, and the lanes' products
//                are reduced by shuffles
//
// Each also with a column-major C (COLUMNS): lane l writes its sum to column l, so that the stores
// of a warp are a leading dimension apart.
//
// In the paper, lanes past the end of a row hold column 0 and value 0, which are multiplied like the
// others; here a condition leaves them out, as 0 times infinity is not 0 and row 0 of B need not exist.
#include "common/epilogue.cuh"
#include "papers/spmm/column.cuh"
#include "schedule/segments.cuh"

using Value = GUSTAV_VALUE;
using Ring = PlusTimes<Value>;

constexpr int WARPS = GUSTAV_WARPS;
constexpr int WARP = 32;

enum Variant { SHUFFLE, CTA_PER_ROW, SHARED, TRANSPOSED };
constexpr Variant VARIANT = GUSTAV_VARIANT;
constexpr int ROWS_OF_CTA = VARIANT == CTA_PER_ROW ? 1 : WARPS;

enum Lines { ROWS, COLUMNS };
constexpr Lines LINES_OF_C = GUSTAV_LINES_OF_C;

#include "gustav_cuda::papers::PaperOperands"

// Loads of B that a thread issues before it waits for them; a batch is several such rounds. The paper
// issues all 32 at once and has the registers for them.
constexpr int AHEAD = GUSTAV_AHEAD;
static_assert(WARP % AHEAD == 0, "a batch is whole rounds");

// A batch of nonzeros, one a lane.
struct Batch {
    u32 column;
    Value value;
    int count;
};

__device__ __forceinline__ Batch read_batch(const PaperOperands &args, u64 first, u64 last) {
    const int lane = threadIdx.x % WARP;
    Batch batch = {0, Ring::zero(), last - first < WARP ? (int)(last - first) : WARP};
    if (lane < batch.count) {
        batch.column = __ldg(args.indices + first + lane);
        batch.value = __ldg(args.values + first + lane);
    }
    return batch;
}

// Adds nonzeros `k`, `k + 1`, ... of a batch: AHEAD of them if FULL, else those before `count`.
template <bool FULL, class From>
__device__ __forceinline__ Value add_round(const Column<Value> &column, int k, int count, Value sum,
                                           From from) {
    Value b[AHEAD];
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
        const u32 row = from.column(k + i);
        if (FULL || k + i < count) b[i] = column[row];
    }
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
        const Value a = from.value(k + i);
        if (FULL || k + i < count) sum = Ring::mul_add(a, b[i], sum);
    }
    return sum;
}

// Adds a batch, whose nonzeros `from` broadcasts, to the sum of a column.
template <class From>
__device__ __forceinline__ Value add_each(const Column<Value> &column, int count, Value sum, From from) {
    if (count == WARP) {
#pragma unroll
        for (int k = 0; k < WARP; k += AHEAD)
            sum = add_round<true>(column, k, count, sum, from);
    } else {
        int k = 0;
#pragma unroll 1
        for (; k + AHEAD <= count; k += AHEAD) sum = add_round<true>(column, k, count, sum, from);
        if (k < count) sum = add_round<false>(column, k, count, sum, from);
    }
    return sum;
}

// Broadcasts by shuffles.
struct Shuffled {
    const Batch &batch;

    __device__ __forceinline__ u32 column(int k) const {
        return __shfl_sync(0xffffffffu, batch.column, k);
    }
    __device__ __forceinline__ Value value(int k) const {
        return __shfl_sync(0xffffffffu, batch.value, k);
    }
};

// Broadcasts through shared memory.
struct Shared {
    u32 (&columns)[WARP];
    Value (&values)[WARP];

    __device__ __forceinline__ Shared(const Batch &batch, u32 (&columns)[WARP], Value (&values)[WARP])
        : columns(columns), values(values) {
        __syncwarp();
        columns[threadIdx.x % WARP] = batch.column;
        values[threadIdx.x % WARP] = batch.value;
        __syncwarp();
    }
    __device__ __forceinline__ u32 column(int k) const { return columns[k]; }
    __device__ __forceinline__ Value value(int k) const { return values[k]; }
};

// Each lane multiplies its own nonzero by the columns of the strip; lane l takes the sum of column l.
__device__ __forceinline__ Value add_transposed(const PaperOperands &args, const Batch &batch,
                                                u64 first_column, Value sum) {
    const int lane = threadIdx.x % WARP;
    for (int k = 0; k < WARP && first_column + k < args.columns; ++k) {
        Value product = Ring::zero();
        if (lane < batch.count)
            product = Ring::mul_add(
                batch.value, __ldg(args.b + batch.column * args.ldb + first_column + k), product);
#pragma unroll
        for (int d = WARP / 2; d > 0; d /= 2)
            product = Ring::add(product, __shfl_xor_sync(0xffffffffu, product, d));
        if (lane == k) sum = Ring::add(sum, product);
    }
    return sum;
}

__device__ __forceinline__ Value add_batch(const PaperOperands &args, const Batch &batch,
                                           u64 first_column, Value sum) {
    const int warp = threadIdx.x / WARP;
    if constexpr (VARIANT == TRANSPOSED) {
        return add_transposed(args, batch, first_column, sum);
    } else {
        const Column<Value> column(args.b, args.columns, args.ldb, first_column + threadIdx.x % WARP);
        if constexpr (VARIANT == SHARED) {
            __shared__ u32 columns[WARPS][WARP];
            __shared__ Value values[WARPS][WARP];
            return add_each(column, batch.count, sum, Shared(batch, columns[warp], values[warp]));
        } else {
            return add_each(column, batch.count, sum, Shuffled{batch});
        }
    }
}

// The sum of all warps in the first, added in their order.
__device__ __forceinline__ Value fix_up(Value sum) {
    __shared__ Value sums[WARPS][WARP];
    __syncthreads();
    sums[threadIdx.x / WARP][threadIdx.x % WARP] = sum;
    __syncthreads();
    sum = Ring::zero();
    for (int w = 0; w < WARPS; ++w) sum = Ring::add(sum, sums[w][threadIdx.x % WARP]);
    return sum;
}

extern "C" __global__ void __launch_bounds__(WARPS *WARP) row_split(const PaperOperands args) {
    // Broadcast, so that the compiler sees that warps do not diverge at the ends of their rows.
    const int warp = __shfl_sync(0xffffffffu, threadIdx.x / WARP, 0);
    const u64 i = (u64)blockIdx.x * ROWS_OF_CTA + (VARIANT == CTA_PER_ROW ? 0 : warp);
    if (i >= args.rows) return;
    const schedule::Segment<u64> row = schedule::row<u64>(args.offsets, i);
    constexpr int STEP = VARIANT == CTA_PER_ROW ? WARPS * WARP : WARP;
    const u64 start = row.first + (VARIANT == CTA_PER_ROW ? warp * WARP : 0);
    for (u64 strip = blockIdx.y; strip * WARP < args.columns; strip += gridDim.y) {
        const u64 j = strip * WARP + threadIdx.x % WARP;
        Value sum[1] = {Ring::zero()};
        for (u64 first = start; first < row.last; first += STEP) {
            const Batch batch = read_batch(args, first, row.last);
            sum[0] = add_batch(args, batch, strip * WARP, sum[0]);
        }
        if constexpr (VARIANT == CTA_PER_ROW) sum[0] = fix_up(sum[0]);
        if (j < args.columns && (VARIANT != CTA_PER_ROW || warp == 0))
            finish<Ring>(sum, from_bits<Value>(args.alpha), from_bits<Value>(args.beta),
                         args.c + (LINES_OF_C == ROWS ? i * args.ldc + j : j * args.ldc + i));
    }
}
