// Copies to shared memory by the copy engine, from sm_90 on, and barriers of shared memory that have
// phases: one thread issues the copies of all bytes. An arrival is a release and a wait an acquire, both at the scope of
// the CTA, which is what the instructions mean without a qualifier.
#pragma once

namespace ptx {

#if __CUDA_ARCH__ >= 900
constexpr bool HAS_BULK_COPY = true;

__device__ __forceinline__ unsigned shared_address(const void *at) {
    return (unsigned)__cvta_generic_to_shared(at);
}

// Makes `barrier` one that so many threads arrive at in every phase; by a thread that lets others know
// of it.
__device__ __forceinline__ void begin_phases(unsigned long long *barrier, unsigned threads) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(threads)
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Lets the phase of `barrier` that goes on end when so many bytes have come.
__device__ __forceinline__ void expect_copies(unsigned long long *barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

// Whole pieces of 16 bytes, aligned to as many.
__device__ __forceinline__ void copy_bulk(void *to, const void *from, unsigned bytes,
                                          unsigned long long *barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            shared_address(to)),
        "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(barrier))
        : "memory");
}

// Arrives: what this thread did to memory before, and was told of by a barrier, is done for those who
// have waited for the phase.
__device__ __forceinline__ void arrive(unsigned long long *barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Waits until phase number `phase` of `barrier` has ended, if the one before it has.
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
