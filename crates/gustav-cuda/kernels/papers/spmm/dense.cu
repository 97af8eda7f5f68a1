// dense: A as a dense row-major matrix, for a product by cuBLAS.
//
// The array is zeroed before each kernel. `dense_repeats` checks, once per pattern, whether a row
// has a column twice: it sets a bit for every entry and sees whether it was set before. If so,
// entries must be added, which one thread a row does in their order; otherwise a warp a row stores
// them.
//
//   grid.x -> rows, a warp (or, with repeated columns, a thread) each
//
// cuBLAS rounds parts of sums to the type of C before it adds them up. In 16 bits it writes to an
// array of f32, from which `dense_finish` makes C, a thread an element.
#include "common/epilogue.cuh"

using Value = GUSTAV_VALUE;
using Index = GUSTAV_INDEX;
using Offset = GUSTAV_OFFSET;
using Ring = PlusTimes<Accumulator<Value>::Type>;

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr bool REPEATS = GUSTAV_REPEATS;
constexpr int LANES = REPEATS ? 1 : 32;

#include "gustav_cuda::papers::spmm::dense::Arguments"

template <class Work>
__device__ __forceinline__ void each_entry(const Arguments &args, int lanes, Work work) {
    const u64 row = ((u64)blockIdx.x * BLOCK + threadIdx.x) / lanes;
    if (row >= args.rows) return;
    const u64 last = args.offsets[row + 1];
    for (u64 k = args.offsets[row] + threadIdx.x % lanes; k < last; k += lanes)
        work(row * args.inner + args.indices[k], k);
}

extern "C" __global__ void __launch_bounds__(BLOCK) dense_repeats(const Arguments args) {
    u32 *bits = static_cast<u32 *>(args.out);
    each_entry(args, 32, [&](u64 at, u64) {
        const u32 bit = 1u << at % 32;
        if (atomicOr(bits + at / 32, bit) & bit) *args.found = 1;
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK) dense_fill(const Arguments args) {
    Value *out = static_cast<Value *>(args.out);
    each_entry(args, LANES, [&](u64 at, u64 k) {
        if (REPEATS)
            out[at] = Narrow<Value>::from(Ring::add(widen(out[at]), widen(args.values[k])));
        else
            out[at] = args.values[k];
    });
}

#include "gustav_cuda::papers::spmm::dense::Finish"

extern "C" __global__ void __launch_bounds__(BLOCK) dense_finish(const Finish args) {
    using Sums = PlusTimes<f32>;
    const u64 i = (u64)blockIdx.x * BLOCK + threadIdx.x;
    if (sizeof(Value) != 2 || i >= args.rows * args.columns) return;
    const f32 sum[1] = {args.sums[i]};
    finish<Sums>(sum, from_bits<f32>(args.alpha), from_bits<f32>(args.beta),
                 args.c + i / args.columns * args.ldc + i % args.columns);
}
