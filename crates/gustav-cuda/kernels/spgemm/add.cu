// C = P (+) scale(beta, D): adds a sparse matrix D to a finished product P. The columns of every
// row of both increase.
//
//   count   warp -> a row of C: the number of its entries
//   fill    the same: its columns and values
//
// Both walk P's row and D's row by 32 entries, one a lane, and look every column up in the other
// row. An entry's position in C is the number of smaller columns in the union of both; a column in
// both rows is written by P's lane.
//
// GUSTAV_INDEX, GUSTAV_OFFSET   types of column indices and of row offsets
// GUSTAV_VALUE                  type of values
// GUSTAV_SEMIRING               the two operations
// GUSTAV_BLOCK                  threads of a CTA
#include "common/search.cuh"
#include "common/semiring.cuh"

typedef GUSTAV_INDEX Index;
typedef GUSTAV_OFFSET Offset;
typedef GUSTAV_VALUE Value;
typedef Value Out;
typedef typename Accumulator<Value>::Type Sum;
typedef GUSTAV_SEMIRING<Sum> S;

constexpr u32 BLOCK = GUSTAV_BLOCK, WARPS = BLOCK / 32;

#include "gustav_cuda::spgemm::add::Arguments"

namespace {

// Calls `visit(column, at, other, both, shared)` for every entry of row `row` of `own`, one a lane:
// `at` is its position, `other` the position in `of` where its column is or would be inserted,
// `both` whether it is there, `shared` how many entries before it in the row have their column in
// both. Returns the number of columns in both.
template <class Visit>
__device__ __forceinline__ u64 each(const Matrix &own, const Matrix &of, u64 row, Visit visit) {
    const u32 lane = threadIdx.x % 32;
    const u64 from = own.offsets[row], to = own.offsets[row + 1];
    const u64 first = of.offsets[row], last = of.offsets[row + 1];
    u64 shared = 0;
    for (u64 start = from; start < to; start += 32) {
        const u64 at = start + lane;
        Index column = 0;
        u64 other = 0;
        bool both = false;
        if (at < to) {
            column = own.indices[at];
            other = lower_bound(of.indices, first, last, column);
            both = other < last && of.indices[other] == column;
        }
        const u32 found = __ballot_sync(0xffffffffu, both);
        if (at < to) visit(column, at, other, both, shared + __popc(found & ((1u << lane) - 1)));
        shared += __popc(found);
    }
    return shared;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) count(const Arguments args) {
    const u64 step = (u64)gridDim.x * WARPS;
    for (u64 row = (u64)blockIdx.x * WARPS + threadIdx.x / 32; row < args.rows; row += step) {
        const u64 p = args.p.offsets[row + 1] - args.p.offsets[row];
        const u64 d = args.d.offsets[row + 1] - args.d.offsets[row];
        const auto nothing = [](Index, u64, u64, bool, u64) {};
        // Walk the shorter row.
        const u64 shared = p < d ? each(args.p, args.d, row, nothing)
                                 : each(args.d, args.p, row, nothing);
        if (threadIdx.x % 32 == 0) args.c.offsets[row + 1] = (Offset)(p + d - shared);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) fill(const Arguments args) {
    const Matrix &p = args.p, &d = args.d;
    const Output &c = args.c;
    const Sum beta = from_bits<Sum>(args.beta);
    const u64 step = (u64)gridDim.x * WARPS;
    for (u64 row = (u64)blockIdx.x * WARPS + threadIdx.x / 32; row < args.rows; row += step) {
        const u64 p_first = p.offsets[row], d_first = d.offsets[row];
        // If D's pattern is not the one that C was made for, nothing is written past the end of the
        // row.
        const u64 base = c.offsets[row], end = c.offsets[row + 1];
        const auto scaled = [&](u64 at) { return S::scale(beta, widen(d.values[at])); };
        each(p, d, row, [&](Index column, u64 at, u64 other, bool both, u64 shared) {
            const u64 place = base + (at - p_first) + (other - d_first) - shared;
            if (place >= end) return;
            const Value value = p.values[at];
            c.indices[place] = column;
            c.values[place] =
                both ? Narrow<Value>::from(S::add(widen(value), scaled(other))) : value;
        });
        each(d, p, row, [&](Index column, u64 at, u64 other, bool both, u64 shared) {
            const u64 place = base + (at - d_first) + (other - p_first) - shared;
            if (both || place >= end) return;
            c.indices[place] = column;
            c.values[place] = Narrow<Value>::from(scaled(at));
        });
    }
}
