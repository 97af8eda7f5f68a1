// sell-p: C = alpha A B + beta C, A in sliced ELL with padding, B and C row-major.
// Anzt, Tomov, Dongarra 2015 (the kernel of MAGMA).
//
// Idea: rows come in slices of ROWS. A slice is padded to its longest row, and that to a multiple
// of LANES, so that a step of LANES entries of all its rows is one block of adjacent slots:
//
//   step 0           step 1          slots of a slice, ROWS = 4, LANES = 2
//   a0 b0 c0 d0      a2 b2 .  d2     (letters are rows, numbers their entries, dots padding)
//   a1 b1 c1 d1      a3 .  .  d3
//
//   grid.x -> slices     group = ROWS x LANES threads, row fastest     groups of a CTA -> strips
//   of VECTOR columns; grid.y -> more of them
//
// MAGMA multiplies the padding by zero; here it is skipped, as zero times infinity is not zero.
#include "papers/spmm/padded.cuh"

constexpr int ROWS = GUSTAV_ROWS;
constexpr int GROUP = ROWS * LANES;
static_assert(32 % GROUP == 0, "a slice's step lies in one warp");

struct Slice {
    static constexpr int DISTANCE = ROWS;

    static __device__ __forceinline__ Line line(const Arguments &args, u64 row) {
        const u64 *slice = args.slices + row / ROWS;
        const u64 first = __ldg(slice);
        return {first + row % ROWS, GROUP, ROWS, (__ldg(slice + 1) - first) / ROWS};
    }
    static __device__ __forceinline__ u64 entries(const Arguments &, u64, const Line &line) {
        return line.entries;
    }
    static __device__ __forceinline__ Place place() {
        const int local = threadIdx.x % GROUP;
        const u64 strips = blockDim.x / GROUP;
        return {(u64)blockIdx.x * ROWS + local % ROWS, local / ROWS, threadIdx.x / GROUP,
                blockIdx.y * strips, gridDim.y * strips};
    }
};

extern "C" __global__ void __launch_bounds__(BLOCK) sell_p_convert(const Arguments args) {
    convert<Slice>(args);
}

extern "C" __global__ void __launch_bounds__(BLOCK) sell_p(const Arguments args) {
    multiply<Slice>(args);
}
