// shared-row: rows of a dense C = alpha A B, A and B in CSR.
// Chen et al. 2025, section 4.2.2.
//
// Idea: persistent CTAs take the next row of C from a counter. The row accumulates in shared
// memory, one nonzero of A at a time: the threads share its row of B, each adds to different
// columns, and a barrier follows, so that no addition is atomic. A and B are read through the
// read-only path, C is written once.
//
//   grid -> persistent CTAs      group of THREADS / ROWS threads -> row of C (the paper: ROWS = 1)
//   thread t of a group -> nonzeros t, t + GROUP, ... of the current row of B
//
// Beyond the paper: C has any number of columns, in chunks of `width`, and the position at which
// each row of B enters each chunk is precomputed; ROWS > 1 is the paper's attempt of section 7.1,
// and groups of one warp its outlook of warp-level aggregation; PREFETCH loads nonzeros of A by the
// group and starts to load the next row of B before this one is added. REPEATS admits columns of B
// that repeat or are unsorted: additions are atomic then, and columns outside the chunk are skipped
// by comparison.
//
// Invariants: all threads of a group see the same nonzeros of A and pass the same barriers; between
// two rows every word of the group's accumulator holds "absent".
#include "common/absent.cuh"
#include "ptx/barrier.cuh"

using Value = GUSTAV_VALUE;

constexpr int THREADS = GUSTAV_THREADS;
constexpr int ROWS = GUSTAV_ROWS;
constexpr int PREFETCH = GUSTAV_PREFETCH;  // entries of the next row of B that a thread holds; 0: none
constexpr bool REPEATS = GUSTAV_REPEATS;
constexpr int GROUP = THREADS / ROWS;
static_assert(THREADS % ROWS == 0 && GROUP % 32 == 0, "groups are whole warps");
static_assert(GROUP == 32 || ROWS < 16, "there are 16 barriers");

#include "gustav_cuda::papers::spgemm::shared_row::Arguments"

extern __shared__ unsigned char shared[];
__shared__ u64 taken[ROWS];

__device__ __forceinline__ void sync_group() {
    if constexpr (GROUP == 32)
        __syncwarp();
    else if constexpr (ROWS == 1)
        __syncthreads();
    else
        ptx::barrier(1 + threadIdx.x / GROUP, GROUP);
}

// One chunk of one row of C.
struct Chunk {
    Value *sums;
    u32 start;
    u32 width;
};

__device__ __forceinline__ void add(const Chunk &chunk, u32 column, Value product) {
    const u32 at = column - chunk.start;
    if constexpr (REPEATS) {
        // For columns before the chunk the difference wraps around and is large.
        if (at < chunk.width) atomicAdd(chunk.sums + at, entry(product));
    } else {
        chunk.sums[at] = entry(chunk.sums[at] + product);
    }
}

// The row of C as in the paper.
__device__ __forceinline__ void plain(const Arguments &args, const Chunk &chunk, const u32 *first,
                                      const u32 *last, u32 from, u32 to, int t) {
    for (u64 at = from; at < to; ++at) {
        const u32 k = __ldg(args.indices + at);
        const Value a = __ldg(args.values + at);
        const u32 begin = __ldg(first + k), count = __ldg(last + k) - begin;
        for (u32 j = t; j < count; j += GROUP)
            add(chunk, __ldg(args.b_indices + begin + j), a * __ldg(args.b_values + begin + j));
        sync_group();
    }
}

// A nonzero of A with its row of B.
struct Step {
    Value a;
    u32 begin;
    u32 count;
};

// The first entries of a row of B that this thread adds.
struct Held {
    u32 column[PREFETCH > 0 ? PREFETCH : 1];
    Value b[PREFETCH > 0 ? PREFETCH : 1];
};

__device__ __forceinline__ void hold(Held &held, const Arguments &args, const Step &step, int t) {
#pragma unroll
    for (int i = 0; i < PREFETCH; ++i) {
        const u32 j = t + i * GROUP;
        if (j < step.count) {
            held.column[i] = __ldg(args.b_indices + step.begin + j);
            held.b[i] = __ldg(args.b_values + step.begin + j);
        }
    }
}

__device__ __forceinline__ void prefetching(const Arguments &args, const Chunk &chunk, const u32 *first,
                                            const u32 *last, u32 from, u32 to, int t, Step *steps) {
    for (u64 batch = from; batch < to; batch += GROUP) {
        const int size = to - batch < GROUP ? (int)(to - batch) : GROUP;
        if (t < size) {
            const u32 k = __ldg(args.indices + batch + t);
            const u32 begin = __ldg(first + k);
            steps[t] = {__ldg(args.values + batch + t), begin, __ldg(last + k) - begin};
        }
        sync_group();
        Step step = steps[0];
        Held held;
        hold(held, args, step, t);
        for (int s = 0; s < size; ++s) {
            const Step now = step;
            const Held mine = held;
            if (s + 1 < size) {
                step = steps[s + 1];
                hold(held, args, step, t);
            }
#pragma unroll
            for (int i = 0; i < PREFETCH; ++i)
                if (t + i * GROUP < now.count) add(chunk, mine.column[i], now.a * mine.b[i]);
            for (u32 j = t + PREFETCH * GROUP; j < now.count; j += GROUP)
                add(chunk, __ldg(args.b_indices + now.begin + j),
                    now.a * __ldg(args.b_values + now.begin + j));
            sync_group();
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) shared_row(const Arguments args) {
    const int group = threadIdx.x / GROUP, t = threadIdx.x % GROUP;
    // Accumulators of all groups, then their batches of nonzeros of A.
    Value *sums = reinterpret_cast<Value *>(shared) + group * args.width;
    Step *steps = reinterpret_cast<Step *>(reinterpret_cast<Value *>(shared) + ROWS * args.width) +
                  group * GROUP;
    for (u64 j = t; j < args.width; j += GROUP) sums[j] = absent<Value>();
    const Value alpha = from_bits<Value>(args.alpha);
    for (;;) {
        if (t == 0) taken[group] = atomicAdd(args.next, 1ull);
        sync_group();
        const u64 item = taken[group];
        if (item >= args.rows * args.chunks) return;
        // All rows of a chunk before the next chunk, so that all CTAs read the same columns of B.
        const u64 chunk = item / args.rows, row = item % args.rows;
        const u64 start = chunk * args.width;
        const u64 left = args.columns - start;
        const Chunk mine = {sums, (u32)start, (u32)(left < args.width ? left : args.width)};
        const u32 from = __ldg(args.offsets + args.row + row);
        const u32 to = __ldg(args.offsets + args.row + row + 1);
        const u32 *first = args.first + chunk * args.stride;
        const u32 *last = args.last + chunk * args.stride;
        if constexpr (PREFETCH > 0)
            prefetching(args, mine, first, last, from, to, t, steps);
        else
            plain(args, mine, first, last, from, to, t);
        Value *c = args.c + row * args.ldc + start;
        for (u32 j = t; j < mine.width; j += GROUP) {
            c[j] = scaled(alpha, sums[j]);
            sums[j] = absent<Value>();
        }
        // The accumulator is clear, and the row number read, before the next row.
        sync_group();
    }
}
