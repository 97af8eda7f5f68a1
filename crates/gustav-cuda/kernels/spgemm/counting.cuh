// Counts rows by bin; row_list.cu then writes the list of rows, bin after bin.
#pragma once
#include "schedule/arrival.cuh"
#include "spgemm/arguments.cuh"

namespace counting {

static_assert(BINS < 16, "a bin has four bits, and none of them is one as well");

// The counts of a CTA; all threads begin and end them, with a barrier in between.
struct Bins {
    u32 count[BINS], widest[BINS], largest[BINS];

    __device__ __forceinline__ void begin() {
        for (u32 b = threadIdx.x; b < BINS; b += blockDim.x) count[b] = widest[b] = largest[b] = 0;
    }
    // Counts a thread's row, or none if `bin` is BINS; called by whole warps.
    __device__ __forceinline__ void add(u32 bin, u32 width, u32 size) {
        const u32 alike = __match_any_sync(0xffffffffu, bin);
        if (bin == BINS) return;
        if (threadIdx.x % 32 == __ffs(alike) - 1) atomicAdd(&count[bin], (u32)__popc(alike));
        // The read avoids most atomics: few rows raise the maximum.
        if (*(volatile u32 *)(widest + bin) < width) atomicMax(&widest[bin], width);
        if (*(volatile u32 *)(largest + bin) < size) atomicMax(&largest[bin], size);
    }
    __device__ __forceinline__ void end(const Arguments &g) {
        for (u32 b = threadIdx.x; b < BINS; b += blockDim.x)
            if (count[b] > 0) {
                atomicAdd(&g.counters[COUNT + b], (u64)count[b]);
                atomicMax(&g.counters[WIDEST + b], (u64)widest[b]);
                atomicMax(&g.counters[LARGEST + b], (u64)largest[b]);
            }
    }
};

// The last CTA to arrive writes all counts to host memory, then the word that signals it. All
// threads of a CTA take part.
__device__ __forceinline__ void report(const Arguments &g) {
    if (!arrival::is_last_cta((u32 *)(g.counters + ENDED), gridDim.x)) return;
    for (u32 n = threadIdx.x; n < REPORTED; n += blockDim.x) g.report[n] = g.counters[n];
    __syncthreads();
    if (threadIdx.x == 0) ptx::store_release_system(g.report + REPORTED, g.report_number);
}

}  // namespace counting
