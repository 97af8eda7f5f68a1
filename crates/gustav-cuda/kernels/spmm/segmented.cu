// segmented: C = alpha A B + beta C, A in CSR, B and C row-major. A kernel of Gustav.
//
// Idea: every segment (a row, or at most S nonzeros of a long row) is summed by a group of threads
// that holds all columns of a panel of C in registers, so that A is read once per panel and B in
// loads of 16 bytes where it is aligned (8 with half vectors).
//
//   grid.x -> segments, BLOCK / THREADS a CTA     grid.y -> panels of PANEL columns, of every product of a batch
//   a segment is summed by one group, or, with WARPS > 1, by all groups of a CTA: of its S subgroups, subgroup s takes
//   chunks s, s + S, ... of CHUNK nonzeros, and subgroup 0 the last nonzeros of A, which are no whole chunk; sums are
//   reduced by shuffles, and among warps through shared memory
//   group, subgroups, lanes and chunks: see spmm/group.cuh
//   with SEVERAL groups sum the head of the list, long segments; each subgroup by itself then sums several of the rest,
//   one after another (spmm/segments_per_group.cuh) or at once (spmm/segments_at_once.cuh)
//
// A part of a row either writes its sums to its slot, where the last to arrive adds the slots in their
// order (the same bits in every run), or adds them to C by reductions, after `segmented_prepare` has
// scaled C.
//
// Max and min keep one product in place of a sum, and can record which nonzero won: see
// spmm/sums.cuh. FILTERED: the gradient of B, a sum over the elements that each nonzero won.
//
// Invariants: no lane lacks columns of the first WHOLE tiles; VECTOR divides columns, leading dimensions and
// the addresses of B and C; C does not overlap A or B.
#include "ptx/dependents.cuh"
#include "schedule/segments.cuh"
#include "spmm/group.cuh"
#include "spmm/segments_at_once.cuh"
#include "spmm/segments_per_group.cuh"
#include "tile/slices.cuh"

constexpr int STAGES = GUSTAV_STAGES;  // chunks of rows of B in the pipeline through shared memory
constexpr bool PREFETCH_A = GUSTAV_PREFETCH_A;  // prefetch the segment's part of A
constexpr bool LIST = GUSTAV_LIST;
constexpr bool SEVERAL = GUSTAV_SEVERAL;  // whether a subgroup takes several segments
constexpr bool ORDERED = GUSTAV_ORDERED;  // whole rows in the order of a list

using Segment = schedule::Segment<Position>;

constexpr int WARPS = GUSTAV_WARPS;     // of a segment: part of one, or all of the CTA
constexpr int THREADS = WARPS * GROUP;  // of a segment
constexpr int STEP = CHUNK * SUBGROUPS * WARPS;
static_assert(WARPS == 1 || (THREADS == BLOCK && GROUP == 32), "a segment has a group or the whole CTA");
static_assert(WARPS == 1 || (STAGES == 0 && !SEVERAL), "a CTA per segment has rows of B in registers");
static_assert(!FILTERED || (STAGES == 0 && !SEVERAL), "only rows of B in registers are filtered");

// Rows of B pass through shared memory if the chip has asynchronous copies.
constexpr bool STAGED = STAGES > 0 && ptx::HAS_ASYNC_COPY && VECTOR * sizeof(Value) >= 4;
using Stage = tile::Pack<Value, VECTOR>;
// Whether nonzeros after the whole chunks of A are summed by themselves, so that the main loop has one kind of load.
// Also where A is not aligned, so that the order of a sum does not depend on that. Not with rows of B in shared memory,
// whose loop has no registers for more, nor with a filter.
constexpr bool TAIL = !STAGED && !FILTERED;
constexpr int DEPTH = STAGED ? STAGES : 1;

#include "gustav_cuda::spmm::segmented::Arguments"

__device__ __forceinline__ Segment segment(const Arguments &args, u64 i) {
    if (i >= args.count) return schedule::no_segment<Position>();
    if (LIST) return schedule::segment<Position>(args.segments, i);
    return schedule::row<Position>(args.operands.offsets,
                                   ORDERED ? (u64)__ldg(args.order + i) : i);
}

__device__ __forceinline__ void store(const Operands &args, const Segment &s,
                                      const Sum (&sum)[TILES][VECTOR], const Span &span,
                                      int sub) {
    if (s.none()) return;
#pragma unroll
    for (int k = 0; k < TILES; ++k) {
        const u64 j = span.at(k);
        if (sub != 0 || !span.has(k)) continue;
        if (!LIST || !s.cut()) {
            finish_sums(args, sum[k], s.target(), j);
        } else {
#if GUSTAV_REDUCE
            Accum scaled[VECTOR];
#pragma unroll
            for (int v = 0; v < VECTOR; ++v)
                scaled[v] = Ring::scale(from_bits<Accum>(args.alpha), sum[k][v]);
            ptx::reduce_add(args.c + s.target() * args.ldc + j, scaled);
#else
            put_aside(args, s.target(), j, sum[k]);
#endif
        }
    }
}

// Prefetches a segment of A into L2, by the threads of one group: a group loads one chunk ahead, which is not enough
// where few groups have long segments and memory is far.
__device__ __forceinline__ void prefetch_segment(const Operands &args, Position first, Position last) {
    if (last - first <= 2 * STEP || threadIdx.x % THREADS >= GROUP) return;
    const u64 count = last - first;
    ptx::prefetch(args.indices + first, count * sizeof(Index), threadIdx.x % GROUP, GROUP);
    ptx::prefetch(args.values + first, count * sizeof(Value), threadIdx.x % GROUP, GROUP);
}

// Sums a segment with rows of B in registers; the next chunk of A is loaded before this one is
// used.
__device__ __forceinline__ void sum_direct(const Operands &args, const Value *b, const Span &span,
                                           Position first, Position last, Position position,
                                           Sum (&sum)[TILES][VECTOR]) {
    Chunk next = load_chunk<TAIL>(args, first, last, position);
    while (position < last) {
        Chunk chunk = next;
        chunk.bound(first, last, position);
        const Position here = position;
        position += STEP;
        next = load_chunk<TAIL>(args, first, last, position);
        Rows rows;
        load_rows(args, b, span, chunk, rows);
        Filter filter;
        if constexpr (FILTERED) load_filter(args, span, chunk, here, filter);
#pragma unroll
        for (int u = 0; u < CHUNK; ++u) {
            if (!chunk.has(u)) continue;
            if constexpr (FILTERED)
                add_won(chunk, rows, filter, u, here + u, sum);
            else
                add_row(chunk, rows, u, here + u, sum);
        }
    }
}

// Sums a segment with rows of B in shared memory, a pipeline of STAGES chunks, more than registers
// hold. A lane reads only what it copied itself, so no barriers are needed.
__device__ __forceinline__ void sum_staged(const Operands &args, const Value *b, const Span &span,
                                           Position first, Position last, Position position,
                                           Stage *stage, Sum (&sum)[TILES][VECTOR]) {
    const auto copy = [&](const tile::Pack<Index, CHUNK> &columns, Position at, int slot) {
        const int from = at < first ? (int)(first - at) : 0;
        const int to = last - at < CHUNK ? (int)(last - at) : CHUNK;
#pragma unroll
        for (int u = 0; u < CHUNK; ++u) {
            if (u < from || u >= to) continue;
            const Value *row = row_of_b(args, b, columns.at[u]);
#pragma unroll
            for (int k = 0; k < TILES; ++k)
                if (span.has(k))
                    ptx::copy_async<VECTOR * sizeof(Value)>(
                        &stage[((slot * CHUNK + u) * TILES + k) * BLOCK],
                        row + k * LANES * VECTOR);
        }
    };
    tile::Pack<Index, CHUNK> columns[DEPTH];
#pragma unroll
    for (int d = 0; d < DEPTH; ++d)
        if (position + d * STEP < last)
            columns[d] = load_part<false, Index>(args, args.indices, first, last, position + d * STEP);
    tile::Pack<Value, CHUNK> values;
    if (position < last) values = load_part<false, Value>(args, args.values, first, last, position);
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
        if (position + d * STEP < last) copy(columns[d], position + d * STEP, d);
        ptx::close_copies();
    }
    Position far = position + DEPTH * STEP;
    if (far < last) columns[0] = load_part<false, Index>(args, args.indices, first, last, far);
    for (int slot = 0; position < last; slot = slot + 1 < DEPTH ? slot + 1 : 0) {
        const tile::Pack<Value, CHUNK> now = values;
        if (position + STEP < last)
            values = load_part<false, Value>(args, args.values, first, last, position + STEP);
        ptx::wait_copies<DEPTH - 1>();
        const int from = position < first ? (int)(first - position) : 0;
        const int to = last - position < CHUNK ? (int)(last - position) : CHUNK;
#pragma unroll
        for (int u = 0; u < CHUNK; ++u) {
            if (u < from || u >= to) continue;
#pragma unroll
            for (int k = 0; k < TILES; ++k) {
                const Stage row = stage[((slot * CHUNK + u) * TILES + k) * BLOCK];
#pragma unroll
                for (int v = 0; v < VECTOR; ++v)
                    sum[k][v] = Reduction::mul_add(widen(now.at[u]), tile::widen_at(row, v),
                                                   position + u, sum[k][v]);
            }
        }
        if (far < last) copy(columns[0], far, slot);
        ptx::close_copies();
        position += STEP, far += STEP;
        if (far < last) columns[0] = load_part<false, Index>(args, args.indices, first, last, far);
    }
}

// Sums the nonzeros of a segment that are no whole chunk of A.
__device__ __forceinline__ void sum_tail(const Operands &args, const Value *b, const Span &span, Position first,
                                         Position last, Sum (&sum)[TILES][VECTOR]) {
    const Position chunks = whole_chunks(args);
#pragma unroll 1
    for (Position at = chunks < first ? first : chunks; at < last; ++at) {
        const Accum a = tile::widen_at(tile::load<Value, 1>(args.values + at), 0);
        const Value *row = row_of_b(args, b, __ldg(args.indices + at));
#pragma unroll
        for (int k = 0; k < TILES; ++k) {
            if (!span.has(k)) continue;
            const auto own = tile::load<Value, VECTOR>(row + k * LANES * VECTOR);
#pragma unroll
            for (int v = 0; v < VECTOR; ++v)
                sum[k][v] = Reduction::mul_add(a, tile::widen_at(own, v), at, sum[k][v]);
        }
    }
}

// The sums of all warps, in the first of them. A barrier must separate two calls, which write the same shared memory.
__device__ __forceinline__ void add_warps(Sum (&sum)[TILES][VECTOR]) {
    __shared__ Sum parts[WARPS > 1 ? WARPS - 1 : 1][VECTOR][LANES];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % LANES;
#pragma unroll
    for (int k = 0; k < TILES; ++k) {
        if (k > 0) __syncthreads();
        if (warp > 0 && threadIdx.x % 32 < LANES)
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) parts[warp - 1][v][lane] = sum[k][v];
        __syncthreads();
        if (warp > 0) continue;
#pragma unroll
        for (int w = 0; w < WARPS - 1; ++w)
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) sum[k][v] = Reduction::add(sum[k][v], parts[w][v][lane]);
    }
}

// The segment of a group, or of the CTA, in one panel.
__device__ __forceinline__ void multiply(const Arguments &args, const Operands &operands, const Segment &s,
                                         u64 panel, u64 column, int sub, Stage *stage) {
    const Span span(operands.columns, column);
    Sum sum[TILES][VECTOR];
    clear(sum);
    // A lane past the last column has nothing to sum but takes part in the shuffles.
    const Position end = span.has(0) ? s.last : 0;
    const Position chunks = TAIL ? whole_chunks(operands) : end, last = end < chunks ? end : chunks;
    const int warp = WARPS > 1 ? threadIdx.x / 32 : 0;
    const Position position = (s.first & ~(Position)(CHUNK - 1)) + (warp * SUBGROUPS + sub) * CHUNK;
    const Value *b = own_column(operands, column);
    if constexpr (STAGED)
        sum_staged(operands, b, span, s.first, last, position, stage, sum);
    else
        sum_direct(operands, b, span, s.first, last, position, sum);
    if (TAIL && sub == 0 && warp == 0) sum_tail(operands, b, span, s.first, end, sum);
#pragma unroll
    for (int k = 0; k < TILES; ++k) add_subgroups(sum[k], ~0u);
    if constexpr (WARPS > 1) {
        add_warps(sum);
        if (warp > 0) return;
    }
    store(operands, s, sum, span, sub);
    if (!LIST || GUSTAV_REDUCE || !s.cut()) return;
    const schedule::CutRow cut = schedule::cut_row(args.slot_rows, s.target());
    const Parts parts = {cut.row, cut.first, cut.first, 1, cut.count};
    add_parts(operands, parts, (u32)(s.target() - cut.first), span, sub, panel);
}

// Panels are numbered through the products of a batch.
__device__ __forceinline__ bool is_panel(const Arguments &args, u64 panel) {
    return BATCHED ? panel < args.panels * args.batch : panel * PANEL < args.operands.columns;
}

// Calls `take` with the operands of the product that `panel` belongs to and the number of the panel
// in that product.
template <class Take>
__device__ __forceinline__ void in_batch(const Arguments &args, u64 panel, Take take) {
    if constexpr (BATCHED)
        take(of_batch(args.operands, panel / args.panels, args.panels), panel % args.panels);
    else
        take(args.operands, panel);
}

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT / BLOCK)
    segmented(const __grid_constant__ Arguments args) {
    ptx::wait_for_prerequisites();
    // Called after the loads of the list: everything else waits for those.
    const auto prefetch = [&] {
        const Operands &all = args.operands;
        tile::prefetch_slices(args.slices, all.indices, all.values, all.nonzeros, all.b);
    };
    if constexpr (SEVERAL) {
        // The first segments are parts of cut rows and long rows, one a group.
        if (blockIdx.x >= args.single) {
            const Position before = args.single * (BLOCK / GROUP);
            const Position base = before + (blockIdx.x - args.single) * args.segments_per_group * (BLOCK / LANES);
            const auto at = [&](Position i) { return segment(args, i); };
            in_batch(args, args.panel + blockIdx.y, [&](const Operands &operands, u64 panel) {
                if constexpr (AT_ONCE > 1)
                    sum_at_once(operands, base, panel, at, prefetch);
                else
                    sum_segments(operands, base, args.segments_per_group, panel, at, prefetch);
            });
            return;
        }
    }
    __shared__ Stage stage[STAGED ? DEPTH * CHUNK * TILES * BLOCK : 1];
    const Segment s = segment(args, (u64)blockIdx.x * (BLOCK / THREADS) + threadIdx.x / THREADS);
    prefetch();
    if (PREFETCH_A && blockIdx.y == 0) prefetch_segment(args.operands, s.first, s.last);
    const int sub = threadIdx.x % GROUP / LANES;
    const u64 lane = threadIdx.x % LANES * VECTOR;
    const auto take = [&](u64 panel) {
        in_batch(args, panel, [&](const Operands &operands, u64 own) {
            multiply(args, operands, s, own, own * PANEL + lane, sub, stage + (STAGED ? threadIdx.x : 0));
        });
    };
    if constexpr (SEVERAL)
        take(args.panel + blockIdx.y);
    else
        for (u64 panel = blockIdx.y; is_panel(args, panel); panel += gridDim.y) {
            take(panel);
            if constexpr (WARPS > 1) __syncthreads();
        }
}

// Scales the cut rows of C by beta before their parts are added. One CTA a row.
extern "C" __global__ void __launch_bounds__(BLOCK) segmented_prepare(const Arguments args) {
    ptx::wait_for_prerequisites();
    const u64 row = args.cut_rows[blockIdx.x];
    const Operands &operands = args.operands;
    const Accum beta = from_bits<Accum>(operands.beta);
    for (u64 j = threadIdx.x; j < operands.columns; j += BLOCK) {
        Out *to = operands.c + row * operands.ldc + j;
        const Accum empty[1] = {Ring::zero()};
        finish<Ring>(empty, Ring::one(), beta, to);
    }
}
