// tile_nonzeros: the nonzeros of every tile of ROWS x COLUMNS positions, tile after tile, tiles row after row.
//
//   begins     the start of tile t in the lists below, and the end of the last tile
//   positions  of nonzeros in the values
//   places     of nonzeros in their tiles: row COLUMNS + column
//
// Thread p has nonzero p, whatever the order of columns. `count_nonzeros` writes the number of
// nonzeros of tile t to begins[t + 1]; a scan turns numbers into starts; `list_nonzeros` writes the
// lists, a tile's nonzeros in any order.
#include "common/types.cuh"

using Index = GUSTAV_INDEX;
using Offset = GUSTAV_OFFSET;
using Position = GUSTAV_POSITION;

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int ROWS = GUSTAV_ROWS;
constexpr int COLUMNS = GUSTAV_COLUMNS;

#include "gustav_cuda::schedule::tile_nonzeros::Arguments"

// The tile of nonzero p, and its place there.
__device__ __forceinline__ u64 tile_of(const Arguments &args, u64 p, u32 &place) {
    u64 low = 0, high = args.rows;  // offsets[low] <= p < offsets[high]
    while (high - low > 1) {
        const u64 middle = low + (high - low) / 2;
        if (__ldg(args.offsets + middle) <= p)
            low = middle;
        else
            high = middle;
    }
    const u64 column = __ldg(args.indices + p);
    place = (u32)(low % ROWS * COLUMNS + column % COLUMNS);
    return low / ROWS * args.across + column / COLUMNS;
}

// Adds 1 to counts[tile] for every lane, in one addition for lanes of the same tile; returns the value before the
// lane's.
__device__ __forceinline__ u64 add_one(u64 *counts, u64 tile) {
    const u32 lane = threadIdx.x % 32;
    for (u32 left = __activemask();;) {
        const int first = __ffs(left) - 1;
        const u32 same = __ballot_sync(left, tile == __shfl_sync(left, tile, first));
        if (same >> lane & 1) {
            u64 before = 0;
            if (lane == first) before = atomicAdd(counts + tile, (u64)__popc(same));
            before = __shfl_sync(same, before, first);
            return before + __popc(same & ((1u << lane) - 1));
        }
        left &= ~same;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) count_nonzeros(const Arguments args) {
    const u64 p = (u64)blockIdx.x * BLOCK + threadIdx.x;
    u32 place;
    if (p < args.nonzeros) add_one(args.begins + 1, tile_of(args, p, place));
}

extern "C" __global__ void __launch_bounds__(BLOCK) list_nonzeros(const Arguments args) {
    const u64 p = (u64)blockIdx.x * BLOCK + threadIdx.x;
    if (p >= args.nonzeros) return;
    u32 place;
    const u64 tile = tile_of(args, p, place);
    const u64 at = add_one(args.next, tile);
    args.positions[at] = (Position)p;
    args.places[at] = (u16)place;
}
