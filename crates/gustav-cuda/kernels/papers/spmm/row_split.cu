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
// In the paper, lanes past the end of a row hold column 0 and value 0; here they are left out of
// the broadcast, as 0 times infinity is not 0 and row 0 of B need not exist.
#include "common/epilogue.cuh"
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

// Adds a batch to the sum of column `j`; `from(k)` is nonzero k of it. A FULL batch is 32
// independent loads of B. The paper issues 32 for other batches too, this kernel as many as there
// are nonzeros.
template <bool FULL, class From>
__device__ __forceinline__ Value add_each(const PaperOperands &args, int count, u64 j, Value sum,
                                          From from) {
    const bool live = j < args.columns;
    const Value *column = args.b + j;
    const u64 ldb = args.ldb;
    if constexpr (FULL) {
        Value a[WARP], b[WARP];
#pragma unroll
        for (int k = 0; k < WARP; ++k) {
            const Batch one = from(k);
            a[k] = one.value;
            if (live) b[k] = __ldg(column + one.column * ldb);
        }
#pragma unroll
        for (int k = 0; k < WARP; ++k)
            if (live) sum = Ring::mul_add(a[k], b[k], sum);
    } else {
#pragma unroll 4
        for (int k = 0; k < count; ++k) {
            const Batch one = from(k);
            if (live) sum = Ring::mul_add(one.value, __ldg(column + one.column * ldb), sum);
        }
    }
    return sum;
}

// Each lane multiplies its own nonzero by the columns of the strip; lane l keeps column l.
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

template <bool FULL>
__device__ __forceinline__ Value add_batch(const PaperOperands &args, const Batch &batch,
                                           u64 first_column, Value sum) {
    const int lane = threadIdx.x % WARP;
    const u64 j = first_column + lane;
    if constexpr (VARIANT == TRANSPOSED) {
        return add_transposed(args, batch, first_column, sum);
    } else if constexpr (VARIANT == SHARED) {
        __shared__ Batch batches[WARPS][WARP];
        Batch *own = batches[threadIdx.x / WARP];
        __syncwarp();
        own[lane] = batch;
        __syncwarp();
        return add_each<FULL>(args, batch.count, j, sum, [&](int k) { return own[k]; });
    } else {
        return add_each<FULL>(args, batch.count, j, sum, [&](int k) {
            return Batch{__shfl_sync(0xffffffffu, batch.column, k),
                         __shfl_sync(0xffffffffu, batch.value, k), 1};
        });
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
    const int warp = threadIdx.x / WARP;
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
            sum[0] = batch.count == WARP ? add_batch<true>(args, batch, strip * WARP, sum[0])
                                         : add_batch<false>(args, batch, strip * WARP, sum[0]);
        }
        if constexpr (VARIANT == CTA_PER_ROW) sum[0] = fix_up(sum[0]);
        if (j < args.columns && (VARIANT != CTA_PER_ROW || warp == 0))
            finish<Ring>(sum, from_bits<Value>(args.alpha), from_bits<Value>(args.beta),
                         args.c + (LINES_OF_C == ROWS ? i * args.ldc + j : j * args.ldc + i));
    }
}
