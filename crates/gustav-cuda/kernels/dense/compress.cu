// compress: a dense row-major matrix becomes CSR on the device.
// The three steps of Chen et al. 2025, section 3.3: count the entries of every row, prefix sum,
// fill; the paper's outlook (section 8) moves them to the GPU.
//
//   count, fill: warp -> a row, lane -> columns lane, lane + 32, ...
//   sum: one CTA -> all rows, a tile of THREADS at a time
//
// PATTERN 1: every element that is not marked absent (common/absent.cuh) is an entry, zeros
// included. PATTERN 0: every element that is not zero, as in the paper.
#include "common/absent.cuh"

using Value = GUSTAV_VALUE;

constexpr int THREADS = GUSTAV_THREADS;
constexpr bool PATTERN = GUSTAV_PATTERN;
constexpr int WARP = 32, WARPS = THREADS / WARP;

#include "gustav_cuda::matrix::compress::Arguments"

__device__ __forceinline__ bool is_entry(Value v) {
    return PATTERN ? !is_absent(v) : v != Value(0);
}

// offsets[row + i + 1] = entries of row i.
extern "C" __global__ void __launch_bounds__(THREADS) count(const Arguments args) {
    const int lane = threadIdx.x % WARP;
    const u64 step = (u64)gridDim.x * WARPS;
    for (u64 i = (u64)blockIdx.x * WARPS + threadIdx.x / WARP; i < args.rows; i += step) {
        const Value *row = args.dense + i * args.ld;
        u32 own = 0;
#pragma unroll 8
        for (u64 j = lane; j < args.columns; j += WARP) own += is_entry(row[j]);
        for (int distance = WARP / 2; distance > 0; distance /= 2)
            own += __shfl_xor_sync(0xffffffffu, own, distance);
        if (lane == 0) args.offsets[args.row + i + 1] = own;
    }
}

// Counts become offsets; their sum, which may exceed 32 bits, is written separately.
extern "C" __global__ void __launch_bounds__(THREADS) sum(const Arguments args) {
    __shared__ u64 warps[WARPS];
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    u64 before = 0;
    for (u64 tile = 0; tile < args.rows; tile += THREADS) {
        const u64 i = tile + threadIdx.x;
        u64 own = i < args.rows ? args.offsets[i + 1] : 0;
        for (int distance = 1; distance < WARP; distance *= 2) {
            const u64 left = __shfl_up_sync(0xffffffffu, own, distance);
            if (lane >= distance) own += left;
        }
        if (lane == WARP - 1) warps[warp] = own;
        __syncthreads();
        u64 all = 0;
        for (int w = 0; w < WARPS; ++w) {
            if (w < warp) own += warps[w];
            all += warps[w];
        }
        if (i < args.rows) args.offsets[i + 1] = (u32)(before + own);
        before += all;
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        args.offsets[0] = 0;
        *args.total = before;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) fill(const Arguments args) {
    const int lane = threadIdx.x % WARP;
    const u64 step = (u64)gridDim.x * WARPS;
    for (u64 i = (u64)blockIdx.x * WARPS + threadIdx.x / WARP; i < args.rows; i += step) {
        const Value *row = args.dense + i * args.ld;
        u64 at = args.offsets[args.row + i];
#pragma unroll 4
        for (u64 j = 0; j < args.columns; j += WARP) {
            const bool inside = j + lane < args.columns;
            const Value v = inside ? row[j + lane] : Value(0);
            const u32 entries = __ballot_sync(0xffffffffu, inside && is_entry(v));
            if (entries >> lane & 1) {
                const u64 to = at + __popc(entries & ((1u << lane) - 1));
                args.indices[to] = (u32)(j + lane);
                args.values[to] = v;
            }
            at += __popc(entries);
        }
    }
}
