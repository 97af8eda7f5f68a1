// dense-naive: C = alpha A B, all dense and row-major. Chen et al. 2025, section 4.2.1.
//
// Idea: one thread computes one element of C with a loop over all of a row of A and a column of B.
// Elements that are not stored are zeros, which are multiplied like the others; what adds up to zero
// is no entry of C, as in the paper's conversion to CSR.
//
// A variant (TESTED) marks them instead, tests both factors and leaves them out: infinity times such
// a zero would be NaN, and entries of zero stay entries.
//
//   spread: warp -> a row of a CSR matrix, scattered to its columns
//   multiply: grid.x, threadIdx.x -> columns of C     grid.y, threadIdx.y -> rows of C
#include "common/absent.cuh"

using Value = GUSTAV_VALUE;

constexpr int WIDTH = GUSTAV_WIDTH;
constexpr int HEIGHT = GUSTAV_HEIGHT;
constexpr bool TESTED = GUSTAV_TESTED;

#include "gustav_cuda::papers::spgemm::dense_naive::Spread"

// One lane adds, so that entries with repeated columns are added in order.
extern "C" __global__ void __launch_bounds__(WIDTH *HEIGHT) spread(const Spread args) {
    constexpr int WARP = 32, WARPS = WIDTH * HEIGHT / WARP;
    const int lane = threadIdx.x % WARP;
    const u64 step = (u64)gridDim.x * WARPS;
    for (u64 i = (u64)blockIdx.x * WARPS + threadIdx.x / WARP; i < args.rows; i += step) {
        Value *to = args.dense + i * args.ld;
        for (u64 j = lane; j < args.ld; j += WARP) to[j] = TESTED ? absent<Value>() : Value(0);
        __syncwarp();
        if (lane > 0) continue;
        for (u64 at = args.offsets[i], end = args.offsets[i + 1]; at < end; ++at)
            to[args.indices[at]] = entry(to[args.indices[at]] + args.values[at]);
    }
}

#include "gustav_cuda::papers::spgemm::dense_naive::Arguments"

extern "C" __global__ void __launch_bounds__(WIDTH *HEIGHT) multiply(const Arguments args) {
    const u64 j = (u64)blockIdx.x * WIDTH + threadIdx.x % WIDTH;
    if (j >= args.columns) return;
    const u64 step = (u64)gridDim.y * HEIGHT;
    for (u64 i = (u64)blockIdx.y * HEIGHT + threadIdx.x / WIDTH; i < args.rows; i += step) {
        Value sum = TESTED ? absent<Value>() : Value(0);
        for (u64 l = 0; l < args.inner; ++l) {
            const Value a = args.a[i * args.inner + l], b = args.b[l * args.columns + j];
            if constexpr (TESTED) {
                if (!is_absent(a) && !is_absent(b)) sum = entry(sum + a * b);
            } else {
                sum += a * b;
            }
        }
        if (!TESTED && sum == Value(0)) sum = absent<Value>();
        args.c[i * args.ldc + j] = scaled(from_bits<Value>(args.alpha), sum);
    }
}
