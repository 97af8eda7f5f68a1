// Kernels of which the later begins before the earlier has ended, from sm_90 on: the host says which
// launch may. Elsewhere they come one after the other.
//
// A kernel that waits before it touches what launches write may follow any other; one that follows a kernel which
// has waited, and lets it begin, may read what that one does not write. Products let nothing begin before their
// own CTAs have all ended: CTAs that came earlier would go where the first of them end, and leave other
// multiprocessors with less than their share.
#pragma once

namespace ptx {

#if __CUDA_ARCH__ >= 900
// Lets the next launch begin as soon as all CTAs of this one have come here.
__device__ __forceinline__ void launch_dependents() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
// Waits until the launches before have ended, and what they wrote can be read.
__device__ __forceinline__ void wait_for_prerequisites() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
#else
__device__ __forceinline__ void launch_dependents() {}
__device__ __forceinline__ void wait_for_prerequisites() {}
#endif

}  // namespace ptx
