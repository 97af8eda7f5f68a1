// The entries of C = A * B at given places, summed in A's order: a product under a mask, and sums
// that are the same in every run.
//
//   few    warp -> a row of up to PLACES places
//   many   warp -> PLACES places of a longer row
//   keep   warp -> a row: the places that a product met become C's entries
//
// Places, increasing columns, half fill a hash table in shared memory; a sum lies where its column
// does. Rows of B that the row of A names are taken in A's order, short ones together: a lane has a
// product and looks its column up. Where columns of B's rows increase, lanes with the same column are
// of different rows of B, and add one after another in A's order; nothing is added atomically. Of a
// row with more places than a warp's, each row of B is entered where the warp's places begin. Where
// columns repeat or are in no order, sums are added atomically.
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

constexpr u32 BLOCK = 128, WARPS = BLOCK / 32;
// Places of a table, as a power of two, and of a warp.
constexpr u32 LOG = 9, PLACES = 1u << (LOG - 1);
// Entries of a row of B that keep the lanes busy alone.
constexpr u32 LONG = 24;
// Products of such a row that a lane has under way.
constexpr u32 AHEAD = 4;
constexpr u32 FULL = 0xffffffffu;

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
    // Rows of more than PLACES places, and how many: zero at the start.
    u32 *longer;
    u32 *longer_count;
    // Whether columns of B's rows increase.
    u32 ordered;
};

namespace {

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

__device__ __forceinline__ u32 sum_of_warp(u32 mine) {
    for (u32 step = 16; step > 0; step /= 2) mine += __shfl_xor_sync(FULL, mine, step);
    return mine;
}

// The sums at the places [from, from + count) of a row.
struct Window {
    const Arguments &g;
    Table &t;
    u32 log;
    u64 from;
    u32 count;

    __device__ __forceinline__ void add_at(u32 place, Sum a, Sum b) const {
        if (g.ordered)
            t.sums[place] = S::mul_add(a, b, t.sums[place]);
        else
            combine::into<S>(t.sums + place, S::mul_add(a, b, S::zero()));
        t.met[place] = 1;
    }

    // Adds `a` times a row of B, whose columns differ where they increase: `AHEAD` products a lane at
    // once.
    __device__ void add_row(Sum a, u64 start, u64 length) const {
        const u32 lane = threadIdx.x % 32;
        for (u64 i = lane; i - lane < length; i += 32 * AHEAD) {
            u32 places[AHEAD];
#pragma unroll
            for (u32 n = 0; n < AHEAD; ++n) {
                const u64 at = i + 32 * n;
                places[n] = at < length ? (u32)g.b_indices[start + at] : table::EMPTY;
            }
#pragma unroll
            for (u32 n = 0; n < AHEAD; ++n)
                if (places[n] != table::EMPTY) places[n] = look_up(t.keys, log, places[n]);
#pragma unroll
            for (u32 n = 0; n < AHEAD; ++n)
                if (places[n] != table::EMPTY)
                    add_at(places[n], a, widen(g.b_values[start + i + 32 * n]));
        }
        __syncwarp();
    }

    // The same by looking for every place in a row of B whose columns increase.
    __device__ void search_row(Sum a, u64 start, u64 length) const {
        for (u32 i = threadIdx.x % 32; i < count; i += 32) {
            const Index column = g.places[from + i];
            const u64 at = lower_bound(g.b_indices, start, start + length, column);
            if (at < start + length && g.b_indices[at] == column)
                add_at(look_up(t.keys, log, (u32)column), a, widen(g.b_values[at]));
        }
        __syncwarp();
    }

    // Adds the products of 32 nonzeros of A with short rows of B: lane j has the j-th. Lanes that meet
    // in a place take turns.
    __device__ void add_short(u64 start, u32 length, Sum factor) const {
        const u32 lane = threadIdx.x % 32;
        u32 end = length;
        for (u32 step = 1; step < 32; step *= 2) {
            const u32 other = __shfl_up_sync(FULL, end, step);
            if (lane >= step) end += other;
        }
        const u64 first = start - (end - length);
        const u32 all = __shfl_sync(FULL, end, 31);
        for (u32 base = 0; base < all; base += 32) {
            const u32 product = base + lane;
            // The first row that ends after the product.
            u32 j = 0;
            for (u32 step = 16; step > 0; step /= 2)
                if (__shfl_sync(FULL, end, j + step - 1) <= product) j += step;
            const u64 at = __shfl_sync(FULL, first, j) + product;
            const Sum a = __shfl_sync(FULL, factor, j);
            u32 place = table::EMPTY;
            if (product < all) place = look_up(t.keys, log, (u32)g.b_indices[at]);
            const bool hit = place != table::EMPTY;
            const Sum b = hit ? widen(g.b_values[at]) : Sum(0);
            const u32 same = __match_any_sync(FULL, hit ? place : ~lane);
            const u32 turn = g.ordered ? __popc(same & ((1u << lane) - 1)) : 0;
            for (u32 now = 0; __any_sync(FULL, hit && turn >= now); ++now) {
                if (hit && turn == now) add_at(place, a, b);
                __syncwarp();
            }
        }
    }

    // Adds the products of 32 nonzeros of A in their order: lane j has the j-th, its row of B from
    // `start` and of `length` entries.
    __device__ void add_rows(u64 start, u64 length, Sum factor) const {
        const u32 lane = threadIdx.x % 32;
        u32 longer = __ballot_sync(FULL, length >= LONG);
        const u32 some = __ballot_sync(FULL, length > 0);
        // Lanes below this one are done.
        for (u32 done = 0; done < 32;) {
            const u32 next = longer == 0 ? 32 : __ffs(longer) - 1;
            const bool mine = done <= lane && lane < next;
            if (__any_sync(FULL, mine && (some >> lane & 1) != 0))
                add_short(start, mine ? (u32)length : 0, factor);
            if (next < 32) {
                const u64 own = __shfl_sync(FULL, start, next);
                const u64 entries = __shfl_sync(FULL, length, next);
                const Sum a = __shfl_sync(FULL, factor, next);
                // What a search of every place reads one after another, and what the row takes.
                const u64 search = (u64)((count + 31) / 32) * (64 - __clzll(entries));
                if (g.ordered && search * 32 * AHEAD < entries)
                    search_row(a, own, entries);
                else
                    add_row(a, own, entries);
            }
            done = next + 1;
            longer &= longer - 1;
        }
    }
};

// The sums of row `row` at the places [from, from + count); returns how many of them are met, in every
// lane. `part` says that the row has more.
__device__ u32 sum_at(const Arguments &g, Table &t, u64 row, u64 from, u32 count, bool part) {
    const u32 lane = threadIdx.x % 32;
    u32 log = 5;
    while (1u << log < 2 * count) ++log;
    for (u32 at = lane; at < 1u << log; at += 32) {
        t.keys[at] = table::EMPTY;
        t.sums[at] = S::zero();
        t.met[at] = 0;
    }
    __syncwarp();
    bool added;
    for (u32 i = lane; i < count; i += 32) table::find(t.keys, log, (u32)g.places[from + i], added);
    __syncwarp();
    const u64 low = g.places[from], high = g.places[from + count - 1];
    const u64 end = g.a_offsets[row + 1];
    const Window window{g, t, log, from, count};
    for (u64 chunk = g.a_offsets[row]; chunk < end; chunk += 32) {
        u64 start = 0, stop = 0;
        Sum factor = Sum(0);
        if (chunk + lane < end) {
            const u64 k = g.a_indices[chunk + lane];
            start = g.b_offsets[k], stop = g.b_offsets[k + 1];
            factor = widen(g.a_values[chunk + lane]);
            if (part && g.ordered) {
                start = lower_bound(g.b_indices, start, stop, low);
                stop = lower_bound(g.b_indices, start, stop, high + 1);
            }
        }
        window.add_rows(start, stop - start, factor);
    }
    __syncwarp();
    const Sum alpha = from_bits<Sum>(g.alpha);
    u32 mine = 0;
    for (u32 i = lane; i < count; i += 32) {
        const u32 place = look_up(t.keys, log, (u32)g.places[from + i]);
        const u8 met = t.met[place];
        mine += met;
        g.values[from + i] = Narrow<Out>::from(S::scale(alpha, t.sums[place]));
        if (g.met != nullptr) g.met[from + i] = met;
    }
    __syncwarp();
    return sum_of_warp(mine);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) few(const Arguments g) {
    __shared__ Table tables[WARPS];
    const u64 step = (u64)gridDim.x * WARPS;
    for (u64 row = (u64)blockIdx.x * WARPS + threadIdx.x / 32; row < g.rows; row += step) {
        const u64 from = g.places_offsets[row], count = g.places_offsets[row + 1] - from;
        if (count > PLACES) {
            if (threadIdx.x % 32 == 0) g.longer[atomicAdd(g.longer_count, 1u)] = (u32)row;
            continue;
        }
        u32 met = 0;
        if (count > 0) met = sum_at(g, tables[threadIdx.x / 32], row, from, (u32)count, false);
        if (g.met != nullptr && threadIdx.x % 32 == 0) g.c_offsets[row + 1] = (Offset)met;
    }
}

// Counts are added to what `c_offsets` has, which is zero at the start.
extern "C" __global__ void __launch_bounds__(BLOCK) many(const Arguments g) {
    __shared__ Table tables[WARPS];
    const u64 own = (u64)blockIdx.y * WARPS + threadIdx.x / 32, step = (u64)gridDim.y * WARPS;
    const u32 rows = *g.longer_count;
    for (u32 i = blockIdx.x; i < rows; i += gridDim.x) {
        const u64 row = g.longer[i];
        const u64 first = g.places_offsets[row], all = g.places_offsets[row + 1] - first;
        u32 met = 0;
        for (u64 at = own * PLACES; at < all; at += step * PLACES) {
            const u32 here = (u32)min((u64)PLACES, all - at);
            met += sum_at(g, tables[threadIdx.x / 32], row, first + at, here, true);
        }
        if (g.met != nullptr && threadIdx.x % 32 == 0 && met > 0)
            atomicAdd(g.c_offsets + row + 1, (Offset)met);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) keep(const Arguments g) {
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
