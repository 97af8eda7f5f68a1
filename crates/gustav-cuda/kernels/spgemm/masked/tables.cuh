// Sums at positions in shared memory. If the positions (increasing columns) span few columns, they
// are bits of a mask, and the index of a sum is the rank of its bit. Otherwise they fill at most
// half of a hash table, which also indexes the sums. A filter (a bit for each hash of a position)
// rejects most other columns before the table is searched.
//
//   rows of B that A names   |5 9|2 5 7 9 11|4|..    concatenated, empty ones skipped
//   lanes of a warp           0 1 2 3 4 5  6 7       a product each, across rows
//
// Sums in A's order need increasing columns in B's rows: lanes of a warp that add to the same
// position then have different rows of B, and add one after another. Other sums are added
// atomically.
#pragma once
#include "ptx/warp.cuh"
#include "schedule/look_back.cuh"
#include "spgemm/combine.cuh"
#include "spgemm/masked/positions.cuh"
#include "spgemm/table.cuh"

namespace tasks {

// Positions among 32 columns, and the number of positions before them.
struct Bits {
    u32 mask, before;
};

// The shared memory of GROUP threads.
template <u32 GROUP, u32 LOG>
struct Memory {
    // Most columns that positions may span to be found by rank.
    static constexpr u32 WIDTH = (3u << LOG) / 4 * 32;

    union {
        struct {
            u32 keys[1u << LOG];
            u32 filter[1u << (LOG - 1)];
        };
        Bits bits[WIDTH / 32];
    };
    Sum sums[1u << LOG];
    // The concatenated rows of B: the end of their products, their start in B less the number of
    // products before them, the value of A, and their number if they are searched.
    u64 ends[GROUP];
    Offset starts[GROUP];
    Sum factors[GROUP];
    u32 searched[GROUP];
    u8 present[1u << LOG];
};

// The slot of `column` among `1 << log` keys, or EMPTY.
__device__ __forceinline__ u32 look_up(const u32 *keys, u32 log, u32 column) {
    for (u32 at = table::hash(column, log);; at = (at + 1) & ((1u << log) - 1)) {
        const u32 key = keys[at];
        if (key == column) return at;
        if (key == table::EMPTY) return table::EMPTY;
    }
}

// Sums at positions, by GROUP threads with tables of at most 2^LOG slots.
template <u32 GROUP, u32 LOG>
struct Sums {
    static constexpr u32 GROUP_WARPS = GROUP / 32;
    // Bits of the filter for every slot, as a power of two.
    static constexpr u32 BITS = 4;
    // If the products of a warp are of at most so many rows of B, the rows are added one after
    // another, without a search for columns that they share.
    static constexpr u32 SERIAL_ROWS = 4;

    const Arguments &g;
    Memory<GROUP, LOG> &t;
    const Positions &p;
    u32 thread, log;
    // The first position, and the number of columns from it to the last, used if `ranked`.
    u32 low, width;
    bool ranked;

    // The bit of `column` in the filter: its word, and its position in the word.
    __device__ __forceinline__ u32 bit_of(u32 column) const {
        return column * 0x85ebca6bu >> (32 - BITS - log);
    }

    __device__ void clear() {
        low = (u32)g.positions[p.from], width = (u32)g.positions[p.from + p.count - 1] - low + 1;
        ranked = width <= Memory<GROUP, LOG>::WIDTH;
        if (ranked) return rank();
        log = 5;
        while (1u << log < 2 * p.count) ++log;
        for (u32 at = thread; at < 1u << log; at += GROUP) {
            t.keys[at] = table::EMPTY;
            t.sums[at] = S::zero();
            t.present[at] = 0;
        }
        for (u32 at = thread; at < 1u << (log + BITS - 5); at += GROUP) t.filter[at] = 0;
        sync_group<GROUP>();
        for (u32 i = thread; i < p.count; i += GROUP) {
            const u32 column = (u32)g.positions[p.from + i], bit = bit_of(column);
            bool added;
            table::find(t.keys, log, column, added);
            atomicOr(t.filter + bit / 32, 1u << bit % 32);
        }
        sync_group<GROUP>();
    }

    __device__ void rank() {
        for (u32 at = thread; at < p.count; at += GROUP) t.sums[at] = S::zero(), t.present[at] = 0;
        for (u32 at = thread; at < (width + 31) / 32; at += GROUP) t.bits[at].mask = 0;
        sync_group<GROUP>();
        for (u32 i = thread; i < p.count; i += GROUP) {
            const u32 at = (u32)g.positions[p.from + i] - low;
            atomicOr(&t.bits[at / 32].mask, 1u << at % 32);
            const bool first = i == 0 || ((u32)g.positions[p.from + i - 1] - low) / 32 != at / 32;
            if (first) t.bits[at / 32].before = i;
        }
        sync_group<GROUP>();
    }

    // The rank of the position `column`, or EMPTY.
    __device__ __forceinline__ u32 rank_of(u32 column) const {
        const u32 at = column - low;
        if (at >= width) return table::EMPTY;
        const Bits word = t.bits[at / 32];
        const u32 bit = 1u << at % 32;
        return (word.mask & bit) == 0 ? table::EMPTY
                                      : word.before + __popc(word.mask & (bit - 1));
    }

    __device__ __forceinline__ void add_at(u32 position, Sum a, Sum b) const {
        if (GROUP == 32 && g.in_order)
            t.sums[position] = S::mul_add(a, b, t.sums[position]);
        else
            combine::into<S>(t.sums + position, S::mul_add(a, b, S::zero()));
        t.present[position] = 1;
    }

    // Concatenates the rows of B of up to GROUP nonzeros, from `at` to `end`, skipping empty ones;
    // returns the number of rows, and in `products` that of their products.
    __device__ u32 lay_out(u64 at, u64 end, u64 &products) const {
        Nonzero own = {0, 0, 0, false};
        Sum factor = Sum();
        if (at + thread < end) {
            own = p.nonzero(g, at + thread);
            factor = widen(g.a.values[at + thread]);
        }
        const u32 some = __ballot_sync(warp::ALL, own.length > 0);
        u32 position = __popc(some & warp::lanes_before()), rows = __popc(some);
        u64 before;
        if constexpr (GROUP > 32) {
            // One scan of both: rows in the bits from 48 on, products below, as a row has fewer
            // than 2^32.
            const u64 mine = (own.length > 0 ? 1ull << 48 : 0) | own.length;
            u64 total;
            const u64 start = look_back::within<GROUP>(mine, total);
            position = (u32)(start >> 48), before = start & ((1ull << 48) - 1);
            rows = (u32)(total >> 48), products = total & ((1ull << 48) - 1);
        } else {
            const u64 up_to = warp::sum_up_to(own.length);
            before = up_to - own.length;
            products = __shfl_sync(warp::ALL, up_to, 31);
        }
        if (own.length > 0) {
            t.ends[position] = before + own.length;
            t.starts[position] = own.start - (Offset)before;
            t.factors[position] = factor;
            t.searched[position] = own.searched ? own.k : table::EMPTY;
        }
        sync_group<GROUP>();
        return rows;
    }

    // The column of a product of concatenated row `row`, and its position in B; EMPTY if the row is
    // searched and does not have the column.
    __device__ __forceinline__ u32 column_of(u32 row, u64 product, Offset &at) const {
        const u32 k = t.searched[row];
        if (k == table::EMPTY) {
            at = t.starts[row] + (Offset)product;
            return (u32)g.b.indices[at];
        }
        const u64 position = product - (row == 0 ? 0 : t.ends[row - 1]);
        const Index column = g.positions[p.from + position];
        const Offset stop = g.b.offsets[k + 1];
        at = lower_bound(g.b.indices, (Offset)g.b.offsets[k], stop, column);
        return at < stop && g.b.indices[at] == column ? (u32)column : table::EMPTY;
    }

    // Adds the products [from, to) of `rows` concatenated rows, by a warp.
    __device__ void add(u32 rows, u64 from, u64 to) const {
        const u32 lane = threadIdx.x % 32;
        // The row of product `from`.
        u32 row = GROUP_WARPS == 1 ? 0 : (u32)lower_bound(t.ends, 0u, rows, from + 1);
        for (u64 base = from; base < to; base += 32 * IN_FLIGHT) {
            u32 columns[IN_FLIGHT], owners[IN_FLIGHT];
            Offset at[IN_FLIGHT];
            Value values[IN_FLIGHT];
            // The number of rows of the lanes' products, without the first.
            u32 others[IN_FLIGHT];
#pragma unroll
            for (u32 n = 0; n < IN_FLIGHT; ++n) {
                const u64 first = base + 32 * n, product = first + lane;
                columns[n] = table::EMPTY, owners[n] = 0, at[n] = 0, others[n] = 0;
                if (first >= to) continue;
                owners[n] = row;
                const u64 end = t.ends[row];
                if (end >= first + 32 || end >= to) {
                    row += end == first + 32;
                } else {
                    // Count the rows that end before the lane's product.
                    const u64 left = row + lane < rows ? t.ends[row + lane] - first : 33;
                    const u32 ends = ptx::or_over_warp(left < 32 ? 1u << left : 0);
                    owners[n] += __popc(ends & ((2u << lane) - 1));
                    others[n] = __popc(ends);
                    row += others[n] + (__any_sync(warp::ALL, left == 32) ? 1 : 0);
                }
                if (product < to) columns[n] = column_of(owners[n], product, at[n]);
                if (columns[n] != table::EMPTY) values[n] = g.b.values[at[n]];
            }
            u32 positions[IN_FLIGHT];
            if (ranked) {
#pragma unroll
                for (u32 n = 0; n < IN_FLIGHT; ++n)
                    positions[n] = columns[n] == table::EMPTY ? table::EMPTY : rank_of(columns[n]);
            } else {
#pragma unroll
                for (u32 n = 0; n < IN_FLIGHT; ++n) {
                    if (columns[n] == table::EMPTY) continue;
                    const u32 bit = bit_of(columns[n]);
                    if ((t.filter[bit / 32] >> bit % 32 & 1) == 0) columns[n] = table::EMPTY;
                }
#pragma unroll
                for (u32 n = 0; n < IN_FLIGHT; ++n) {
                    positions[n] = table::EMPTY;
                    if (columns[n] != table::EMPTY) positions[n] = look_up(t.keys, log, columns[n]);
                }
            }
#pragma unroll
            for (u32 n = 0; n < IN_FLIGHT; ++n) {
                const bool hit = positions[n] != table::EMPTY;
                const Sum a = hit ? t.factors[owners[n]] : Sum();
                if (GROUP > 32 || !g.in_order) {
                    if (hit) add_at(positions[n], a, widen(values[n]));
                    continue;
                }
                const u32 hits = __ballot_sync(warp::ALL, hit);
                if (hits == 0) continue;
                u32 round = 0;
                if (others[n] != 0 && others[n] < SERIAL_ROWS) {
                    round = owners[n] - __shfl_sync(warp::ALL, owners[n], 0);
                } else if (others[n] != 0 && (hits & (hits - 1)) != 0) {
                    const u32 same = __match_any_sync(warp::ALL, hit ? positions[n] : ~lane);
                    round = __popc(same & warp::lanes_before());
                }
                for (u32 now = 0; __any_sync(warp::ALL, hit && round >= now); ++now) {
                    if (hit && round == now) add_at(positions[n], a, widen(values[n]));
                    __syncwarp();
                }
            }
        }
    }

    // Writes the values; returns how many of the thread's positions have a product.
    __device__ u32 finish() const {
        const Sum alpha = from_bits<Sum>(g.alpha);
        u32 mine = 0;
        for (u32 i = thread; i < p.count; i += GROUP) {
            const u32 position = ranked ? i : look_up(t.keys, log, (u32)g.positions[p.from + i]);
            const u8 present = t.present[position];
            mine += present;
            g.values[p.from + i] = Narrow<Out>::from(S::scale(alpha, t.sums[position]));
            if (g.present != nullptr) g.present[p.from + i] = present;
        }
        return mine;
    }
};

}  // namespace tasks
