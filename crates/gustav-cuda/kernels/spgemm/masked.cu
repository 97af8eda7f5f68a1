// The entries of C = A * B at given places, summed in A's order: a product under a mask, and sums
// that are the same in every run.
//
//   few    warp -> a row of up to MOST<32> places
//   many   CTA -> a row of more
//   keep   warp -> a row: the places that a product met become C's entries
//
// The places of a row, increasing columns, are taken as many at a time as half fill a hash table in
// shared memory; a sum lies where its column does. The team walks the rows of B that the row of A
// names one after another, a thread for each of their entries, and looks its column up: where columns
// of B's rows increase, no two threads have the same one, so that nothing is added atomically and the
// order of summation is A's. Else sums are added atomically.
//
// GUSTAV_INDEX, GUSTAV_OFFSET   types of column indices and of row offsets
// GUSTAV_VALUE, GUSTAV_OUT      types of values of A and B, and of C
// GUSTAV_SEMIRING               the two operations
#include "spgemm/combine.cuh"
#include "spgemm/table.cuh"

typedef GUSTAV_INDEX Index;
typedef GUSTAV_OFFSET Offset;
typedef GUSTAV_VALUE Value;
typedef GUSTAV_OUT Out;
typedef typename Accumulator<Value>::Type Sum;
typedef GUSTAV_SEMIRING<Sum> S;

constexpr u32 BLOCK = 128, WIDE = 256;
// Places of a table, as a power of two.
constexpr u32 LOG_FEW = 9, LOG_MANY = 11;

struct Arguments {
    const Offset *a_offsets;
    const Index *a_indices;
    const Value *a_values;
    const Offset *b_offsets;
    const Index *b_indices;
    const Value *b_values;
    const Offset *places_offsets;
    const Index *places;
    // Of every place: its value, and whether a product met it; the latter may be missing.
    Out *values;
    u8 *met;
    Offset *c_offsets;
    Index *c_indices;
    Out *c_values;
    u64 rows;
    u64 alpha;
    // Whether columns of B's rows increase.
    u32 ordered;
};

namespace {

template <int TEAM>
__device__ __forceinline__ void meet() {
    if constexpr (TEAM == 32)
        __syncwarp();
    else
        __syncthreads();
}

template <u32 LOG>
struct Table {
    u32 keys[1u << LOG];
    Sum sums[1u << LOG];
    u8 met[1u << LOG];
};

// Where `column` is among `1 << log` keys, or EMPTY.
__device__ __forceinline__ u32 look_up(const u32 *keys, u32 log, u32 column) {
    for (u32 at = table::hash(column, log);; at = (at + 1) & ((1u << log) - 1)) {
        const u32 key = keys[at];
        if (key == column) return at;
        if (key == table::EMPTY) return table::EMPTY;
    }
}

// The first of `[from, to)` whose column is not below `column`.
__device__ __forceinline__ u64 lower_bound(const Index *indices, u64 from, u64 to, u64 column) {
    while (from < to) {
        const u64 middle = from + (to - from) / 2;
        if (indices[middle] < column)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

// The entries of row `row` at the places [from, from + count); returns how many of them the thread
// found met. `part` says that the row has more.
template <int TEAM, u32 LOG>
__device__ u32 sum_window(const Arguments &g, Table<LOG> &t, u64 row, u64 from, u32 count,
                          bool part) {
    const u32 thread = threadIdx.x % TEAM, lane = threadIdx.x % 32;
    u32 log = 5;
    while (1u << log < 2 * count) ++log;
    for (u32 at = thread; at < 1u << log; at += TEAM) {
        t.keys[at] = table::EMPTY;
        t.sums[at] = S::zero();
        t.met[at] = 0;
    }
    meet<TEAM>();
    bool added;
    for (u32 i = thread; i < count; i += TEAM) table::find(t.keys, log, (u32)g.places[from + i], added);
    meet<TEAM>();
    const u64 first = g.places[from], last = g.places[from + count - 1];
    const u64 end = g.a_offsets[row + 1];
    for (u64 chunk = g.a_offsets[row]; chunk < end; chunk += 32) {
        const u32 valid = (u32)min((u64)32, end - chunk);
        u64 start = 0, stop = 0;
        Sum factor = Sum(0);
        if (lane < valid) {
            const u64 k = g.a_indices[chunk + lane];
            start = g.b_offsets[k], stop = g.b_offsets[k + 1];
            factor = widen(g.a_values[chunk + lane]);
            // Only what lies between the first and the last place.
            if (part && g.ordered) {
                start = lower_bound(g.b_indices, start, stop, first);
                stop = lower_bound(g.b_indices, start, stop, last + 1);
            }
        }
        for (u32 j = 0; j < valid; ++j) {
            const u64 b = __shfl_sync(0xffffffffu, start, j);
            const u64 b_end = __shfl_sync(0xffffffffu, stop, j);
            const Sum a = __shfl_sync(0xffffffffu, factor, j);
            for (u64 i = b + thread; i < b_end; i += TEAM) {
                const u32 place = look_up(t.keys, log, (u32)g.b_indices[i]);
                if (place == table::EMPTY) continue;
                const Sum value = widen(g.b_values[i]);
                t.met[place] = 1;
                if (g.ordered)
                    t.sums[place] = S::mul_add(a, value, t.sums[place]);
                else
                    combine::into<S>(t.sums + place, S::mul_add(a, value, S::zero()));
            }
            meet<TEAM>();
        }
    }
    const Sum alpha = from_bits<Sum>(g.alpha);
    u32 mine = 0;
    for (u32 i = thread; i < count; i += TEAM) {
        const u32 place = look_up(t.keys, log, (u32)g.places[from + i]);
        const u8 met = t.met[place];
        mine += met;
        g.values[from + i] = Narrow<Out>::from(S::scale(alpha, t.sums[place]));
        if (g.met != nullptr) g.met[from + i] = met;
    }
    meet<TEAM>();
    return mine;
}

__device__ __forceinline__ u32 sum_of_warp(u32 mine) {
    for (u32 step = 16; step > 0; step /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, step);
    return mine;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) few(const Arguments g) {
    constexpr u32 WARPS = BLOCK / 32, MOST = 1u << (LOG_FEW - 1);
    __shared__ Table<LOG_FEW> tables[WARPS];
    const u64 step = (u64)gridDim.x * WARPS;
    for (u64 row = (u64)blockIdx.x * WARPS + threadIdx.x / 32; row < g.rows; row += step) {
        const u64 from = g.places_offsets[row], count = g.places_offsets[row + 1] - from;
        if (count > MOST) continue;
        u32 met = 0;
        if (count > 0)
            met = sum_window<32, LOG_FEW>(g, tables[threadIdx.x / 32], row, from, (u32)count, false);
        met = sum_of_warp(met);
        if (g.met != nullptr && threadIdx.x % 32 == 0) g.c_offsets[row + 1] = (Offset)met;
    }
}

extern "C" __global__ void __launch_bounds__(WIDE) many(const Arguments g) {
    constexpr u64 LEAST = 1u << (LOG_FEW - 1), MOST = 1u << (LOG_MANY - 1);
    __shared__ Table<LOG_MANY> table;
    __shared__ u32 all;
    for (u64 row = blockIdx.x; row < g.rows; row += gridDim.x) {
        const u64 from = g.places_offsets[row], to = g.places_offsets[row + 1];
        if (to - from <= LEAST) continue;
        if (threadIdx.x == 0) all = 0;
        u32 met = 0;
        for (u64 at = from; at < to; at += MOST) {
            const u32 count = (u32)min(MOST, to - at);
            met += sum_window<WIDE, LOG_MANY>(g, table, row, at, count, to - from > MOST);
        }
        met = sum_of_warp(met);
        if (threadIdx.x % 32 == 0) atomicAdd(&all, met);
        __syncthreads();
        if (g.met != nullptr && threadIdx.x == 0) g.c_offsets[row + 1] = (Offset)all;
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) keep(const Arguments g) {
    constexpr u32 WARPS = BLOCK / 32;
    const u32 lane = threadIdx.x % 32;
    const u64 step = (u64)gridDim.x * WARPS;
    for (u64 row = (u64)blockIdx.x * WARPS + threadIdx.x / 32; row < g.rows; row += step) {
        const u64 to = g.places_offsets[row + 1];
        u64 at = g.c_offsets[row];
        for (u64 start = g.places_offsets[row]; start < to; start += 32) {
            const bool met = start + lane < to && g.met[start + lane] != 0;
            const u32 all = __ballot_sync(0xffffffffu, met);
            if (met) {
                const u64 place = at + __popc(all & ((1u << lane) - 1));
                g.c_indices[place] = g.places[start + lane];
                g.c_values[place] = g.values[start + lane];
            }
            at += __popc(all);
        }
    }
}
