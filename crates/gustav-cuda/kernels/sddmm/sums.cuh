// Inner products of rows of X and Y: what the kernels of SDDMM share.
//
// Lane l of a group holds elements (k LANES + l) VECTOR + 0..VECTOR-1 of a panel of the depth, k < TILES, of every row.
#pragma once
#include "common/semiring.cuh"
#include "ptx/memory.cuh"
#include "tile/pack.cuh"
#include "tile/span.cuh"

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

// Adds ALL sums up over the lanes of a group together: while their number is even, every step halves the lanes of a
// sum and the sums of a lane, ALL - 1 + log2(LANES / ALL) shuffles for a power of two, where one after another takes
// ALL log2(LANES).
template <class Accum, int ALL, int LANES>
struct Totals {
    // Steps that halve the sums of a lane.
    static __device__ constexpr int halvings() {
        int count = 0;
        for (int all = ALL, lanes = LANES; all % 2 == 0 && lanes > 1; all /= 2, lanes /= 2) ++count;
        return count;
    }
    static constexpr int COUNT = ALL >> halvings();     // sums that a lane ends with
    static constexpr int COPIES = LANES >> halvings();  // neighbouring lanes that end with the same ones

    // Whether this lane is the first of those with its sums.
    static __device__ __forceinline__ bool mine() { return threadIdx.x % LANES % COPIES == 0; }

    // Leaves the totals number first.. first + COUNT - 1 in sum[0].. and returns first.
    static __device__ __forceinline__ int add(Accum (&sum)[ALL]) {
        const int lane = threadIdx.x % LANES;
        int first = 0, count = ALL;
#pragma unroll
        for (int step = LANES / 2; step > 0; step /= 2) {
            if (count % 2 == 0) {
                count /= 2;
                const bool upper = lane & step;
                first += upper ? count : 0;
#pragma unroll
                for (int u = 0; u < ALL / 2; ++u) {
                    if (u >= count) continue;
                    const Accum sent = upper ? sum[u] : sum[u + count];
                    const Accum held = upper ? sum[u + count] : sum[u];
                    sum[u] = plus(held, __shfl_xor_sync(~0u, sent, step));
                }
            } else {
#pragma unroll
                for (int u = 0; u < ALL; ++u)
                    if (u < count) sum[u] = plus(sum[u], __shfl_xor_sync(~0u, sum[u], step));
            }
        }
        return first;
    }
};

// Writes the value of nonzero p.
template <class Value, class Arguments, class Accum>
__device__ __forceinline__ void finish(const Arguments &args, u64 p, Accum sum, Accum alpha, Accum beta) {
    Accum result = times(alpha, sum);
    if (args.factors) result = times(result, widen(args.factors[p]));
    if (beta != 0) result = times_plus(beta, widen(args.values[p]), result);
    args.values[p] = Narrow<Value>::from(result);
}

}  // namespace sddmm
