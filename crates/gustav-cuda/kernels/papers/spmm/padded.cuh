// Rows padded to slots in a regular layout: the common part of sell-p and ell-r. A Shape gives the
// layout of a row's slots and the threads of a row.
//
//   Shape::line     -> the first slot of a row, and how far apart its next ones are
//   Shape::entries  -> how many of them are read
//   Shape::place    -> a thread's row, its index among the LANES of the row, its columns
//
// The plan converts the pattern once: the column of every slot, and the nonzero that its value is
// gathered from. A slot without a nonzero has a column that marks it; its value is never read.
// Entry e of a row is read by lane e % LANES, so that lanes of a warp read neighbouring slots; each
// thread sums VECTOR columns, and the lanes of a row are reduced by shuffles.
//
// Invariants: VECTOR divides columns, leading dimensions and addresses of B and C; LANES threads of
// a row lie in one warp, Shape::DISTANCE apart.
#pragma once
#include "common/epilogue.cuh"

using Value = GUSTAV_VALUE;
using Ring = PlusTimes<Value>;

constexpr int LANES = GUSTAV_LANES;
constexpr int VECTOR = GUSTAV_VECTOR;
constexpr int BLOCK = GUSTAV_BLOCK;
static_assert(LANES <= 32 && 32 % LANES == 0, "a row lies in one warp");

constexpr u32 NONE = 0xffffffffu;

#include "gustav_cuda::papers::spmm::padded::Arguments"

// The slots of a row: entry e is at first + (e / LANES) step + (e % LANES) lane_step.
struct Line {
    u64 first, step, lane_step;
    u64 entries;

    __device__ __forceinline__ u64 slot(u64 e) const {
        return first + e / LANES * step + e % LANES * lane_step;
    }
};

struct Place {
    u64 row;
    int lane;
    u64 strip;           // the thread's VECTOR columns among those of its CTA
    u64 first, strips;   // the CTA's first strip, and the step to its next ones
};

// Fills the slots of every row. One thread a row.
template <class Shape>
__device__ __forceinline__ void convert(const Arguments &args) {
    const u64 row = (u64)blockIdx.x * BLOCK + threadIdx.x;
    if (row >= args.lines) return;
    const Line line = Shape::line(args, row);
    const u64 first = row < args.rows ? args.offsets[row] : 0;
    const u64 count = row < args.rows ? args.offsets[row + 1] - first : 0;
    for (u64 e = 0; e < line.entries; ++e) {
        const u64 slot = line.slot(e);
        args.columns_of[slot] = e < count ? args.indices[first + e] : NONE;
        args.source[slot] = e < count ? (u32)(first + e) : NONE;
    }
}

template <class Shape>
__device__ __forceinline__ void multiply(const Arguments &args) {
    const Place place = Shape::place();
    const bool live = place.row < args.rows;
    const Line line = live ? Shape::line(args, place.row) : Line{0, 0, 0, 0};
    const u64 entries = live ? Shape::entries(args, place.row, line) : 0;
    // All threads of a CTA take the same number of strips, as the shuffles need every lane.
    for (u64 base = place.first; base * VECTOR < args.columns; base += place.strips) {
        const u64 j = (base + place.strip) * VECTOR;
        const bool inside = live && j < args.columns;
        Value sum[VECTOR];
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) sum[v] = Ring::zero();
        for (u64 e = place.lane; inside && e < entries; e += LANES) {
            const u64 slot = line.slot(e);
            const u32 column = __ldg(args.columns_of + slot);
            if (column == NONE) continue;
            const Value a = __ldg(args.values + slot);
            const auto row = tile::load<Value, VECTOR>(args.b + column * args.ldb + j);
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) sum[v] = Ring::mul_add(a, row.at[v], sum[v]);
        }
#pragma unroll
        for (int d = Shape::DISTANCE; d < Shape::DISTANCE * LANES; d *= 2)
#pragma unroll
            for (int v = 0; v < VECTOR; ++v)
                sum[v] = Ring::add(sum[v], __shfl_xor_sync(~0u, sum[v], d));
        if (inside && place.lane == 0)
            finish<Ring>(sum, from_bits<Value>(args.alpha), from_bits<Value>(args.beta),
                         args.c + place.row * args.ldc + j);
    }
}
