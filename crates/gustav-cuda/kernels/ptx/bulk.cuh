// Bulk copies to shared memory (cp.async.bulk), from sm_90 on, and mbarriers: one thread issues the
// copies of all bytes. An arrival is a release and a wait an acquire, both at CTA scope, the
// default of the instructions.
#pragma once

namespace ptx {

#if __CUDA_ARCH__ >= 900
constexpr bool HAS_BULK_COPY = true;

__device__ __forceinline__ unsigned shared_address(const void *at) {
    return (unsigned)__cvta_generic_to_shared(at);
}

// Initialises `barrier` for `threads` arrivals per phase, by one thread; a barrier of the CTA must
// follow.
__device__ __forceinline__ void begin_phases(unsigned long long *barrier, unsigned threads) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(threads)
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives, and adds the bytes of copies to what the current phase waits for.
__device__ __forceinline__ void expect_copies(unsigned long long *barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

// A multiple of 16 bytes, aligned to 16 bytes.
__device__ __forceinline__ void copy_bulk(void *to, const void *from, unsigned bytes,
                                          unsigned long long *barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            shared_address(to)),
        "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
}

// Arrives: accesses of this thread before, and those it has synchronised with, happen before those
// of threads that have waited for the phase.
__device__ __forceinline__ void arrive(unsigned long long *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Waits until phase number `phase` of `barrier` has ended; the one before it must have ended.
__device__ __forceinline__ void wait(unsigned long long *barrier, unsigned phase) {
    unsigned ended = 0;
    while (!ended)
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
            : "=r"(ended)
            : "r"(shared_address(barrier)), "r"(phase & 1)
            : "memory");
}
#else
constexpr bool HAS_BULK_COPY = false;
__device__ __forceinline__ void begin_phases(unsigned long long *, unsigned) {}
__device__ __forceinline__ void expect_copies(unsigned long long *, unsigned) {}
__device__ __forceinline__ void copy_bulk(void *, const void *, unsigned, unsigned long long *) {}
__device__ __forceinline__ void arrive(unsigned long long *) {}
__device__ __forceinline__ void wait(unsigned long long *, unsigned) {}
#endif

}  // namespace ptx
