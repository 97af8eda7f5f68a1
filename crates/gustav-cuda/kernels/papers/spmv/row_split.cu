// row-split: y = alpha A x + beta y, A in CSR.
// Yang, Buluc, Owens 2018, section 4.1 and figure 3(a), after Bell and Garland 2009.
//
// Idea: LANES neighbouring lanes own one row and stride over its nonzeros, so that reads of A are
// coalesced; their sums are reduced by shuffles. LANES follows the mean row length: a whole warp for long
// rows, one lane for the shortest.
//
//   grid.x -> THREADS / LANES rows a CTA     group = LANES lanes, inside one warp
#include "common/epilogue.cuh"

using Value = GUSTAV_VALUE;
using Index = GUSTAV_INDEX;
using Offset = GUSTAV_OFFSET;
using Accum = Accumulator<Value>::Type;
using Ring = GUSTAV_SEMIRING<Accum>;

constexpr int THREADS = GUSTAV_THREADS;
constexpr int LANES = GUSTAV_LANES;
// Loads that a lane has in flight.
constexpr int IN_FLIGHT = 4;
static_assert(LANES <= 32 && 32 % LANES == 0, "a group lies in one warp");

#include "gustav_cuda::papers::spmv::row_split::Arguments"

extern "C" __global__ void __launch_bounds__(THREADS) row_split(const Arguments args) {
    const u64 row = (u64)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;
    const int lane = threadIdx.x % LANES;
    const bool mine = row < args.rows;
    const u64 first = mine ? (u64)__ldg(args.offsets + row) : 0;
    const u64 last = mine ? (u64)__ldg(args.offsets + row + 1) : 0;
    Accum sum = Ring::zero();
    for (u64 base = first + lane; base < last; base += LANES * IN_FLIGHT) {
        tile::Pack<Value, 1> a[IN_FLIGHT], x[IN_FLIGHT];
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; ++k) {
            const u64 at = base + k * LANES;
            if (at >= last) continue;
            a[k] = tile::load<Value, 1>(args.values + at);
            x[k] = tile::load<Value, 1>(args.x + (u64)__ldg(args.indices + at));
        }
#pragma unroll
        for (int k = 0; k < IN_FLIGHT; ++k)
            if (base + k * LANES < last)
                sum = Ring::mul_add(widen(a[k].at[0]), widen(x[k].at[0]), sum);
    }
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2)
        sum = Ring::add(sum, __shfl_xor_sync(0xffffffffu, sum, distance));
    if (!mine || lane != 0) return;
    const Accum total[1] = {sum};
    finish<Ring>(total, from_bits<Accum>(args.alpha), from_bits<Accum>(args.beta), args.y + row);
}
