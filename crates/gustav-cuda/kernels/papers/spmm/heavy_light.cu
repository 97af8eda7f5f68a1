// heavy-light: C = alpha A B + beta C, A in CSR, B and C row-major.
// Hong, Sukumaran-Rajam, Bandyopadhyay, Kim, Kurt, Nisa, Sabhlok, Catalyurek, Parthasarathy,
// Sadayappan 2018.
//
// Idea: the columns of A are cut into panels of PANEL, as many rows of B as shared memory holds.
// The entries of a row in one panel are heavy when there are enough of them; heavy segments of a
// panel share the rows of B that the CTA has copied to shared memory. The other entries are light:
// a matrix in DCSR, for which B is read from memory.
//
//            panel 0    panel 1
//   row a   | x x x x | . x . . |     heavy: a in panel 0, c in panel 1
//   row b   | . x . . | . . . . |     light: a (1 entry), b (1), c (1)
//   row c   | . . x . | x x x . |
//
//   scale:  C = beta C
//   light:  warp -> row, WIDTH columns; lane l -> column WIDTH strip + l; the only writer of its row
//   heavy:  CTA -> a group of segments of one panel, warp -> one of them after another; sums are added
//           the light ones in C by atomic additions
//
// The plan copies columns and the sources of values in this order, light entries first.
#include "common/epilogue.cuh"

using Value = GUSTAV_VALUE;
using Ring = PlusTimes<Value>;

constexpr int PANEL = GUSTAV_PANEL;
constexpr int WARPS = GUSTAV_WARPS;
constexpr int WIDTH = 32;
constexpr int BLOCK = WARPS * 32;

// Consecutive entries of one row; segments of one panel are adjacent.
struct Run {
    u32 row;
    u32 first;  // its entries end where those of the next run begin
};

// A CTA's heavy segments.
struct Group {
    u32 panel;
    u32 first, last;
};

#include "gustav_cuda::papers::spmm::heavy_light::Arguments"

extern "C" __global__ void __launch_bounds__(BLOCK) heavy_light_scale(const Arguments args) {
    const Value beta = from_bits<Value>(args.beta), empty[1] = {Ring::zero()};
    const u64 row = (u64)blockIdx.x * WARPS + threadIdx.x / 32;
    if (row >= args.rows) return;
    for (u64 j = threadIdx.x % 32; j < args.columns; j += 32)
        finish<Ring>(empty, Ring::one(), beta, args.c + row * args.ldc + j);
}

// The sum of a run in one column: a batch of 32 entries is read coalesced, one a lane, and broadcast.
template <class LoadB>
__device__ __forceinline__ Value sum_run(const Arguments &args, u32 first, u32 last, bool live,
                                         LoadB load_b) {
    Value sum = Ring::zero();
    for (u32 batch = first; batch < last; batch += 32) {
        const int count = last - batch < 32 ? (int)(last - batch) : 32;
        u32 column = 0;
        Value value = Ring::zero();
        if ((int)(threadIdx.x % 32) < count) {
            column = __ldg(args.indices + batch + threadIdx.x % 32);
            value = __ldg(args.values + batch + threadIdx.x % 32);
        }
        for (int k = 0; k < count; ++k) {
            const u32 shared_column = __shfl_sync(~0u, column, k);
            const Value shared_value = __shfl_sync(~0u, value, k);
            if (live) sum = Ring::mul_add(shared_value, load_b(shared_column), sum);
        }
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(BLOCK) heavy_light_light(const Arguments args) {
    const u64 i = (u64)blockIdx.x * WARPS + threadIdx.x / 32;
    if (i >= args.light_rows) return;
    const Run run = args.light[i];
    const u32 last = args.light[i + 1].first;
    for (u64 strip = blockIdx.y; strip * WIDTH < args.columns; strip += gridDim.y) {
        const u64 j = strip * WIDTH + threadIdx.x % 32;
        const bool live = j < args.columns;
        const Value sum = sum_run(args, run.first, last, live, [&](u32 column) {
            return __ldg(args.b + column * args.ldb + j);
        });
        Value *to = args.c + run.row * args.ldc + j;
        if (live) *to = Ring::add(*to, Ring::scale(from_bits<Value>(args.alpha), sum));
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) heavy_light_heavy(const Arguments args) {
    __shared__ Value tile[PANEL][WIDTH];
    const Group group = args.groups[blockIdx.x];
    const u64 row_of_b = (u64)group.panel * PANEL;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (u64 strip = blockIdx.y; strip * WIDTH < args.columns; strip += gridDim.y) {
        const u64 j = strip * WIDTH + lane;
        const bool live = j < args.columns;
        __syncthreads();
        for (int r = warp; r < PANEL && live && row_of_b + r < args.inner; r += WARPS)
            tile[r][lane] = __ldg(args.b + (row_of_b + r) * args.ldb + j);
        __syncthreads();
        for (u32 s = group.first + warp; s < group.last; s += WARPS) {
            const Run run = args.heavy[s];
            const Value sum =
                sum_run(args, run.first, args.heavy[s + 1].first, live,
                        [&](u32 column) { return tile[column - row_of_b][lane]; });
            if (live)
                atomicAdd(args.c + run.row * args.ldc + j,
                          Ring::scale(from_bits<Value>(args.alpha), sum));
        }
    }
}
