// segmented: y = alpha A x + beta y, A in CSR. A kernel of Gustav.
//
// Idea: rows of ordinary length are summed by LANES neighbouring lanes each, as in row-split; rows
// longer than LIMIT are cut into parts of at most PART nonzeros, one warp a part, which are started
// first. All in one launch: the warp that finishes last adds the parts of a row, in a fixed order,
// so that the bits are the same in every run.
//
//   CTAs 0 .. part_ctas         -> parts, one a warp
//   CTAs part_ctas ..           -> THREADS / LANES rows each, a group of LANES lanes a row
//
// `segmented_parts` makes the list of parts, one thread a row, once for a pattern.
// Invariant: `done` is zero between launches; launches of one plan do not overlap.
#include "common/epilogue.cuh"
#include "ptx/dependents.cuh"
#include "schedule/arrival.cuh"
#include "tile/slices.cuh"

using Value = GUSTAV_VALUE;
using Index = GUSTAV_INDEX;
using Offset = GUSTAV_OFFSET;
using Accum = Accumulator<Value>::Type;
using Ring = GUSTAV_SEMIRING<Accum>;

constexpr int THREADS = GUSTAV_THREADS;
constexpr int LANES = GUSTAV_LANES;
constexpr int WARP = 32;
constexpr bool PARTS = GUSTAV_PARTS;  // whether a row is longer than LIMIT
constexpr u32 LIMIT = GUSTAV_LIMIT;
constexpr u32 PART = GUSTAV_PART;
// Loads that a lane has in flight, in rows and in parts.
constexpr int IN_FLIGHT = GUSTAV_IN_FLIGHT;
constexpr int PART_IN_FLIGHT = PART <= 8 * WARP ? 8 : IN_FLIGHT;
static_assert(LANES <= WARP && WARP % LANES == 0, "a group lies in one warp");

// A part of a long row: its nonzeros, its row, the first part of the row and the number of its
// parts.
struct Part {
    u64 first;
    u32 length, count;
    u64 row;
    u64 base;
};

#include "gustav_cuda::spmv::segmented::in_order::Arguments"

extern "C" __global__ void __launch_bounds__(THREADS) segmented_parts(const Arguments args) {
    const u64 row = (u64)blockIdx.x * THREADS + threadIdx.x;
    if (row >= args.rows) return;
    const u64 first = args.offsets[row], length = (u64)args.offsets[row + 1] - first;
    if (length <= LIMIT) return;
    const u64 count = (length + PART - 1) / PART;
    const u64 base = atomicAdd(args.part_number, count);
    for (u64 p = 0; p < count; ++p) {
        const u64 left = length - p * PART;
        args.parts[base + p] = {first + p * PART, left < PART ? (u32)left : PART, (u32)count, row,
                                base};
        args.done[base + p] = 0;
    }
}

// The sum of nonzeros first + lane, first + lane + GROUP, ... before last.
template <int GROUP, int IN_FLIGHT>
__device__ __forceinline__ Accum strided_sum(const Arguments &args, u64 first, u64 last,
                                             int lane) {
    Accum sum = Ring::zero();
    for (u64 base = first + lane; base < last; base += GROUP * IN_FLIGHT) {
        tile::Pack<Value, 1> a[IN_FLIGHT], x[IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; ++k) {
            const u64 at = base + k * GROUP;
            if (at >= last) continue;
            a[k] = tile::load<Value, 1>(args.values + at);
            x[k] = tile::load<Value, 1>(args.x + (u64)__ldg(args.indices + at));
        }
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; ++k)
            if (base + k * GROUP < last)
                sum = Ring::mul_add(widen(a[k].at[0]), widen(x[k].at[0]), sum);
    }
#pragma unroll
    for (int distance = GROUP / 2; distance > 0; distance /= 2)
        sum = Ring::add(sum, __shfl_xor_sync(0xffffffffu, sum, distance));
    return sum;
}

__device__ __forceinline__ void write_row(const Arguments &args, u64 row, Accum sum) {
    const Accum total[1] = {sum};
    finish<Ring>(total, from_bits<Accum>(args.alpha), from_bits<Accum>(args.beta), args.y + row);
}

// Called after the loads of the schedule: everything else waits for those.
__device__ __forceinline__ void prefetch(const Arguments &args) {
    tile::prefetch_slices(args.slices, args.indices, args.values, args.nonzeros, args.x);
}

__device__ __forceinline__ void sum_part(const Arguments &args) {
    const u64 i = (u64)blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP;
    if (i >= *args.part_number) return;
    const int lane = threadIdx.x % WARP;
    const Part part = args.parts[i];
    prefetch(args);
    Accum sum = strided_sum<WARP, PART_IN_FLIGHT>(args, part.first, part.first + part.length, lane);
    if (part.count > 1) {
        if (lane == 0) args.partials[i] = sum;
        if (!arrival::is_last(args.done + part.base, part.count, 0xffffffffu, 0)) return;
        sum = Ring::zero();
        for (u32 p = lane; p < part.count; p += WARP)
            sum = Ring::add(sum, tile::load_shared_by_all<Accum, 1>(args.partials + part.base + p).at[0]);
#pragma unroll
        for (int distance = WARP / 2; distance > 0; distance /= 2)
            sum = Ring::add(sum, __shfl_xor_sync(0xffffffffu, sum, distance));
    }
    if (lane == 0) write_row(args, part.row, sum);
}

extern "C" __global__ void __launch_bounds__(THREADS) segmented(const Arguments args) {
    ptx::wait_for_prerequisites();
    // Compiled out if there are no parts, which frees registers.
    if constexpr (PARTS)
        if (blockIdx.x < args.part_ctas) {
            sum_part(args);
            return;
        }
    const u64 cta = blockIdx.x - (PARTS ? args.part_ctas : 0);
    const u64 row = cta * (THREADS / LANES) + threadIdx.x / LANES;
    u64 first = 0, last = 0;
    if (row < args.rows) {
        first = __ldg(args.offsets + row);
        last = __ldg(args.offsets + row + 1);
    }
    prefetch(args);
    const bool mine = row < args.rows && (!PARTS || last - first <= LIMIT);
    if (!mine) last = first;
    const int lane = threadIdx.x % LANES;
    const Accum sum = strided_sum<LANES, IN_FLIGHT>(args, first, last, lane);
    if (mine && lane == 0) write_row(args, row, sum);
}
