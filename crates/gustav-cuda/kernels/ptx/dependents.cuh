// Kernels of which the later begins before the earlier has ended, from sm_90 on: the host says which
// launch may. Elsewhere they come one after the other.
#pragma once

namespace ptx {

#if __CUDA_ARCH__ >= 900
// Lets the next launch begin as soon as all CTAs of this one have come here.
__device__ __forceinline__ void let_later_begin() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
// Waits until the launches before have ended, and what they wrote can be read.
__device__ __forceinline__ void wait_for_earlier() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
#else
__device__ __forceinline__ void let_later_begin() {}
__device__ __forceinline__ void wait_for_earlier() {}
#endif

// What a kernel begins with that may be launched before the one ahead of it has ended, and lets the next do
// the same: nothing is read or written before. The next begins when the one ahead has ended, so that at most
// two are under way.
__device__ __forceinline__ void follow_earlier() {
    wait_for_earlier();
    let_later_begin();
}

}  // namespace ptx
