// Inner products of rows of X and Y: what the kernels of SDDMM share.
//
// Lane l of a group holds elements (k LANES + l) VECTOR + 0..VECTOR-1 of a panel of the depth, k < TILES, of every row.
#pragma once
#include "common/semiring.cuh"
#include "ptx/memory.cuh"
#include "tile/pack.cuh"
#include "tile/span.cuh"
#include "tile/totals.cuh"

namespace sddmm {

// Copies a word to shared memory, while the thread goes on where the device can.
template <class T>
__device__ __forceinline__ void bring(T *to, const T *from) {
    if constexpr (ptx::HAS_ASYNC_COPY)
        ptx::copy_async<sizeof(T)>(to, from);
    else
        *to = __ldg(from);
}

// A row-major operand; Stride holds the bytes between its rows.
template <class Value, class Stride>
struct Rows {
    const u8 *first;
    Stride bytes;

    __device__ __forceinline__ Rows(const Value *first, u64 ld)
        : first(reinterpret_cast<const u8 *>(first)), bytes((Stride)(ld * sizeof(Value))) {}

    template <class Row, int VECTOR, int LANES, int TILES, int WHOLE>
    __device__ __forceinline__ void load(Row row, const tile::Span<VECTOR, LANES, TILES, WHOLE> &span,
                                         tile::Pack<Value, VECTOR> (&part)[TILES]) const {
        const Value *from = reinterpret_cast<const Value *>(first + (u64)row * bytes) + span.column;
#pragma unroll
        for (int k = 0; k < TILES; ++k)
            if (span.has(k)) part[k] = tile::load<Value, VECTOR>(from + k * LANES * VECTOR);
    }
};

// Adds the products of a lane's elements, in their order.
template <class Value, class Accum, int VECTOR, int LANES, int TILES, int WHOLE>
__device__ __forceinline__ void add_products(const tile::Pack<Value, VECTOR> (&x)[TILES],
                                             const tile::Pack<Value, VECTOR> (&y)[TILES],
                                             const tile::Span<VECTOR, LANES, TILES, WHOLE> &span, Accum &sum) {
#pragma unroll
    for (int k = 0; k < TILES; ++k) {
        if (!span.has(k)) continue;
#pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            sum = times_plus(tile::widen_at(x[k], v), tile::widen_at(y[k], v), sum);
    }
}

// Writes the value of nonzero p.
template <class Value, class Arguments, class Accum>
__device__ __forceinline__ void finish(const Arguments &args, u64 p, Accum sum, Accum alpha, Accum beta) {
    Accum result = times(alpha, sum);
    if (args.factors) result = times(result, widen(args.factors[p]));
    if (beta != 0) result = times_plus(beta, widen(args.values[p]), result);
    args.values[p] = Narrow<Value>::from(result);
}

}  // namespace sddmm
