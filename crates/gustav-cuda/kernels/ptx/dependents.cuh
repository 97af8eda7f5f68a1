// Programmatic dependent launch, from sm_90 on: a kernel that the host launches so may begin before
// the preceding kernel of the stream has ended. Elsewhere these functions do nothing.
//
// A kernel that waits before it touches memory that launches write may follow any other. After a
// kernel that has itself waited before it let its dependent begin, the dependent may read what that
// kernel does not write. Products do not let their dependents begin early: CTAs of the next kernel
// would fill the multiprocessors that finish first, and the others would get too few of them.
#pragma once

namespace ptx {

#if __CUDA_ARCH__ >= 900
// Lets the dependent launch begin once all CTAs of this one have called it.
__device__ __forceinline__ void launch_dependents() {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
// Waits until the preceding launches have ended and their writes are visible.
__device__ __forceinline__ void wait_for_prerequisites() {
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
#else
__device__ __forceinline__ void launch_dependents() {}
__device__ __forceinline__ void wait_for_prerequisites() {}
#endif

}  // namespace ptx
