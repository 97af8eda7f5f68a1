// Products of small matrices on tensor cores: D (16 x 8) += A (16 x K) B (K x 8), summed in f32; in f64
// D (8 x 8) += A (8 x 4) B (4 x 8).
//
// The operands are distributed over a warp. With g = lane / 4 and t = lane % 4, a lane has
//   16 bits, K = 16:  A  (g, 2t..) (g + 8, 2t..) (g, 2t + 8..) (g + 8, 2t + 8..), two along K a word
//                     B  (2t.., g) (2t + 8.., g), two along K a word
//   TF32,    K = 8:   A  (g, t) (g + 8, t) (g, t + 4) (g + 8, t + 4)      B  (t, g) (t + 4, g)
//   D                 (g, 2t) (g, 2t + 1) (g + 8, 2t) (g + 8, 2t + 1)
//   f64,     K = 4:   A  (g, t)      B  (t, g)      D  (g, 2t) (g, 2t + 1)
#pragma once

namespace ptx {

// Four 8 x 8 matrices of 16 bits from shared memory, lane l giving the address of row l % 8 of matrix l / 8: a lane
// gets elements 2t and 2t + 1 of row g of each.
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], const void *from) {
    const unsigned shared = (unsigned)__cvta_generic_to_shared(from);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared)
                 : "memory");
}

#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ void mma_f16(float (&d)[4], const unsigned (&a)[4],
                                        const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void mma_bf16(float (&d)[4], const unsigned (&a)[4],
                                         const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void mma_tf32(float (&d)[4], const unsigned (&a)[4],
                                         const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ __forceinline__ void mma_f64(double &d0, double &d1, double a, double b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(d0), "+d"(d1)
        : "d"(a), "d"(b));
}
__device__ __forceinline__ unsigned round_tf32(float value) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
    return bits;
}
#else
// Before sm_80 there is only f16, with K = 8; the host selects nothing else.
__device__ void mma_bf16(float (&)[4], const unsigned (&)[4], const unsigned (&)[2]);
__device__ void mma_tf32(float (&)[4], const unsigned (&)[4], const unsigned (&)[2]);
__device__ void mma_f64(double &, double &, double, double);
__device__ unsigned round_tf32(float);
__device__ __forceinline__ void mma_f16(float (&d)[4], const unsigned (&a)[4],
                                        const unsigned (&b)[2]) {
#pragma unroll
    for (int half = 0; half < 2; ++half)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
            "{%0, %1, %2, %3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
}
#endif

}  // namespace ptx
