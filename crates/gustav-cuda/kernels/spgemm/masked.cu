// The entries of C = A * B at given places: a product under a mask, and sums that are the same in
// every run.
//
//   weigh       8 lanes, a warp or a CTA -> a row: which of the following has it
//   search_8, search_32   so many lanes -> a row, a place each, searched for in the rows of B
//   few         warp -> a row of not many places and products
//   cut         warp -> another row, into tasks: some of its places
//   many        warp -> a task, sums in A's order
//   shared      CTA -> a task, sums in any order
//   keep        warp -> a row: the places that a product met become C's entries
//
// In `few`, `many` and `shared` places, increasing columns, half fill a hash table in shared memory; a
// sum lies where its column does. Before it is looked up, a column has to pass a filter, a bit for
// each hash of a place: most that are no places end there.
//
//   rows of B that A names   |5 9|2 5 7 9 11|4|..    end to end, empty ones left out
//   lanes of a warp           0 1 2 3 4 5  6 7       a product each, of whatever row
//
// Rows of B that are much longer than the places are many are searched for these instead, and have
// as many products as there are places. A task enters every row of B where its places begin.
//
// For sums in A's order columns of B's rows have to increase: lanes of one warp that meet in a place
// are then of different rows of B, and add one after another. Other sums are added atomically.
//
// GUSTAV_INDEX, GUSTAV_OFFSET   types of column indices and of row offsets
// GUSTAV_VALUE, GUSTAV_OUT      types of values of A and B, and of C
// GUSTAV_SEMIRING               the two operations
// GUSTAV_LEAST                  places of the smallest tasks, as a power of two
#include "common/search.cuh"
#include "ptx/warp.cuh"
#include "schedule/look_back.cuh"
#include "spgemm/combine.cuh"
#include "spgemm/table.cuh"

typedef GUSTAV_INDEX Index;
typedef GUSTAV_OFFSET Offset;
typedef GUSTAV_VALUE Value;
typedef GUSTAV_OUT Out;
typedef typename Accumulator<Value>::Type Sum;
typedef GUSTAV_SEMIRING<Sum> S;

constexpr u32 BLOCK = 128, WARPS = BLOCK / 32;
// Threads that share a task, and that weigh rows.
constexpr u32 SHARING = 256;
// Places of a warp and of a CTA, and of the smallest tasks, as powers of two.
constexpr u32 FEW = 8, MANY = 10, LEAST = GUSTAV_LEAST;
// Searches of a row, of its places among all rows of B, and such rows; entries read in searches that
// take as long as a product, and products that take as long as a table.
constexpr u32 SEARCHES = 1024, SEARCHED = 64, READS = 6, TABLE = 512;
// Fewest and most products of a task of a warp, and of one of a CTA.
constexpr u64 LEAST_IN_ORDER = 2048, MOST_IN_ORDER = 16384;
constexpr u64 LEAST_TOGETHER = 16384, MOST_TOGETHER = 131072;
// Nonzeros of A that 8 lanes weigh; longer rows are a warp's, and the longest a CTA's.
constexpr u32 LONG = 64, LONGEST = 1024;
// Products that a lane has under way.
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
    // Rows in four lists: those searched by 8 lanes and of `few`, from both ends of one array, those
    // searched by 32 and to be cut, of another; both have room for all rows.
    u32 *near;
    u32 *far;
    // A row above the number of the task among its tasks and 4 bits for the logarithm of their places.
    u64 *tasks;
    // Zeros at the start, see below.
    u64 *counters;
    // Products of a row that a warp takes alone, and tasks that keep the device busy.
    u32 alone;
    u32 busy;
    // Whether columns of B's rows increase.
    u32 ordered;
    // Whether a sum must be in A's order.
    u32 in_order;
};

// Rows of the lists, tasks, products of all rows, tasks that are taken.
enum Counter : u32 { NEAR_8, NEAR_FEW, FAR_32, FAR_CUT, TASKS, PRODUCTS, TAKEN };

namespace {

// What TEAM threads have in shared memory.
template <u32 TEAM, u32 LOG>
struct Memory {
    u32 keys[1u << LOG];
    Sum sums[1u << LOG];
    u32 filter[1u << (LOG - 1)];
    // Rows of B under way: where their products end among all, where they begin less the products
    // before, what they are multiplied by, their number if they are searched.
    u64 ends[TEAM];
    Offset starts[TEAM];
    Sum factors[TEAM];
    u32 searched[TEAM];
    u8 met[1u << LOG];
};

template <u32 TEAM>
__device__ __forceinline__ void meet() {
    if constexpr (TEAM > 32)
        __syncthreads();
    else
        __syncwarp();
}

__device__ __forceinline__ u64 sum_of_warp(u64 mine) {
    for (u32 step = 16; step > 0; step /= 2) mine += __shfl_xor_sync(FULL, mine, step);
    return mine;
}

__device__ __forceinline__ u32 largest_of_warp(u32 mine) {
    for (u32 step = 16; step > 0; step /= 2) mine = max(mine, __shfl_xor_sync(FULL, mine, step));
    return mine;
}

// Where `column` is among `1 << log` keys, or EMPTY.
__device__ __forceinline__ u32 look_up(const u32 *keys, u32 log, u32 column) {
    for (u32 at = table::hash(column, log);; at = (at + 1) & ((1u << log) - 1)) {
        const u32 key = keys[at];
        if (key == column) return at;
        if (key == table::EMPTY) return table::EMPTY;
    }
}

// A nonzero of A and the row of B that it names, or the part of it from column `low` to `high`.
struct Nonzero {
    u32 k;
    Offset start;
    // Products, as many as places where the row is searched for them.
    u64 length;
    bool searched;
};

// The places [from, from + count) of a row. `part` says that the row has more.
struct Places {
    u64 row, from;
    u32 count;
    bool part;
    u64 low, high;

    __device__ Places(const Arguments &g, u64 row, u64 from, u32 count, bool part)
        : row(row), from(from), count(count), part(part && g.ordered), low(0), high(0) {
        if (this->part) low = g.places[from], high = g.places[from + count - 1];
    }

    __device__ __forceinline__ Nonzero nonzero(const Arguments &g, u64 at) const {
        const u32 k = (u32)g.a_indices[at];
        Offset start = g.b_offsets[k], stop = g.b_offsets[k + 1];
        if (part) {
            start = lower_bound(g.b_indices, start, stop, low);
            stop = lower_bound(g.b_indices, start, stop, high + 1);
        }
        const u64 length = stop - start;
        // A search reads a few entries one after another.
        const bool searched = g.ordered && length > 2ull * count * (64 - __clzll(length));
        return {k, start, searched ? count : length, searched};
    }
};

// Sums at places, by TEAM threads with tables of at most 2^LOG slots.
template <u32 TEAM, u32 LOG>
struct Sums {
    static constexpr u32 TEAM_WARPS = TEAM / 32;
    // Filters have so many bits for every slot, as a power of two.
    static constexpr u32 BITS = 4;
    // Rows of B that take turns one after another, whether they meet or not.
    static constexpr u32 TURNS = 4;

    const Arguments &g;
    Memory<TEAM, LOG> &t;
    const Places &p;
    u32 thread, log;

    // The bit of `column` in the filter: its word, and its place in the word.
    __device__ __forceinline__ u32 bit_of(u32 column) const {
        return column * 0x85ebca6bu >> (32 - BITS - log);
    }

    __device__ void clear() {
        log = 5;
        while (1u << log < 2 * p.count) ++log;
        for (u32 at = thread; at < 1u << log; at += TEAM) {
            t.keys[at] = table::EMPTY;
            t.sums[at] = S::zero();
            t.met[at] = 0;
        }
        for (u32 at = thread; at < 1u << (log + BITS - 5); at += TEAM) t.filter[at] = 0;
        meet<TEAM>();
        for (u32 i = thread; i < p.count; i += TEAM) {
            const u32 column = (u32)g.places[p.from + i], bit = bit_of(column);
            bool added;
            table::find(t.keys, log, column, added);
            atomicOr(t.filter + bit / 32, 1u << bit % 32);
        }
        meet<TEAM>();
    }

    __device__ __forceinline__ void add_at(u32 place, Sum a, Sum b) const {
        if (TEAM == 32 && g.in_order)
            t.sums[place] = S::mul_add(a, b, t.sums[place]);
        else
            combine::into<S>(t.sums + place, S::mul_add(a, b, S::zero()));
        t.met[place] = 1;
    }

    // Puts the rows of B of up to TEAM nonzeros, from `at` to `end`, end to end, empty ones left out;
    // returns how many there are, and how many products.
    __device__ u32 lay_out(u64 at, u64 end, u64 &products) const {
        Nonzero own = {0, 0, 0, false};
        Sum factor = Sum();
        if (at + thread < end) {
            own = p.nonzero(g, at + thread);
            factor = widen(g.a_values[at + thread]);
        }
        const u32 lane = threadIdx.x % 32;
        const u32 some = __ballot_sync(FULL, own.length > 0);
        u32 place = __popc(some & ((1u << lane) - 1)), rows = __popc(some);
        u64 before;
        if constexpr (TEAM > 32) {
            // Rows above products: the latter are fewer than 2^32 a row.
            const u64 mine = (own.length > 0 ? 1ull << 48 : 0) | own.length;
            u64 total;
            const u64 start = look_back::within<TEAM>(mine, total);
            place = (u32)(start >> 48), before = start & ((1ull << 48) - 1);
            rows = (u32)(total >> 48), products = total & ((1ull << 48) - 1);
        } else {
            u64 scan = own.length;
            for (u32 step = 1; step < 32; step *= 2) {
                const u64 other = __shfl_up_sync(FULL, scan, step);
                if (lane >= step) scan += other;
            }
            before = scan - own.length;
            products = __shfl_sync(FULL, scan, 31);
        }
        if (own.length > 0) {
            t.ends[place] = before + own.length;
            t.starts[place] = own.start - (Offset)before;
            t.factors[place] = factor;
            t.searched[place] = own.searched ? own.k : table::EMPTY;
        }
        meet<TEAM>();
        return rows;
    }

    // The column of a product of row `row` of those laid out, and where it is in B; EMPTY where B has
    // no entry at a place that is searched for.
    __device__ __forceinline__ u32 column_of(u32 row, u64 product, Offset &at) const {
        const u32 k = t.searched[row];
        if (k == table::EMPTY) {
            at = t.starts[row] + (Offset)product;
            return (u32)g.b_indices[at];
        }
        const u64 place = product - (row == 0 ? 0 : t.ends[row - 1]);
        const Index column = g.places[p.from + place];
        const Offset stop = g.b_offsets[k + 1];
        at = lower_bound(g.b_indices, (Offset)g.b_offsets[k], stop, column);
        return at < stop && g.b_indices[at] == column ? (u32)column : table::EMPTY;
    }

    // Adds the products [from, to) of `rows` rows that are laid out, by a warp.
    __device__ void add(u32 rows, u64 from, u64 to) const {
        const u32 lane = threadIdx.x % 32;
        // The first row that ends after the products before.
        u32 row = TEAM_WARPS == 1 ? 0 : (u32)lower_bound(t.ends, 0u, rows, from + 1);
        for (u64 base = from; base < to; base += 32 * AHEAD) {
            u32 columns[AHEAD], owners[AHEAD];
            Offset at[AHEAD];
            Value values[AHEAD];
            // Rows that the lanes' products are of, but for the first.
            u32 others[AHEAD];
#pragma unroll
            for (u32 n = 0; n < AHEAD; ++n) {
                const u64 first = base + 32 * n, product = first + lane;
                columns[n] = table::EMPTY, owners[n] = 0, at[n] = 0, others[n] = 0;
                if (first >= to) continue;
                owners[n] = row;
                const u64 end = t.ends[row];
                if (end >= first + 32 || end >= to) {
                    row += end == first + 32;
                } else {
                    // Rows that end before a lane's product are before its own.
                    const u64 left = row + lane < rows ? t.ends[row + lane] - first : 33;
                    const u32 ends = ptx::or_over_warp(left < 32 ? 1u << left : 0);
                    owners[n] += __popc(ends & ((2u << lane) - 1));
                    others[n] = __popc(ends);
                    row += others[n] + (__any_sync(FULL, left == 32) ? 1 : 0);
                }
                if (product < to) columns[n] = column_of(owners[n], product, at[n]);
                if (columns[n] != table::EMPTY) values[n] = g.b_values[at[n]];
            }
#pragma unroll
            for (u32 n = 0; n < AHEAD; ++n) {
                if (columns[n] == table::EMPTY) continue;
                const u32 bit = bit_of(columns[n]);
                if ((t.filter[bit / 32] >> bit % 32 & 1) == 0) columns[n] = table::EMPTY;
            }
            u32 places[AHEAD];
#pragma unroll
            for (u32 n = 0; n < AHEAD; ++n) {
                places[n] = table::EMPTY;
                if (columns[n] != table::EMPTY) places[n] = look_up(t.keys, log, columns[n]);
            }
#pragma unroll
            for (u32 n = 0; n < AHEAD; ++n) {
                const bool hit = places[n] != table::EMPTY;
                const Sum a = hit ? t.factors[owners[n]] : Sum();
                if (TEAM > 32 || !g.in_order) {
                    if (hit) add_at(places[n], a, widen(values[n]));
                    continue;
                }
                const u32 hits = __ballot_sync(FULL, hit);
                if (hits == 0) continue;
                u32 turn = 0;
                if (others[n] != 0 && others[n] < TURNS) {
                    turn = owners[n] - __shfl_sync(FULL, owners[n], 0);
                } else if (others[n] != 0 && (hits & (hits - 1)) != 0) {
                    const u32 same = __match_any_sync(FULL, hit ? places[n] : ~lane);
                    turn = __popc(same & ((1u << lane) - 1));
                }
                for (u32 now = 0; __any_sync(FULL, hit && turn >= now); ++now) {
                    if (hit && turn == now) add_at(places[n], a, widen(values[n]));
                    __syncwarp();
                }
            }
        }
    }

    // Writes the values; returns how many places of the thread's a product met.
    __device__ u32 finish() const {
        const Sum alpha = from_bits<Sum>(g.alpha);
        u32 mine = 0;
        for (u32 i = thread; i < p.count; i += TEAM) {
            const u32 place = look_up(t.keys, log, (u32)g.places[p.from + i]);
            const u8 met = t.met[place];
            mine += met;
            g.values[p.from + i] = Narrow<Out>::from(S::scale(alpha, t.sums[place]));
            if (g.met != nullptr) g.met[p.from + i] = met;
        }
        return mine;
    }
};

// The sums at some places; returns how many of a warp's are met, in every lane.
template <u32 TEAM, u32 LOG>
__device__ u32 sum_at(const Arguments &g, Memory<TEAM, LOG> &t, const Places &p) {
    constexpr u32 STEP = 32 * AHEAD;
    const u32 thread = threadIdx.x % TEAM, warp = thread / 32;
    Sums<TEAM, LOG> sums{g, t, p, thread, 0};
    sums.clear();
    const u64 end = g.a_offsets[p.row + 1];
    for (u64 at = g.a_offsets[p.row]; at < end; at += TEAM) {
        u64 products;
        const u32 rows = sums.lay_out(at, end, products);
        u64 share = products;
        if (TEAM > 32) share = (products / (2 * TEAM / 32) + STEP) / STEP * STEP;
        for (u64 from = warp * share; from < products; from += TEAM / 32 * share)
            sums.add(rows, from, min(from + share, products));
        meet<TEAM>();
    }
    const u32 met = (u32)sum_of_warp(sums.finish());
    meet<TEAM>();
    return met;
}

// The sums at the places of a task, as far as the row has them.
template <u32 TEAM, u32 LOG>
__device__ void take(const Arguments &g, Memory<TEAM, LOG> &t, u64 task) {
    const u64 row = task >> 32;
    const u32 log = task & 15;
    const u64 first = g.places_offsets[row], all = g.places_offsets[row + 1] - first;
    const u64 before = (u64)((u32)task >> 4) << log;
    if (before >= all) return;
    const u32 count = (u32)min(1ull << log, all - before);
    const u32 met = sum_at(g, t, Places(g, row, first + before, count, all > count));
    if (g.met != nullptr && threadIdx.x % 32 == 0 && met > 0)
        atomicAdd(g.c_offsets + row + 1, (Offset)met);
}

// Products of the rows of B that every `step`th nonzero from `at` on names.
__device__ __forceinline__ u64 products_of(const Arguments &g, u64 at, u64 end, u32 step) {
    u64 products = 0;
#pragma unroll 4
    for (; at < end; at += step) {
        const Index k = g.a_indices[at];
        products += g.b_offsets[k + 1] - g.b_offsets[k];
    }
    return products;
}

// Puts a row in its list.
__device__ void list(const Arguments &g, u64 row, u64 products) {
    const u64 count = g.places_offsets[row + 1] - g.places_offsets[row];
    const u64 nonzeros = g.a_offsets[row + 1] - g.a_offsets[row];
    if (count == 0) return;
    const u64 searches = count * nonzeros, mean = products / max(nonzeros, (u64)1);
    const u64 reads = searches * (66 - __clzll(mean));
    const bool searched = g.ordered && nonzeros <= SEARCHED && searches <= SEARCHES &&
                          reads <= READS * (products + TABLE);
    const auto next = [&](Counter of) { return atomicAdd(g.counters + of, 1ull); };
    if (searched && count <= 8)
        g.near[next(NEAR_8)] = (u32)row;
    else if (searched)
        g.far[next(FAR_32)] = (u32)row;
    else if (count <= 1u << FEW && products <= g.alone)
        g.near[g.rows - 1 - next(NEAR_FEW)] = (u32)row;
    else
        g.far[g.rows - 1 - next(FAR_CUT)] = (u32)row;
}

// Sums at all places of a row, LANES lanes of a warp for each of its rows.
template <u32 LANES>
__device__ void search(const Arguments &g, const u32 *rows, u64 count) {
    constexpr u32 TEAMS = BLOCK / LANES;
    const u32 lane = threadIdx.x % LANES;
    const Sum alpha = from_bits<Sum>(g.alpha);
    const u64 step = (u64)gridDim.x * TEAMS, first_team = (u64)blockIdx.x * TEAMS;
    // Teams of a warp stay together.
    for (u64 team = first_team; team < count; team += step) {
        const u64 i = team + threadIdx.x / LANES, row = i < count ? rows[i] : 0;
        const u64 a_begin = g.a_offsets[row], from = g.places_offsets[row];
        const u64 a_end = i < count ? (u64)g.a_offsets[row + 1] : a_begin;
        const u64 to = i < count ? (u64)g.places_offsets[row + 1] : from;
        const u32 nonzeros = largest_of_warp((u32)(a_end - a_begin));
        const u32 places = largest_of_warp((u32)(to - from));
        u32 mine = 0;
        for (u32 base = 0; base < places; base += LANES) {
            const u64 place = from + base + lane;
            const bool here = place < to;
            const Index column = here ? g.places[place] : 0;
            Sum sum = S::zero();
            u8 met = 0;
            for (u32 first = 0; first < nonzeros; first += LANES) {
                const u64 at = a_begin + first + lane;
                Offset start = 0;
                u32 length = 0;
                Sum factor = Sum();
                if (at < a_end) {
                    const Index k = g.a_indices[at];
                    start = g.b_offsets[k];
                    length = (u32)(g.b_offsets[k + 1] - start);
                    factor = widen(g.a_values[at]);
                }
                const u32 bits = 32 - __clz(largest_of_warp(length));
                for (u32 j = 0; j < min(LANES, nonzeros - first); j += AHEAD) {
                    // Entries before the place, of AHEAD rows of B.
                    Offset begin[AHEAD];
                    u32 below[AHEAD], size[AHEAD];
#pragma unroll
                    for (u32 n = 0; n < AHEAD; ++n) {
                        begin[n] = __shfl_sync(FULL, start, j + n, LANES);
                        size[n] = __shfl_sync(FULL, length, j + n, LANES);
                        below[n] = 0;
                        if (!here) size[n] = 0;
                    }
                    for (u32 bit = bits; bit-- > 0;) {
                        const u32 more = 1u << bit;
#pragma unroll
                        for (u32 n = 0; n < AHEAD; ++n)
                            if (below[n] + more <= size[n] &&
                                g.b_indices[begin[n] + below[n] + more - 1] < column)
                                below[n] += more;
                    }
#pragma unroll
                    for (u32 n = 0; n < AHEAD; ++n) {
                        const Sum a = __shfl_sync(FULL, factor, j + n, LANES);
                        const Offset entry = begin[n] + below[n];
                        if (below[n] < size[n] && g.b_indices[entry] == column) {
                            sum = S::mul_add(a, widen(g.b_values[entry]), sum);
                            met = 1;
                        }
                    }
                }
            }
            if (here) {
                g.values[place] = Narrow<Out>::from(S::scale(alpha, sum));
                if (g.met != nullptr) g.met[place] = met;
                mine += met;
            }
        }
        for (u32 distance = LANES / 2; distance > 0; distance /= 2)
            mine += __shfl_xor_sync(FULL, mine, distance);
        if (g.met != nullptr && lane == 0 && i < count) g.c_offsets[row + 1] = (Offset)mine;
    }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(SHARING) weigh(const Arguments g) {
    constexpr u32 ROWS = SHARING / 8;
    __shared__ u32 long_rows[ROWS], long_count;
    __shared__ u64 sums[SHARING / 32];
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u64 all = 0;
    for (u64 first = (u64)blockIdx.x * ROWS; first < g.rows; first += (u64)gridDim.x * ROWS) {
        if (threadIdx.x == 0) long_count = 0;
        __syncthreads();
        const u64 row = first + threadIdx.x / 8;
        u64 begin = 0, end = 0;
        if (row < g.rows) begin = g.a_offsets[row], end = g.a_offsets[row + 1];
        const bool own = row < g.rows && end - begin <= LONG;
        u64 products = own ? products_of(g, begin + threadIdx.x % 8, end, 8) : 0;
        for (u32 step = 4; step > 0; step /= 2) products += __shfl_xor_sync(FULL, products, step);
        if (threadIdx.x % 8 == 0) {
            if (own)
                list(g, row, products), all += products;
            else if (row < g.rows)
                long_rows[atomicAdd(&long_count, 1u)] = (u32)row;
        }
        __syncthreads();
        for (u32 n = 0; n < long_count; ++n) {
            const u64 row = long_rows[n], begin = g.a_offsets[row], end = g.a_offsets[row + 1];
            const bool longest = end - begin > LONGEST;
            if (!longest && n % (SHARING / 32) != warp) continue;
            const u32 threads = longest ? SHARING : 32;
            u64 products = sum_of_warp(products_of(g, begin + threadIdx.x % threads, end, threads));
            if (longest) {
                __syncthreads();
                if (lane == 0) sums[warp] = products;
                __syncthreads();
                products = sum_of_warp(lane < SHARING / 32 ? sums[lane] : 0);
            }
            if (lane == 0 && (!longest || warp == 0)) list(g, row, products), all += products;
        }
        __syncthreads();
    }
    all = sum_of_warp(all);
    if (lane == 0 && all > 0) atomicAdd(g.counters + PRODUCTS, all);
}

extern "C" __global__ void __launch_bounds__(BLOCK) cut(const Arguments g) {
    const u32 lane = threadIdx.x % 32;
    const u64 step = (u64)gridDim.x * WARPS, rows = g.counters[FAR_CUT];
    const u64 share = g.counters[PRODUCTS] / g.busy;
    const u64 most = g.in_order ? min(max(share, LEAST_IN_ORDER), MOST_IN_ORDER)
                                : min(max(share, LEAST_TOGETHER), MOST_TOGETHER);
    for (u64 i = (u64)blockIdx.x * WARPS + threadIdx.x / 32; i < rows; i += step) {
        const u64 row = g.far[g.rows - 1 - i];
        const u64 count = g.places_offsets[row + 1] - g.places_offsets[row];
        const u64 begin = g.a_offsets[row], end = g.a_offsets[row + 1];
        const u64 products = sum_of_warp(products_of(g, begin + lane, end, 32));
        u32 log = g.in_order ? FEW : MANY;
        // Tasks have alike many products, where rows of B can be entered.
        if (g.ordered)
            while (log > LEAST && (products << log) / count > most) --log;
        const u32 tasks = (u32)((count + (1u << log) - 1) >> log);
        u64 at = 0;
        if (lane == 0) at = atomicAdd(g.counters + TASKS, (u64)tasks);
        at = __shfl_sync(FULL, at, 0);
        for (u32 n = lane; n < tasks; n += 32) g.tasks[at + n] = row << 32 | n << 4 | log;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) search_8(const Arguments g) {
    search<8>(g, g.near, g.counters[NEAR_8]);
}

extern "C" __global__ void __launch_bounds__(BLOCK) search_32(const Arguments g) {
    search<32>(g, g.far, g.counters[FAR_32]);
}

extern "C" __global__ void __launch_bounds__(BLOCK) few(const Arguments g) {
    __shared__ Memory<32, FEW + 1> memory[WARPS];
    const u64 step = (u64)gridDim.x * WARPS, rows = g.counters[NEAR_FEW];
    for (u64 i = (u64)blockIdx.x * WARPS + threadIdx.x / 32; i < rows; i += step) {
        const u64 row = g.near[g.rows - 1 - i], from = g.places_offsets[row];
        const u32 count = (u32)(g.places_offsets[row + 1] - from);
        u32 met = 0;
        if (count > 0) met = sum_at(g, memory[threadIdx.x / 32], Places(g, row, from, count, false));
        if (g.met != nullptr && threadIdx.x % 32 == 0) g.c_offsets[row + 1] = (Offset)met;
    }
}

// Counts are added to what `c_offsets` has, which is zero at the start.
extern "C" __global__ void __launch_bounds__(BLOCK) many(const Arguments g) {
    __shared__ Memory<32, FEW + 1> memory[WARPS];
    const u64 tasks = g.counters[TASKS];
    for (;;) {
        u64 i = 0;
        if (threadIdx.x % 32 == 0) i = atomicAdd(g.counters + TAKEN, 1ull);
        i = __shfl_sync(FULL, i, 0);
        if (i >= tasks) return;
        take(g, memory[threadIdx.x / 32], g.tasks[i]);
    }
}

extern "C" __global__ void __launch_bounds__(SHARING) shared(const Arguments g) {
    __shared__ Memory<SHARING, MANY + 1> memory;
    __shared__ u64 taken;
    const u64 tasks = g.counters[TASKS];
    for (;;) {
        if (threadIdx.x == 0) taken = atomicAdd(g.counters + TAKEN, 1ull);
        __syncthreads();
        const u64 i = taken;
        __syncthreads();
        if (i >= tasks) return;
        take(g, memory, g.tasks[i]);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) keep(const Arguments g) {
    const u32 lane = threadIdx.x % 32;
    const u64 step = (u64)gridDim.x * WARPS;
    for (u64 row = (u64)blockIdx.x * WARPS + threadIdx.x / 32; row < g.rows; row += step) {
        const u64 to = g.places_offsets[row + 1];
        u64 at = g.c_offsets[row];
        for (u64 start = g.places_offsets[row]; start < to; start += 32 * AHEAD) {
            bool met[AHEAD];
#pragma unroll
            for (u32 n = 0; n < AHEAD; ++n) {
                const u64 from = start + 32 * n + lane;
                met[n] = from < to && g.met[from] != 0;
            }
#pragma unroll
            for (u32 n = 0; n < AHEAD; ++n) {
                const u64 from = start + 32 * n + lane;
                const u32 all = __ballot_sync(FULL, met[n]);
                if (met[n]) {
                    const u64 place = at + __popc(all & ((1u << lane) - 1));
                    g.c_indices[place] = g.places[from];
                    g.c_values[place] = g.values[from];
                }
                at += __popc(all);
            }
        }
    }
}
