// even-shares: C = alpha A B + beta C, A in CSR, B and C row-major. A kernel of Gustav.
//
// Idea: no preparation for a pattern. Every group of lanes takes an equal partition of row starts
// and nonzeros (schedule/even_shares.cuh), finds its beginning by a search, and walks its nonzeros
// across row ends, so that short rows keep as many loads of B in flight as long ones.
//
//   grid.x -> partitions, BLOCK / LANES a CTA     grid.y -> panels of PANEL columns
//   partition  |        | whole rows ...                  |       |
//              | a row's end, its start elsewhere       | a row's start, its end elsewhere
//
// A row inside a partition is written to C. For a row in several partitions, each writes its
// partial sum to slot 2 p (if the row began before partition p) or 2 p + 1, and the last to arrive
// adds the slots, in order.
//
// Invariants: those of spmm/group.cuh; SUBGROUPS is 1.
#include "ptx/dependents.cuh"
#include "schedule/even_shares.cuh"
#include "spmm/group.cuh"
#include "tile/slices.cuh"

constexpr int WORK_BITS = GUSTAV_WORK_BITS;
static_assert(SUBGROUPS == 1, "one group walks one partition");

#include "gustav_cuda::spmm::even_shares::Arguments"

// The row that the walk is in.
struct Row {
    Position at;    // its number
    Position last;  // one past its last nonzero
    Position next;  // one past the last nonzero of the row after it, read ahead
    bool open;      // it has items in the partition that have not been closed
};

// Fixes up row `row`, of which `partition` has a part.
__device__ __forceinline__ void fix_up_row(const Operands &args, u64 partition, u64 row,
                                           const Span &span, u64 panel) {
    const u64 begin = ((u64)__ldg(args.offsets + row) + row) >> WORK_BITS;
    const u64 end = ((u64)__ldg(args.offsets + row + 1) + row) >> WORK_BITS;
    const Parts parts = {row, 2 * begin + 1, 2 * begin, 2, (u32)(end - begin + 1)};
    add_parts(args, parts, (u32)(partition - begin), span, 0, panel);
}

// One partition in one panel; `first` is its first row.
__device__ __forceinline__ void multiply(const Arguments &arguments, u64 partition, Position first,
                                         u64 panel, u64 column) {
    const Operands &args = arguments.operands;
    const Position from = (Position)partition << WORK_BITS, to = from + ((Position)1 << WORK_BITS);
    const Position nonzeros = args.nonzeros, rows = arguments.rows;
    const Position start = __ldg(args.offsets + first);
    const bool begun = start + first < from;  // in an earlier partition
    const Position entry = begun ? from - first - 1 : start;
    const Span span(args.columns, column);
    const Value *b = own_column(args, column);

    Accum sum[TILES][VECTOR];
    clear(sum);
    // The end of row `r`, clamped to the last row.
    const auto end_of = [&](Position r) {
        return (Position)__ldg(args.offsets + (r + 1 < rows ? r + 1 : rows));
    };
    Row row = {first, end_of(first), end_of(first + 1), true};
    // An upper bound of the partition's nonzeros, from the number of the current row.
    const auto bound = [&] {
        const Position items = to - 1 - row.at;
        return items < nonzeros ? items : nonzeros;
    };
    const auto aside = [&](u64 slot) {
#pragma unroll
        for (int k = 0; k < TILES; ++k)
            if (span.has(k)) put_aside(args, slot, span.at(k), sum[k]);
    };
    // Closes the rows that end before nonzero `z`.
    const auto close_before = [&](Position z) {
        while (row.open && row.last <= z && row.last + row.at < to) {
            if (begun && row.at == first) {
                aside(2 * partition);
            } else {
#pragma unroll
                for (int k = 0; k < TILES; ++k)
                    if (span.has(k))
                        finish_row<Ring, STEPS>(args, sum[k], (u64)row.at, span.at(k));
            }
            clear(sum);
            ++row.at;
            row.open = row.at < rows && row.last + row.at < to;
            if (!row.open) break;
            row.last = row.next;
            row.next = end_of(row.at + 1);
        }
    };

    Position position = entry & ~(Position)(CHUNK - 1);
    Chunk next = load_chunk<false>(args, entry, bound(), position);
    for (bool done = false; !done; position += CHUNK) {
        const Position last = bound();
        Chunk chunk = next;
        chunk.bound(entry, last, position);
        next = load_chunk<false>(args, entry, last, position + CHUNK);
        Rows b_rows;
        load_rows(args, b, span, chunk, b_rows);
        if (chunk.to == CHUNK && row.last >= position + CHUNK) {
#pragma unroll
            for (int u = 0; u < CHUNK; ++u)
                if (chunk.has(u)) add_row(chunk, b_rows, u, position + u, sum);
            continue;
        }
#pragma unroll
        for (int u = 0; u < CHUNK; ++u) {
            if (done || position + u < entry) continue;
            close_before(position + u);
            done = !row.open || position + u >= bound();
            if (!done) add_row(chunk, b_rows, u, position + u, sum);
        }
    }
    const bool goes_on = row.open && !(begun && row.at == first);
    if (row.open) aside(2 * partition + (goes_on ? 1 : 0));
    // A loop, so that this large and rarely executed code exists once.
#pragma unroll 1
    for (int end = 0; end < 2; ++end)
        if (end == 0 ? begun : goes_on)
            fix_up_row(args, partition, end == 0 ? first : row.at, span, panel);
}

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT / BLOCK)
    even_shares(const __grid_constant__ Arguments args) {
    ptx::wait_for_prerequisites();
    const Operands &operands = args.operands;
    // Before the search, which takes several loads one after another.
    tile::prefetch_slices(args.slices, operands.indices, operands.values, operands.nonzeros, operands.b);
    const u64 partition = (u64)blockIdx.x * (BLOCK / LANES) + threadIdx.x / LANES;
    if (partition >= args.partitions) return;
    const int lane = threadIdx.x % LANES;
    const u32 group = warp::lanes_of_group<LANES>();
    const Position first = schedule::row_of_item<LANES, Position>(
        operands.offsets, args.rows, operands.nonzeros, (Position)partition << WORK_BITS, lane, group);
    for (u64 panel = blockIdx.y; panel * PANEL < operands.columns; panel += gridDim.y)
        multiply(args, partition, first, panel, panel * PANEL + lane * VECTOR);
}
