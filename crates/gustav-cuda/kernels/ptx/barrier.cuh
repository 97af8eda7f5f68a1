// A barrier of some of a CTA's warps.
#pragma once

namespace ptx {

// Waits until `threads` threads, whole warps, have reached barrier `id` (0 to 15).
__device__ __forceinline__ void barrier(unsigned id, unsigned threads) {
    asm volatile("barrier.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace ptx
