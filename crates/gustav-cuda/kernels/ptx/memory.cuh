// Loads through the read-only path, strong loads and stores, arrivals, streaming stores, vector reductions.
#pragma once

namespace ptx {

// Intrinsics, not inline assembly: the compiler may run assembly that it takes for free of effects
// ahead of the condition that guards it.
__device__ __forceinline__ void load_readonly(const void *from, unsigned (&to)[4]) {
    const uint4 word = __ldg(static_cast<const uint4 *>(from));
    to[0] = word.x, to[1] = word.y, to[2] = word.z, to[3] = word.w;
}
__device__ __forceinline__ void load_readonly(const void *from, unsigned (&to)[2]) {
    const uint2 word = __ldg(static_cast<const uint2 *>(from));
    to[0] = word.x, to[1] = word.y;
}
__device__ __forceinline__ void load_readonly(const void *from, unsigned (&to)[1]) {
    to[0] = __ldg(static_cast<const unsigned *>(from));
}
__device__ __forceinline__ unsigned short load_readonly_16(const void *from) {
    return __ldg(static_cast<const unsigned short *>(from));
}

// Weak loads that leave L1 as it is. As the compiler must not move them ahead of an acquire, they clobber memory.
__device__ __forceinline__ void load_cached(const void *from, unsigned (&to)[4]) {
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "l"(from)
                 : "memory");
}
__device__ __forceinline__ void load_cached(const void *from, unsigned (&to)[2]) {
    asm volatile("ld.global.cg.v2.u32 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "l"(from)
                 : "memory");
}
__device__ __forceinline__ void load_cached(const void *from, unsigned (&to)[1]) {
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(to[0]) : "l"(from) : "memory");
}

// Relaxed accesses to words that CTAs of a launch share. They order nothing: a word is all that is handed over.
__device__ __forceinline__ unsigned load_relaxed(const unsigned *from) {
    unsigned word;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory");
    return word;
}
__device__ __forceinline__ unsigned long long load_relaxed(const unsigned long long *from) {
    unsigned long long word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from) : "memory");
    return word;
}
__device__ __forceinline__ void store_relaxed(unsigned *to, unsigned word) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(word) : "memory");
}
__device__ __forceinline__ void store_relaxed(unsigned long long *to, unsigned long long word) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}

// Stores a word in memory of the host after all that this thread wrote, and what it knows of by a barrier.
__device__ __forceinline__ void store_release_system(unsigned long long *to, unsigned long long word) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}

// Asks for the `bytes` from `from` on in L2, for loads to come; by one thread of `lanes`, or by all.
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void prefetch(const void *from, unsigned long long bytes, int lane, int) {
    // Whole pieces of 16 bytes, and none that ends outside.
    const unsigned long long first = __cvta_generic_to_global(from), begin = first & ~15ull;
    const unsigned size = (unsigned)((first + bytes - begin) & ~15ull);
    if (lane == 0 && size > 0)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(begin), "r"(size));
}
#else
__device__ __forceinline__ void prefetch(const void *from, unsigned long long bytes, int lane, int lanes) {
    constexpr int sector = 32;
    const unsigned long long first = __cvta_generic_to_global(from);
    for (unsigned long long at = lane * sector; at < bytes; at += lanes * sector)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(first + at));
}
#endif

// Copies to shared memory that go on while the thread does other work, from sm_80 on. A thread
// waits for its own copies: all but the last `LATER` groups of them.
#if __CUDA_ARCH__ >= 800
constexpr bool HAS_ASYNC_COPY = true;
template <int BYTES>
__device__ __forceinline__ void copy_async(void *to, const void *from) {
    const unsigned shared = (unsigned)__cvta_generic_to_shared(to);
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared), "l"(from),
                     "n"(BYTES)
                     : "memory");
}
__device__ __forceinline__ void close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LATER>
__device__ __forceinline__ void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
}
#else
constexpr bool HAS_ASYNC_COPY = false;
template <int BYTES>
__device__ __forceinline__ void copy_async(void *, const void *) {}
__device__ __forceinline__ void close_copies() {}
template <int LATER>
__device__ __forceinline__ void wait_copies() {}
#endif

// Stores that the caches may drop first.
__device__ __forceinline__ void store_streaming(void *to, const unsigned (&from)[4]) {
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(from[0]),
                 "r"(from[1]), "r"(from[2]), "r"(from[3])
                 : "memory");
}
__device__ __forceinline__ void store_streaming(void *to, const unsigned (&from)[2]) {
    asm volatile("st.global.cs.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(from[0]), "r"(from[1])
                 : "memory");
}
__device__ __forceinline__ void store_streaming(void *to, const unsigned (&from)[1]) {
    asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(to), "r"(from[0]) : "memory");
}
__device__ __forceinline__ void store_streaming_16(void *to, unsigned short from) {
    asm volatile("st.global.cs.u16 [%0], %1;" ::"l"(to), "h"(from) : "memory");
}

// Counts one arrival at `counter`, from zero to `last` and then from zero again, and returns whether it is the last.
//
// A release and an acquire by every thread that arrives, at the scope of the device: what others wrote before they
// arrived, or knew of by a barrier, is visible to the last one, and to whom it lets know by a barrier. Only the last
// one needs the acquire, but a fence of its own would wait once more.
__device__ __forceinline__ bool arrives_last(unsigned *counter, unsigned last) {
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(counter), "r"(last)
                 : "memory");
    return before == last;
}

// Adds neighbours to memory, one by one but where the chip has wider reductions.
template <class T, int N>
__device__ __forceinline__ void reduce_add(T *to, const T (&from)[N]) {
    for (int i = 0; i < N; ++i) atomicAdd(to + i, from[i]);
}
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void reduce_add(float *to, const float (&from)[4]) {
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(from[0]),
                 "f"(from[1]), "f"(from[2]), "f"(from[3])
                 : "memory");
}
__device__ __forceinline__ void reduce_add(float *to, const float (&from)[8]) {
    for (int i = 0; i < 8; i += 4)
        reduce_add(to + i, {from[i], from[i + 1], from[i + 2], from[i + 3]});
}
#endif

}  // namespace ptx
