// row-block of SDDMM: values[p] = alpha <X[row p], Y[column p]> factors[p] + beta values[p] for every nonzero p. Ours.
//
// Idea: consecutive rows with the same or nearly the same columns share every load of Y. A block is ROWS
// consecutive rows, whose rows of X stay in registers; its entries are the union of their columns, each with the
// rows that have it (schedule/row_blocks.cuh). Products of rows without an entry are computed beside the others and
// dropped.
//
//   grid.x -> PARTS parts of a block, one for each of the BLOCK / LANES groups of a CTA
//   lane l of a group reads entry l of a chunk of LANES entries, one chunk ahead, and holds elements
//   (k LANES + l) VECTOR + 0..VECTOR-1 of a panel of the depth, k < TILES, of every row
//   UNROLL entries have their rows of Y in flight at once; their UNROLL ROWS sums are reduced together
//   (sddmm/sums.cuh), and the values of a chunk leave together through shared memory
//
// Every sum is made in the same order wherever its nonzero stands: the same bits in every run.
//
// Invariants: as nonzero_split.cu.
#include "common/semiring.cuh"
#include "ptx/dependents.cuh"
#include "schedule/row_blocks.cuh"
#include "sddmm/sums.cuh"

using Value = GUSTAV_VALUE;
using Offset = GUSTAV_OFFSET;
using Stride = GUSTAV_STRIDE;  // bytes between rows of X and of Y
using Word = GUSTAV_WORD;
using Position = GUSTAV_POSITION;
using Accum = typename Accumulator<Value>::Type;

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int ROWS = GUSTAV_ROWS;
constexpr int VECTOR = GUSTAV_VECTOR;
constexpr int LANES = GUSTAV_LANES;
constexpr int TILES = GUSTAV_TILES;
constexpr int WHOLE = GUSTAV_WHOLE;
constexpr int UNROLL = GUSTAV_UNROLL;
constexpr u32 PARTS = GUSTAV_PARTS;
constexpr bool ONE_PANEL = GUSTAV_ONE_PANEL;  // whether a panel holds the whole depth
constexpr int RESIDENT = GUSTAV_RESIDENT;

constexpr int GROUPS = BLOCK / LANES;
constexpr int SUMS = UNROLL * ROWS;
constexpr u32 OF_GROUP = LANES == 32 ? ~0u : (1u << LANES % 32) - 1;
static_assert(LANES % UNROLL == 0, "a chunk is unrolled whole");

using Span = tile::Span<VECTOR, LANES, TILES, WHOLE>;
using Part = tile::Pack<Value, VECTOR>;
using Union = schedule::BlockEntry<Word, ROWS>;
using Total = tile::Totals<Accum, SUMS, LANES>;

#include "gustav_cuda::sddmm::row_block::Arguments"

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT / BLOCK)
    row_block(const __grid_constant__ Arguments args) {
    // One place more a row: those of a lane are in different banks.
    __shared__ Accum totals[GROUPS][ROWS][LANES + 1];
    ptx::wait_for_prerequisites();
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    auto &total = totals[group];
    const u64 unit = (u64)blockIdx.x * GROUPS + group, block = unit / PARTS, row = block * ROWS;
    const sddmm::Rows<Value, Stride> of_x(args.x, args.ldx), of_y(args.y, args.ldy);
    const Accum alpha = from_bits<Accum>(args.alpha), beta = from_bits<Accum>(args.beta);

    const bool live = row < args.rows;
    const u64 start = live ? __ldg(args.offsets + row) : 0;
    const u32 count = live ? __ldg(args.counts + block) : 0;
    const u32 chunks = (count + LANES - 1) / LANES;
    u32 chunk = (u64)chunks * (unit % PARTS) / PARTS;
    const u32 last = (u64)chunks * (unit % PARTS + 1) / PARTS;
    const Word *const entries = args.entries + start;
    const Position *const positions = args.positions + (start / LANES + block) * ROWS;

    // A lane's entry of the next chunk, one without rows past the end, and where the rows are in the values.
    Word next = 0;
    Position next_position[ROWS];
    const auto read = [&](u32 chunk) {
        next = 0;
        if (chunk >= last) return;
        if (chunk * LANES + lane < count) next = __ldg(entries + chunk * LANES + lane);
#pragma unroll
        for (int r = 0; r < ROWS; ++r) next_position[r] = __ldg(positions + (u64)chunk * ROWS + r);
    };
    read(chunk);
    Part x[ROWS][TILES];
    const auto load_x = [&](const Span &span) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) of_x.load(row + r < args.rows ? row + r : row, span, x[r]);
    };
    if (ONE_PANEL && chunk < last) load_x(Span(args.depth, lane * VECTOR));

    // The groups of a warp go chunk by chunk together.
#pragma unroll 1
    for (; __any_sync(~0u, chunk < last); ++chunk) {
        const Word entry = next;
        Position position[ROWS];
#pragma unroll
        for (int r = 0; r < ROWS; ++r) position[r] = next_position[r];
        read(chunk + 1);
        int left = chunk >= last ? 0 : count - chunk * LANES < LANES ? (int)(count - chunk * LANES) : LANES;
#pragma unroll
        for (int step = LANES; step < 32; step *= 2) left = max(left, __shfl_xor_sync(~0u, left, step));
#pragma unroll 1
        for (int e = 0; e < left; e += UNROLL) {
            Accum sum[SUMS];
#pragma unroll
            for (int s = 0; s < SUMS; ++s) sum[s] = 0;
            for (u64 panel = 0; panel < (ONE_PANEL ? 1 : args.depth); panel += Span::PANEL) {
                const Span span(args.depth, panel + lane * VECTOR);
                Part y[UNROLL][TILES];
#pragma unroll
                for (int u = 0; u < UNROLL; ++u)
                    of_y.load(Union::column(__shfl_sync(~0u, entry, e + u, LANES)), span, y[u]);
                if (!ONE_PANEL && live) load_x(span);
#pragma unroll
                for (int u = 0; u < UNROLL; ++u)
#pragma unroll
                    for (int r = 0; r < ROWS; ++r) sddmm::add_products(x[r], y[u], span, sum[u * ROWS + r]);
            }
            const int first = Total::add(sum);
            if (Total::mine())
#pragma unroll
                for (int s = 0; s < Total::COUNT; ++s)
                    total[(first + s) % ROWS][e + (first + s) / ROWS] = sum[s];
        }
        __syncwarp();
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const bool has = Union::has(entry, r);
            const u32 all = __ballot_sync(~0u, has) >> (threadIdx.x % 32 - lane) & OF_GROUP;
            if (!has) continue;
            const u64 p = (u64)position[r] + __popc(all & ((1u << lane) - 1));
            sddmm::finish<Value>(args, p, total[r][lane], alpha, beta);
        }
        __syncwarp();
    }
}
