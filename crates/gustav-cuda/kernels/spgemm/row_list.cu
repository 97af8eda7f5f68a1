// Writes the list of a phase's rows, bin after bin, from the counts of the bins.
#include "common/warp.cuh"
#include "spgemm/arguments.cuh"

constexpr u32 BLOCK = GUSTAV_BLOCK, ITEMS = GUSTAV_ITEMS;

extern "C" __global__ void __launch_bounds__(BLOCK) list_rows(const Arguments g) {
    __shared__ u32 count[BINS];
    __shared__ u64 base[BINS];
    if (threadIdx.x < BINS) count[threadIdx.x] = 0;
    __syncthreads();
    const u32 lane = threadIdx.x % 32;
    const u64 first = (u64)blockIdx.x * BLOCK * ITEMS;
    u32 bin[ITEMS], place[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        const u64 row = first + (u64)i * BLOCK + threadIdx.x;
        bin[i] = row < g.rows ? Cost::of(g.costs[row]).bin : BINS;
        // Rows of one bin in a warp keep their order.
        const u32 same_bin = __match_any_sync(0xffffffffu, bin[i]), leader = __ffs(same_bin) - 1;
        place[i] = 0;
        if (bin[i] < BINS && lane == leader) place[i] = atomicAdd(&count[bin[i]], (u32)__popc(same_bin));
        place[i] = __shfl_sync(0xffffffffu, place[i], leader) + __popc(same_bin & warp::lanes_before());
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        const u64 rows = lane < BINS ? g.counters[COUNT + lane] : 0;
        const u64 up_to = warp::sum_up_to(rows);
        if (lane < BINS && count[lane] > 0)
            base[lane] = up_to - rows + atomicAdd(&g.counters[PLACED + lane], (u64)count[lane]);
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i)
        if (bin[i] < BINS)
            g.list[base[bin[i]] + place[i]] = (u32)(first + (u64)i * BLOCK + threadIdx.x);
}
