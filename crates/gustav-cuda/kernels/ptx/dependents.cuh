// Programmatic dependent launch, from sm_90 on: a kernel begins before the one ahead of it on the stream has
// ended, where the host launches it so. Elsewhere kernels run one after the other.
//
// A kernel that waits before it touches what launches write may follow any other; one that follows a kernel which
// has waited, and lets it begin, may read what that one does not write. Products let nothing begin before their
// own CTAs have all ended: CTAs that came earlier would go where the first of them end, and leave other
// multiprocessors with less than their share.
#pragma once

namespace ptx {

#if __CUDA_ARCH__ >= 900
// Lets the dependent launch begin as soon as all CTAs of this one have called it.
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
