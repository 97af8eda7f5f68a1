// b-stationary: C = alpha A B + beta C, A in CSR, B and C row-major. A kernel of Gustav.
//
// Idea: where rows of A read the same rows of B again and again, a multiprocessor keeps a tile of B
// in shared memory and streams through the segments of A's rows whose columns are in the tile.
//
//   grid.x -> multiprocessors, one CTA each     grid.y -> panels of PANEL columns
//   CTA    -> partitions of tiles, one after another: STAGES tiles are in shared memory or being copied
//   group  =  LANES threads: takes the next segment of the tile, BATCH nonzeros at a time
//
// The lanes of a group load the nonzeros of a batch while the previous batch is multiplied, and
// share them through shared memory. Tiles are fetched by bulk copies; the last warp that is done
// with a tile issues the copies of the tile that replaces it. Without bulk copies, or if operands
// are not aligned for them, threads copy a tile between barriers.
//
// A part of a row either
//   SLOT     writes its sums to its slot, where the last to arrive adds the slots in their order: the same
//            bits in every run;
//   ROW      adds them to its row of C by reductions, after `b_stationary_prepare` has scaled it;
//   CUT_ROW  adds them to sums of its row by reductions, from which `b_stationary_finish` computes C
//            and which it resets to zero for the next launch.
//
// Invariants: columns of a segment lie in its tile; no lane lacks columns of the first WHOLE tiles; VECTOR
// divides columns, leading dimensions and the addresses of B and C; C does not overlap A or B.
#include "ptx/bulk.cuh"
#include "ptx/dependents.cuh"
#include "ptx/warp.cuh"
#include "schedule/segments.cuh"
#include "spmm/group.cuh"

constexpr int BATCH = GUSTAV_BATCH;
constexpr int STAGES = GUSTAV_STAGES;
constexpr int SLOT = 0, ROW = 1, CUT_ROW = 2;
constexpr int TARGET = GUSTAV_TARGET;
constexpr int EACH = BATCH / LANES;  // nonzeros of a batch that a lane loads
constexpr u32 ROW_BYTES = PANEL * sizeof(Value);
constexpr bool BULK = ptx::HAS_BULK_COPY && VECTOR * sizeof(Value) == 16;
constexpr int HELD = BULK ? STAGES : 1;
// Nonzeros that every lane reads from shared memory in one step.
constexpr int AT_ONCE = BATCH < 4 ? BATCH : 4;
static_assert(SUBGROUPS == 1 && BATCH % LANES == 0 && BATCH % AT_ONCE == 0, "whole batches");

// A nonzero of a batch: where its row of B begins in the tile.
struct alignas(sizeof(Accum) == 8 ? 16 : 8) Entry {
    u32 place;
    Accum value;
};
// Batches of neighbouring groups begin in different banks.
constexpr u32 BATCH_BYTES = BATCH * sizeof(Entry) + 16;

// A CTA's partition of one tile.
struct TilePartition {
    u64 first;  // index of the tile's first segment
    u32 tile;
    u32 count;  // segments of this partition
    u32 from;   // of every `of` segments, the first one,
    u32 width;  // and how many of them
    u32 of;
    u32 unused;
};

#include "gustav_cuda::spmm::b_stationary::Arguments"

using RowSegment = schedule::Segment<Position>;

// A tile in shared memory or being copied, with the state that warps share.
struct Held {
    u64 full, empty;   // barriers: the tile has arrived, and all threads are done with it
    u32 taken, left;  // segments taken by groups, warps that are done
    TilePartition partition;
};

__device__ __forceinline__ u32 rows_of(const Arguments &args, const TilePartition &partition) {
    const u64 left = args.inner - (u64)partition.tile * args.rows;
    return left < args.rows ? (u32)left : args.rows;
}

// The columns of a panel within B.
__device__ __forceinline__ u32 width_of(const Arguments &args, u64 column) {
    const u64 left = args.operands.columns - column;
    return left < PANEL ? (u32)left : PANEL;
}

__device__ __forceinline__ const Value *first_of(const Arguments &args, const TilePartition &partition, u64 column) {
    return args.operands.b + (u64)partition.tile * args.rows * args.operands.ldb + column;
}

// Bytes between rows of a tile in shared memory. If B is packed and no wider than a panel, rows are as contiguous there
// as in B, and one copy brings many.
__device__ __forceinline__ u32 pitch_of(const Arguments &args) {
    const Operands &operands = args.operands;
    const bool packed = operands.columns <= PANEL && operands.ldb == operands.columns;
    return packed ? (u32)operands.columns * sizeof(Value) : ROW_BYTES;
}

// Issues the copies of a tile, by one warp.
__device__ __forceinline__ void issue(const Arguments &args, const TilePartition &partition, u64 column, u8 *ring,
                                      Held &held) {
    if (threadIdx.x % 32 == 0) held.partition = partition;
    const u32 lane = threadIdx.x % 32, rows = rows_of(args, partition);
    const u32 bytes = width_of(args, column) * sizeof(Value);
    const Value *from = first_of(args, partition, column);
    const u32 pitch = pitch_of(args);
    // Contiguous rows are copied together.
    const bool packed = pitch == args.operands.ldb * sizeof(Value);
    if (lane == 0) ptx::expect_copies(&held.full, rows * bytes);
    __syncwarp();
    const u32 step = packed ? (rows + 31) / 32 : 1;
    for (u32 r = lane * step; r < rows; r += 32 * step) {
        const u32 count = rows - r < step ? rows - r : step;
        ptx::copy_bulk(ring + r * pitch, from + (u64)r * args.operands.ldb, count * bytes,
                       &held.full);
    }
}

// Copies a tile by all threads.
__device__ __forceinline__ void copy(const Arguments &args, const TilePartition &partition, u64 column, u8 *ring) {
    const u32 vectors = width_of(args, column) / VECTOR;
    const Value *from = first_of(args, partition, column);
    const u32 pitch = pitch_of(args);
    for (u32 r = threadIdx.x / 32; r < rows_of(args, partition); r += BLOCK / 32)
        for (u32 v = threadIdx.x % 32; v < vectors; v += 32)
            reinterpret_cast<tile::Pack<Value, VECTOR> *>(ring + r * pitch)[v] =
                tile::load<Value, VECTOR>(from + (u64)r * args.operands.ldb + v * VECTOR);
}

__device__ __forceinline__ void store(const Arguments &args, const RowSegment &segment, const Span &span,
                                      const Accum (&sum)[TILES][VECTOR], u64 panel) {
    const Operands &operands = args.operands;
#pragma unroll
    for (int k = 0; k < TILES; ++k) {
        const u64 j = span.at(k);
        if (!span.has(k)) continue;
        if (!segment.cut()) {
            finish_row<Ring, STEPS>(operands, sum[k], segment.target(), j);
            continue;
        }
#if GUSTAV_TARGET == 0
        put_aside(operands, segment.target(), j, sum[k]);
#elif GUSTAV_TARGET == 1
        Accum scaled[VECTOR];
#pragma unroll
        for (int v = 0; v < VECTOR; ++v)
            scaled[v] = Ring::scale(from_bits<Accum>(operands.alpha), sum[k][v]);
        ptx::reduce_add(operands.c + segment.target() * operands.ldc + j, scaled);
#else
        ptx::reduce_add(args.sums + segment.target() * operands.columns + j, sum[k]);
#endif
    }
    if (TARGET != SLOT || !segment.cut()) return;
    const schedule::CutRow cut = schedule::cut_row(args.slot_rows, segment.target());
    const Parts parts = {cut.row, cut.first, cut.first, 1, cut.count};
    add_parts(operands, parts, (u32)(segment.target() - cut.first), span, 0, panel);
}

// Adds nonzeros u .. u + AT_ONCE of a batch of `count`; with ALL, none of them is past the end.
template <bool ALL>
__device__ __forceinline__ void add(const u8 *held, const u8 *batch, int u, int count, const Span &span,
                                    Accum (&sum)[TILES][VECTOR]) {
    Entry entries[AT_ONCE];
    memcpy(entries, __builtin_assume_aligned(batch + u * sizeof(Entry), 16), sizeof(entries));
#pragma unroll
    for (int e = 0; e < AT_ONCE; ++e) {
        if (!ALL && u + e >= count) continue;
        const auto *row = reinterpret_cast<const tile::Pack<Value, VECTOR> *>(held + entries[e].place);
#pragma unroll
        for (int k = 0; k < TILES; ++k) {
            if (!span.has(k)) continue;
            const tile::Pack<Value, VECTOR> b = row[threadIdx.x % LANES + k * LANES];
#pragma unroll
            for (int v = 0; v < VECTOR; ++v)
                sum[k][v] = Ring::mul_add(entries[e].value, tile::widen_at(b, v), sum[k][v]);
        }
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1)
    b_stationary(const __grid_constant__ Arguments args) {
    extern __shared__ __align__(128) u8 shared[];
    __shared__ Held all[HELD];
    const u32 begin = args.first_partitions[blockIdx.x], end = args.first_partitions[blockIdx.x + 1];
    const u64 panel = args.panel + blockIdx.y, column = panel * PANEL;
    const u32 tile_bytes = args.rows * ROW_BYTES, pitch = pitch_of(args);
    const int lane = threadIdx.x % 32, mine = threadIdx.x % LANES;
    u8 *const batch = shared + (HELD * tile_bytes + 127) / 128 * 128 + threadIdx.x / LANES * BATCH_BYTES;

    // If parts are added to C, the preceding launch is `b_stationary_prepare`, which has itself
    // waited for B; the plan's arrays were copied before that.
    if (TARGET != ROW) ptx::wait_for_prerequisites();
    if (threadIdx.x < 32) {
        if (lane < HELD) {
            if (BULK) {
                ptx::begin_phases(&all[lane].full, 1);
                ptx::begin_phases(&all[lane].empty, BLOCK);
            }
            all[lane].taken = all[lane].left = 0;
        }
        __syncwarp();
        for (u32 i = begin; BULK && i < end && i < begin + HELD; ++i)
            issue(args, args.partitions[i], column, shared + (i - begin) * tile_bytes, all[i - begin]);
    }
    __syncthreads();
    // C may be written from here on.
    if (TARGET == ROW) ptx::wait_for_prerequisites();

    for (u32 i = begin; i < end; ++i) {
        const u32 stage = (i - begin) % HELD, phase = (i - begin) / HELD;
        Held &held = all[stage];
        u8 *const ring = shared + stage * tile_bytes;
        if constexpr (BULK) {
            // `taken` has been reset once the copies of the tile have arrived.
            if (phase > 0) ptx::wait(&held.full, phase);
        } else {
            __syncthreads();
            const TilePartition partition = args.partitions[i];
            if (threadIdx.x == 0) held.taken = 0, held.partition = partition;
            copy(args, partition, column, ring);
            __syncthreads();
        }
        const u64 first_row = (u64)held.partition.tile * args.rows;
        const Span span(args.operands.columns, column + mine * VECTOR);

        // Takes the next segment of the tile, for groups with `wanted`. Its words are loaded as
        // they are; nothing waits for the load until the segment begins.
        u32 next[4] = {};
        const auto take = [&](bool wanted) {
            u32 number = 0;
            if (mine == 0 && wanted) number = atomicAdd(&held.taken, 1);
            number = __shfl_sync(~0u, number, 0, LANES);
            if (!wanted) return;
            next[2] = next[3] = 0;
            const TilePartition &partition = held.partition;
            if (number >= partition.count) return;
            const u64 place = (u64)(number / partition.width) * partition.of + partition.from + number % partition.width;
            ptx::load_readonly(args.segments + 2 * (partition.first + place), next);
        };
        take(true);
        RowSegment segment = schedule::segment<Position>(next);
        Position position = segment.first;
        take(true);
        u32 columns[EACH] = {};
        Value values[EACH] = {};
        const auto load = [&] {
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                const Position at = position + mine + e * LANES;
                if (at >= segment.last) continue;
                columns[e] = (u32)(tile::load<Index, 1>(args.operands.indices + at).at[0] - first_row);
                values[e] = tile::load<Value, 1>(args.operands.values + at).at[0];
            }
        };
        load();
        Accum sum[TILES][VECTOR];
        clear(sum);
        // Groups without a segment wait as well: no thread may be two phases ahead.
        if (BULK) ptx::wait(&held.full, phase);
        while (__any_sync(~0u, !segment.none())) {
            const Position left = segment.last > position ? segment.last - position : 0;
            const int count = left < BATCH ? (int)left : BATCH;
            __syncwarp();
#pragma unroll
            for (int e = 0; e < EACH; ++e)
                reinterpret_cast<Entry *>(batch)[mine + e * LANES] = {columns[e] * pitch,
                                                                      widen(values[e])};
            const RowSegment now = segment;
            position += BATCH;
            const bool ends = !now.none() && position >= now.last;
            if (__any_sync(~0u, ends)) {
                if (ends) segment = schedule::segment<Position>(next), position = segment.first;
                take(ends);
            }
            load();
            __syncwarp();
            const int most = (int)ptx::largest((u32)count);
            int u = 0;
            // Values of 16 bits leave enough registers for the rows of several nonzeros.
            if constexpr (sizeof(Value) == 2) {
                const int least = BATCH - (int)ptx::largest((u32)(BATCH - count));
                for (; u + AT_ONCE <= least; u += AT_ONCE) add<true>(ring, batch, u, count, span, sum);
            }
            for (; u < most; u += AT_ONCE) add<false>(ring, batch, u, count, span, sum);
            if (ends) {
                store(args, now, span, sum, panel);
                clear(sum);
            }
        }
        if constexpr (BULK) {
            ptx::arrive(&held.empty);
            __syncwarp();
            u32 before = 0;
            // Wraps to zero at the last warp.
            if (lane == 0) before = atomicInc(&held.left, BLOCK / 32 - 1);
            before = __shfl_sync(~0u, before, 0);
            if (before == BLOCK / 32 - 1 && i + HELD < end) {
                // All threads have arrived, so the tile can be overwritten.
                ptx::wait(&held.empty, phase);
                if (lane == 0) held.taken = 0;
                __syncwarp();
                issue(args, args.partitions[i + HELD], column, ring, held);
            }
        }
    }
}

// Calls `work(number, row, column)` for VECTOR columns of a cut row.
template <class Work>
__device__ __forceinline__ void each_vector(const Arguments &args, Work work) {
    const u64 vectors = args.operands.columns / VECTOR;
    const u64 at = (u64)blockIdx.x * BLOCK + threadIdx.x;
    if (at < args.cut * vectors)
        work(at / vectors, args.cut_rows[at / vectors], at % vectors * VECTOR);
}

// Scales the cut rows of C by beta before their parts are added.
extern "C" __global__ void __launch_bounds__(BLOCK) b_stationary_prepare(const Arguments args) {
    ptx::wait_for_prerequisites();
    ptx::launch_dependents();
    const Operands &operands = args.operands;
    each_vector(args, [&](u64, u64 row, u64 j) {
        Accum empty[VECTOR];
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) empty[v] = Ring::zero();
        const Accum beta = from_bits<Accum>(operands.beta);
        finish<Ring>(empty, Ring::one(), beta, operands.c + row * operands.ldc + j);
    });
}

// Computes the cut rows of C from their sums.
extern "C" __global__ void __launch_bounds__(BLOCK) b_stationary_finish(const Arguments args) {
    ptx::wait_for_prerequisites();
    each_vector(args, [&](u64 number, u64 row, u64 j) {
        auto *at = reinterpret_cast<tile::Pack<Accum, VECTOR> *>(
            args.sums + number * args.operands.columns + j);
        const tile::Pack<Accum, VECTOR> sum = *at;
        *at = tile::Pack<Accum, VECTOR>{};
        finish_row<Ring, STEPS>(args.operands, sum.at, row, j);
    });
}
