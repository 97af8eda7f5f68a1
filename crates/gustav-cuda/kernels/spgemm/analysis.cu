// The cost of every row of C: its number of products, and the range of its columns.
//
//   analyse         rows of a CTA
//   analyse_long    the same by larger CTAs, for few rows that are long
//
// Additional CTAs look for descents in B.
//
// Several lanes share a row of A. Ranges come from the first and last entries of B's rows, which is
// correct only where B is ordered. The first analysis assumes that it is, and checks.
//
// GUSTAV_BLOCK, GUSTAV_LONG_BLOCK   threads of a CTA
// GUSTAV_RANGED   rows with more products get their range
// GUSTAV_TINY, GUSTAV_SMALL, GUSTAV_NARROW   bins
#include "common/warp.cuh"
#include "csr/descents.cuh"
#include "spgemm/counting.cuh"
#include "spgemm/merge.cuh"

constexpr u32 BLOCK = GUSTAV_BLOCK, LONG_BLOCK = GUSTAV_LONG_BLOCK;
// At most LONG nonzeros of A a lane; a warp takes longer rows, and a CTA the longest.
constexpr u32 LONG = 32, LONGEST = 2048;
// With fewer columns, ranges are not computed.
constexpr u32 RANGED_COLUMNS = 256;

namespace {

// The same order as on the host.
enum Bin : u32 { MERGED_FEW, MERGED_MANY, TINY, SMALL, NARROW, WIDE, HUGE, CUT };

__device__ u32 bin_of(const Arguments &g, u32 nonzeros, u64 products, u32 width) {
    if (products == 0 || (nonzeros == 1 && g.ordered)) return BINS;
    const u32 merged = merge::bin_of(g, nonzeros, products, MERGED_FEW, BINS);
    if (merged != BINS) return merged;
    if (is_cut(g, nonzeros, width)) return CUT;
    if (products <= GUSTAV_TINY) return TINY;
    if (is_dense_enough(width, products) && products <= g.narrow) return NARROW;
    if (products <= GUSTAV_SMALL) return SMALL;
    if (width <= GUSTAV_NARROW && products <= g.narrow) return NARROW;
    return products <= g.wide ? WIDE : HUGE;
}

// No column: the host refuses matrices so wide.
constexpr u32 NOWHERE = 0xffffffffu;

struct Reach {
    u64 products;
    u32 least, most;
};

// The products of every `step`th nonzero from `at` on, and with `ranged` the range of their
// columns. IN_FLIGHT nonzeros are read at a time.
template <u32 IN_FLIGHT>
__device__ __forceinline__ Reach reach_of(const Arguments &g, u64 at, u64 end, u32 step,
                                          bool ranged) {
    Reach reach = {0, NOWHERE, 0};
    for (; at < end; at += IN_FLIGHT * step) {
        Offset from[IN_FLIGHT], to[IN_FLIGHT];
#pragma unroll
        for (u32 u = 0; u < IN_FLIGHT; ++u) {
            from[u] = to[u] = 0;
            if (at + u * step >= end) continue;
            const Index k = g.a.indices[at + u * step];
            from[u] = g.b.offsets[k], to[u] = g.b.offsets[k + 1];
        }
#pragma unroll
        for (u32 u = 0; u < IN_FLIGHT; ++u) {
            reach.products += to[u] - from[u];
            if (ranged && from[u] < to[u]) {
                reach.least = min(reach.least, (u32)g.b.indices[from[u]]);
                reach.most = max(reach.most, (u32)g.b.indices[to[u] - 1]);
            }
        }
    }
    return reach;
}

// Sums over `lanes` neighbouring lanes.
__device__ __forceinline__ void reduce_products(Reach &reach, u32 lanes) {
    for (u32 step = lanes / 2; step > 0; step /= 2)
        reach.products += __shfl_xor_sync(0xffffffffu, reach.products, step);
}
__device__ __forceinline__ void reduce_range(Reach &reach, u32 lanes) {
    for (u32 step = lanes / 2; step > 0; step /= 2) {
        reach.least = min(reach.least, __shfl_xor_sync(0xffffffffu, reach.least, step));
        reach.most = max(reach.most, __shfl_xor_sync(0xffffffffu, reach.most, step));
    }
}

// By CTA number `cta` of `ctas`.
__device__ __forceinline__ void count_descents(const Arguments &g, u32 cta, u32 ctas) {
    const u64 threads = (u64)ctas * blockDim.x;
    const u64 thread = (u64)cta * blockDim.x + threadIdx.x;
    const long long found = descents(g.b.offsets, g.b.indices, g.rows_b, g.nnz_b, thread, threads);
    if (threadIdx.x % 32 == 0 && found != 0) atomicAdd(&g.counters[DESCENTS], (u64)found);
}

// The rows of a CTA of THREADS.
template <u32 THREADS>
__device__ __forceinline__ void count_rows(const Arguments &g) {
    __shared__ u32 nonzeros[THREADS], ranges[THREADS], long_rows[THREADS], long_count;
    __shared__ u64 products[THREADS], all_products;
    __shared__ Reach reaches[THREADS / 32];
    __shared__ counting::Bins bins;
    const bool ranged = g.ordered && g.columns > RANGED_COLUMNS;
    const auto keep = [&](u32 i, const Reach &reach, u32 count) {
        nonzeros[i] = count;
        products[i] = reach.products;
        const bool known = reach.least != NOWHERE;
        ranges[i] = Range::code(g, known ? reach.least : 0, known ? reach.most : (u32)g.columns - 1);
    };
    if (threadIdx.x == 0) long_count = 0, all_products = 0;
    bins.begin();
    __syncthreads();
    const u32 lanes = 1u << g.log_lanes, lane = threadIdx.x & (lanes - 1);
    const u64 first = (u64)blockIdx.x * g.tile;
    for (u32 i = threadIdx.x >> g.log_lanes; i < g.tile; i += THREADS >> g.log_lanes) {
        const u64 row = first + i;
        u64 begin = 0, end = 0;
        if (row < g.rows) begin = g.a.offsets[row], end = g.a.offsets[row + 1];
        if (end - begin > LONG * lanes) {
            // Deferred: a warp takes it below.
            if (lane == 0) long_rows[atomicAdd(&long_count, 1u)] = i;
            begin = end;
        }
        // Rows of more nonzeros than that will most likely need their range: compute it in the same
        // pass.
        const bool one_pass = ranged && end - begin > GUSTAV_RANGED;
        Reach reach = reach_of<4>(g, begin + lane, end, lanes, one_pass);
        reduce_products(reach, lanes);
        if (reach.products > GUSTAV_RANGED && ranged && !one_pass) {
            const Reach range = reach_of<4>(g, begin + lane, end, lanes, true);
            reach.least = range.least, reach.most = range.most;
        }
        reduce_range(reach, lanes);
        if (lane == 0) keep(i, reach, (u32)(end - begin));
    }
    __syncthreads();
    for (u32 n = 0; n < long_count; ++n) {
        const u32 i = long_rows[n];
        const u64 begin = g.a.offsets[first + i], end = g.a.offsets[first + i + 1];
        const u32 count = (u32)min(end - begin, (u64)0xffffffffu);
        // A warp takes a row, or all warps together the longest.
        const bool longest = count > LONGEST;
        if (!longest && n % (THREADS / 32) != threadIdx.x / 32) continue;
        const u32 threads = longest ? THREADS : 32;
        Reach reach = reach_of<8>(g, begin + threadIdx.x % threads, end, threads, ranged);
        reduce_products(reach, 32);
        reduce_range(reach, 32);
        if (longest) {
            __syncthreads();
            if (threadIdx.x % 32 == 0) reaches[threadIdx.x / 32] = reach;
            __syncthreads();
            reach = threadIdx.x < THREADS / 32 ? reaches[threadIdx.x] : Reach{0, NOWHERE, 0};
            reduce_products(reach, 32);
            reduce_range(reach, 32);
        }
        if (threadIdx.x == 0 || (!longest && threadIdx.x % 32 == 0)) keep(i, reach, count);
    }
    __syncthreads();
    const u64 row = first + threadIdx.x;
    u32 bin = BINS, size = 0, width = 0;
    u64 sum = 0;
    if (threadIdx.x < g.tile && row < g.rows) {
        sum = products[threadIdx.x];
        size = (u32)min(sum, (u64)0xffffffffu);
        width = Range::of(g, ranges[threadIdx.x]).width;
        bin = bin_of(g, nonzeros[threadIdx.x], sum, width);
        g.ranges[row] = ranges[threadIdx.x];
        g.costs[row] = Cost::code(size, bin);
        const bool copied = nonzeros[threadIdx.x] == 1 && g.ordered;
        if (sum == 0 || copied) put_size(g, row, size);
    }
    bins.add(bin, width, size);
    sum = warp::sum(sum);
    if (threadIdx.x % 32 == 0 && sum > 0) atomicAdd(&all_products, sum);
    __syncthreads();
    bins.end(g);
    if (threadIdx.x == 0 && all_products > 0) atomicAdd(&g.counters[PRODUCTS], all_products);
}

template <u32 THREADS>
__device__ __forceinline__ void analyse_with(const Arguments &g) {
    // CTAs past those for the rows of A check B.
    const u32 ctas = (u32)((g.rows + g.tile - 1) / g.tile);
    if (blockIdx.x < ctas)
        count_rows<THREADS>(g);
    else
        count_descents(g, blockIdx.x - ctas, gridDim.x - ctas);
    counting::report(g);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) analyse(const Arguments g) {
    analyse_with<BLOCK>(g);
}
extern "C" __global__ void __launch_bounds__(LONG_BLOCK) analyse_long(const Arguments g) {
    analyse_with<LONG_BLOCK>(g);
}
