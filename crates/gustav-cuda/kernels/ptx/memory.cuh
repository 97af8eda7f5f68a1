// Loads through the read-only path, strong loads and stores, arrivals, streaming stores, vector reductions.
#pragma once

namespace ptx {

// Intrinsics, not inline assembly: the compiler may hoist assembly without side effects above the
// condition that guards it.
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

// The same if `condition` holds; otherwise `to` is anything. The condition is a predicate of the load itself: of a branch
// around it the compiler makes a load to other registers and moves from there, which wait for it. As this assembly may be
// hoisted too, `condition` must imply all conditions under which `from` may be read.
__device__ __forceinline__ void load_readonly_if(bool condition, const void *from, unsigned (&to)[4]) {
    asm("{ .reg .pred p; setp.ne.s32 p, %5, 0; @p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4]; }"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "l"(from), "r"((int)condition));
}
__device__ __forceinline__ void load_readonly_if(bool condition, const void *from, unsigned (&to)[2]) {
    asm("{ .reg .pred p; setp.ne.s32 p, %3, 0; @p ld.global.nc.v2.u32 {%0, %1}, [%2]; }"
        : "=r"(to[0]), "=r"(to[1])
        : "l"(from), "r"((int)condition));
}
__device__ __forceinline__ void load_readonly_if(bool condition, const void *from, unsigned (&to)[1]) {
    asm("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.nc.u32 %0, [%1]; }"
        : "=r"(to[0])
        : "l"(from), "r"((int)condition));
}
__device__ __forceinline__ unsigned short load_readonly_16_if(bool condition, const void *from) {
    unsigned short word;
    asm("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p ld.global.nc.u16 %0, [%1]; }"
        : "=h"(word)
        : "l"(from), "r"((int)condition));
    return word;
}

// Weak loads that bypass L1. They clobber memory, as the compiler must not move them above an acquire.
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

// Relaxed accesses to words that CTAs of a launch share. They order no other accesses.
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

// Stores a word in host memory after all writes of this thread and those it has synchronised with.
__device__ __forceinline__ void store_release_system(unsigned long long *to, unsigned long long word) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(word) : "memory");
}

// Prefetches `bytes` bytes at `from` to L2, by one thread of `lanes` or by all.
#if __CUDA_ARCH__ >= 900
__device__ __forceinline__ void prefetch(const void *from, unsigned long long bytes, int lane, int) {
    // The instruction takes aligned multiples of 16 bytes; none may lie past the end.
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

// Asynchronous copies to shared memory, from sm_80 on. A thread waits for its own copies: all but
// the last `LATER` groups.
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

// Stores that the caches evict first.
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

// Counts an arrival at `counter`, which wraps to zero after `last`, and returns whether it is the last.
//
// Every arrival is a release and an acquire at device scope: writes of the others before their
// arrivals are visible to the last thread, and to threads that synchronise with it. Only the last
// needs the acquire, but a separate fence would wait once more.
__device__ __forceinline__ bool arrives_last(unsigned *counter, unsigned last) {
    unsigned before;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(counter), "r"(last)
                 : "memory");
    return before == last;
}

// Adds neighbouring values to memory by reductions, vectorised where the chip can.
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
