// Sums at the positions of a short row, by a thread that merges the rows of B: positions and
// columns of products are both visited in increasing order.
#pragma once
#include "spgemm/masked/arguments.cuh"
#include "spgemm/merge.cuh"

namespace merged {

// Sums are staged in shared memory, so that half a warp writes neighbouring positions of one row.
// Only positions that have a product are written.
template <u32 ROWS>
__device__ void rows(const Arguments &g, List list) {
    constexpr u32 STAGED = 16, STRIDE = STAGED + 1;
    __shared__ u32 staged_positions[WARPS][32 * STRIDE];
    __shared__ Out staged_values[WARPS][32 * STRIDE];
    const u32 lane = threadIdx.x % 32;
    u32 *positions = staged_positions[threadIdx.x / 32];
    Out *values = staged_values[threadIdx.x / 32];
    const u64 count = g.counters[list], step = (u64)gridDim.x * BLOCK;
    const Sum alpha = from_bits<Sum>(g.alpha);
    // Threads of a warp iterate together.
    for (u64 base = (u64)blockIdx.x * BLOCK; base < count; base += step) {
        const u64 i = base + threadIdx.x;
        const bool here = i < count;
        const u64 row = here ? *listed(g, list, i) : 0;
        const u64 begin = g.a.offsets[row];
        const u32 nonzeros = here ? (u32)(g.a.offsets[row + 1] - begin) : 0;
        const u64 first = g.position_offsets[row];
        const u64 end = here ? (u64)g.position_offsets[row + 1] : first;
        u64 position = first;
        Sum factors[ROWS];
#pragma unroll
        for (u32 n = 0; n < ROWS; ++n)
            factors[n] = n < nonzeros ? widen(g.a.values[begin + n]) : Sum();
        const auto next_position = [&] { return position < end ? (u32)g.positions[position] : merge::NONE; };
        u32 next = next_position(), present = 0, filled = 0, steps = 0;
        const auto leave = [&] {
            __syncwarp();
            for (u32 pair = 0; pair < 32; pair += 2) {
                const u32 from = pair + lane / STAGED, n = lane % STAGED;
                const u32 many = __shfl_sync(warp::ALL, filled, from);
                const u64 start = __shfl_sync(warp::ALL, first, from);
                if (n >= many) continue;
                const u64 to = start + positions[from * STRIDE + n];
                g.values[to] = values[from * STRIDE + n];
                if (g.present != nullptr) g.present[to] = 1;
            }
            __syncwarp();
            present += filled;
            filled = 0;
        };
        Sum sum = S::zero();
        merge::columns<ROWS, true>(
            g, begin, nonzeros, [&](u32 n, Value b) { sum = S::mul_add(factors[n], widen(b), sum); },
            [&](u32 column) {
                if (column != merge::NONE) {
                    while (next < column) ++position, next = next_position();
                    if (next == column) {
                        positions[lane * STRIDE + filled] = (u32)(position - first);
                        values[lane * STRIDE + filled] = Narrow<Out>::from(S::scale(alpha, sum));
                        ++filled;
                    }
                    sum = S::zero();
                }
                if (++steps % STAGED == 0) leave();
            });
        leave();
        if (here && g.present != nullptr) g.c.offsets[row + 1] = (Offset)present;
    }
}

}  // namespace merged
