// scan: numbers of entries become row offsets, in place and in one pass.
//
// CTA -> a tile of BLOCK * ITEMS rows, thread -> ITEMS consecutive ones. The number of row i is at
// offsets[i + 1]; the sum of all goes to `total`, which may exceed the type of offsets.
//
// GUSTAV_OFFSET         type of row offsets
// GUSTAV_BLOCK, ITEMS   threads of a CTA, rows of a thread
#include "schedule/look_back.cuh"

typedef GUSTAV_OFFSET Offset;

constexpr u32 BLOCK = GUSTAV_BLOCK, ITEMS = GUSTAV_ITEMS;

#include "gustav_cuda::matrix::scan::Arguments"

extern "C" __global__ void __launch_bounds__(BLOCK) scan(const Arguments args) {
    __shared__ u64 before;
    __shared__ u32 taken;
    if (threadIdx.x == 0) taken = (u32)atomicAdd(args.ticket, 1ull);
    __syncthreads();
    const u32 tile = taken;
    const u64 first = (u64)tile * BLOCK * ITEMS + (u64)threadIdx.x * ITEMS;
    u64 own[ITEMS], mine = 0;
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i)
        mine += own[i] = first + i < args.rows ? (u64)args.offsets[first + i + 1] : 0;
    u64 total;
    const u64 start = look_back::within<BLOCK>(mine, total);
    if (threadIdx.x < 32) {
        const u64 sum = look_back::before(args.ticket + 1, tile, total);
        if (threadIdx.x == 0) {
            before = sum;
            if ((u64)(tile + 1) * BLOCK * ITEMS >= args.rows) *args.total = sum + total;
        }
    }
    __syncthreads();
    u64 at = before + start;
    if (tile == 0 && threadIdx.x == 0) args.offsets[0] = 0;
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        at += own[i];
        if (first + i < args.rows) args.offsets[first + i + 1] = (Offset)at;
    }
}
