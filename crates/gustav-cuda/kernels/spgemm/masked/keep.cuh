// Turns positions into entries of C: those that have a product.
#pragma once
#include "common/search.cuh"
#include "spgemm/masked/arguments.cuh"

namespace entries {

// No column: the host refuses matrices so wide.
constexpr u32 NO_COLUMN = 0xffffffffu;
// Positions that a warp looks up at a time.
constexpr u32 CHUNK = 256;

// LANES lanes have a row: its positions that have a product move to C.
template <u32 LANES>
__device__ void keep(const Arguments &g) {
    constexpr u32 GROUPS = BLOCK / LANES;
    const u32 lane = threadIdx.x % LANES, first_lane = threadIdx.x % 32 - lane;
    const u64 step = (u64)gridDim.x * GROUPS;
    // Thread groups of a warp iterate together.
    for (u64 first = (u64)blockIdx.x * GROUPS; first < g.rows; first += step) {
        const u64 row = first + threadIdx.x / LANES;
        const bool here = row < g.rows;
        const u64 begin = here ? (u64)g.position_offsets[row] : 0;
        const u64 to = here ? (u64)g.position_offsets[row + 1] : 0;
        u64 at = here ? (u64)g.c.offsets[row] : 0;
        const u32 most = warp::largest((u32)(to - begin));
        for (u32 base = 0; base < most; base += LANES * IN_FLIGHT) {
            bool present[IN_FLIGHT];
#pragma unroll
            for (u32 n = 0; n < IN_FLIGHT; ++n) {
                const u64 from = begin + base + LANES * n + lane;
                present[n] = from < to && g.present[from] != 0;
            }
#pragma unroll
            for (u32 n = 0; n < IN_FLIGHT; ++n) {
                const u64 from = begin + base + LANES * n + lane;
                const u32 all = __ballot_sync(warp::ALL, present[n]) >> first_lane;
                const u32 own = LANES == 32 ? all : all & ((1u << LANES % 32) - 1);
                if (present[n]) {
                    const u64 position = at + __popc(own & ((1u << lane) - 1));
                    g.c.indices[position] = g.positions[from];
                    g.c.values[position] = g.values[from];
                }
                at += __popc(own);
            }
        }
    }
}

// A warp has CHUNK positions, which may span rows, and looks them up in all of C.
//
//   32 entries of the row    2 5 7 9 ..      a lane each; the next 32 once positions are past the last
//   32 positions                2 9 30 ..       a lane each, looked up among the entries by shuffles
__device__ void find(const Arguments &g) {
    const u32 lane = threadIdx.x % 32;
    const Out *entries = reinterpret_cast<const Out *>(g.b.values);
    const u64 stride = (u64)gridDim.x * WARPS * CHUNK;
    u64 chunk = ((u64)blockIdx.x * WARPS + threadIdx.x / 32) * CHUNK;
    for (; chunk < g.count; chunk += stride) {
        const u64 stop = min(chunk + CHUNK, g.count);
        // The row of the first position: the last row that begins there or before.
        u64 row = lower_bound(g.position_offsets, (u64)0, g.rows + 1, chunk + 1) - 1;
        for (u64 start = chunk; start < stop; ++row) {
            const u64 to = min((u64)g.position_offsets[row + 1], stop), end = g.b.offsets[row + 1];
            u64 window = g.b.offsets[row];
            if (start > g.position_offsets[row])
                window = lower_bound(g.b.indices, window, end, g.positions[start]);
            u32 present = 0;
            const auto read = [&] {
                return window + lane < end ? (u32)g.b.indices[window + lane] : NO_COLUMN;
            };
            u32 column = start < to ? read() : 0;
            for (; start < to; start += 32) {
                const u64 from = start + lane;
                const u32 position = from < to ? (u32)g.positions[from] : NO_COLUMN;
                const u32 largest =
                    __shfl_sync(warp::ALL, position, (u32)min(to - start, (u64)32) - 1);
                u64 at = end;
                for (;;) {
                    u32 below = 0;
#pragma unroll
                    for (u32 more = 16; more > 0; more /= 2)
                        if (__shfl_sync(warp::ALL, column, below + more - 1) < position) below += more;
                    const u32 other = __shfl_sync(warp::ALL, column, below);
                    if (other == position && from < to) at = window + below;
                    if (__shfl_sync(warp::ALL, column, 31) >= largest) break;
                    window += 32;
                    column = read();
                }
                if (from < to) {
                    g.values[from] = at < end ? entries[at] : Out();
                    if (g.present != nullptr) g.present[from] = at < end;
                }
                present += __popc(__ballot_sync(warp::ALL, at < end));
            }
            start = to;
            if (g.present != nullptr && lane == 0 && present > 0)
                atomicAdd(g.c.offsets + row + 1, (Offset)present);
        }
    }
}

}  // namespace entries
