// ell-r: C = alpha A B + beta C, A in ELLPACK with row lengths, B and C row-major.
// Ortega, Vazquez, Garcia, Garzon 2014 (FastSpMM), over the format ELLR-T.
//
// Idea: every row has as many slots as the longest one has entries, LANES threads a row. Slots of
// one step of all rows are adjacent; row lengths are stored, so that padding is never read:
//
//   step 0                      step 1                      LANES = 2
//   a0 a1 b0 b1 c0 c1 d0 d1     a2 a3 b2 .  .  .  d2 d3
//
//   grid.x -> BLOCK / LANES rows     grid.y -> strips of VECTOR columns
//
// The format takes the longest row times the number of rows, which is large for skewed matrices.
#include "papers/spmm/padded.cuh"

struct Ellpack {
    static constexpr int DISTANCE = 1;

    static __device__ __forceinline__ Line line(const Arguments &args, u64 row) {
        return {row * LANES, args.lines * LANES, 1, args.width};
    }
    static __device__ __forceinline__ u64 entries(const Arguments &args, u64 row, const Line &) {
        return __ldg(args.offsets + row + 1) - __ldg(args.offsets + row);
    }
    static __device__ __forceinline__ Place place() {
        const u64 row = (u64)blockIdx.x * (BLOCK / LANES) + threadIdx.x / LANES;
        return {row, (int)(threadIdx.x % LANES), 0, blockIdx.y, gridDim.y};
    }
};

extern "C" __global__ void __launch_bounds__(BLOCK) ell_r_convert(const Arguments args) {
    convert<Ellpack>(args);
}

extern "C" __global__ void __launch_bounds__(BLOCK) ell_r(const Arguments args) {
    multiply<Ellpack>(args);
}
