// dense-tiles: values[p] = alpha <X[row p], Y[column p]> factors[p] + beta values[p] for every nonzero p. Ours.
//
// Idea: where a pattern has a good part of all positions, whole tiles of X Y^T cost less than gathering rows of Y for
// every nonzero. A CTA computes a tile of ROWS x COLUMNS in registers, as a dense product does, and stores what the
// pattern has of it.
//
//   grid.x -> tiles, row after row
//   STAGES parts of STEP elements along the depth of the tile's rows of X and Y are in shared memory or on their way
//   thread -> PER_ROW x PER_COLUMN sums by scalar products over its part of every STEP, or, TENSOR, a warp -> 16 x 8
//             sums by each matrix instruction, 16 bits summed in f32
//   sums   -> shared memory, from where the tile's nonzeros (schedule/tile_nonzeros.cu) take theirs
//
// Every sum is made in the same order wherever its nonzero stands: the same bits in every run.
//
// Invariants: VECTOR divides the depth, leading dimensions and the addresses of X and Y, and is 4 bytes at least,
// or 1; values overlap no other operand.
#include "ptx/dependents.cuh"
#include "ptx/mma.cuh"
#include "sddmm/sums.cuh"

using Value = GUSTAV_VALUE;
using Position = GUSTAV_POSITION;
using Accum = typename Accumulator<Value>::Type;

constexpr int ROWS = GUSTAV_ROWS;
constexpr int COLUMNS = GUSTAV_COLUMNS;
constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int STAGES = GUSTAV_STAGES;
constexpr int VECTOR = GUSTAV_VECTOR;  // elements of a copy to shared memory
constexpr bool TENSOR = GUSTAV_TENSOR;
constexpr int RESIDENT = GUSTAV_RESIDENT;

// A row's part in shared memory: 128 bytes, and 16 more so that neighbouring rows begin in different banks.
constexpr int STEP_BYTES = 128, PITCH = STEP_BYTES + 16;
constexpr int STEP = STEP_BYTES / sizeof(Value);
constexpr int STAGE = (ROWS + COLUMNS) * PITCH;
constexpr int SUM_PITCH = COLUMNS + 8;
constexpr int WARPS = BLOCK / 32;
constexpr int AT_ONCE = 4;  // nonzeros of a thread whose places are loaded together

#include "gustav_cuda::sddmm::dense_tiles::Arguments"

// The vectors of a part of a row, and the lines of a tile that all threads bring at once, one vector each.
constexpr int VECTORS = STEP / VECTOR, LINES = BLOCK / VECTORS;
static_assert(ROWS % LINES == 0 && COLUMNS % LINES == 0, "every thread brings as many vectors");

// A tile's rows of X or Y, as a thread brings them: one vector of every LINES-th line.
struct Operand {
    const Value *first;  // its vector of line 0
    u64 ld;
    int last;  // the last line: past it, any row will do

    __device__ __forceinline__ Operand(const Value *rows, u64 ld, u64 row, u64 count)
        : first(rows + row * ld + threadIdx.x % VECTORS * VECTOR), ld(ld),
          last((int)(count - row < ROWS + COLUMNS ? count - row : ROWS + COLUMNS) - 1) {}

    // Begins to bring `COUNT` lines from element `from` of the depth on; zeros past the end.
    template <int COUNT>
    __device__ __forceinline__ void bring(u64 depth, u64 from, u8 *stage) const {
        constexpr int BYTES = VECTOR * sizeof(Value);
        const bool there = from + threadIdx.x % VECTORS * VECTOR < depth;
        u8 *const to = stage + threadIdx.x / VECTORS * PITCH + threadIdx.x % VECTORS * BYTES;
#pragma unroll 8
        for (int c = 0; c < COUNT / LINES; ++c) {
            const int line = threadIdx.x / VECTORS + c * LINES;
            const Value *source = first + (u64)(u32)(line < last ? line : last) * ld + from;
            tile::Pack<Value, VECTOR> pack{};
            if (there) {
                if constexpr (ptx::HAS_ASYNC_COPY && BYTES >= 4) {
                    ptx::copy_async<BYTES>(to + c * LINES * PITCH, source);
                    continue;
                }
                pack = tile::load<Value, VECTOR>(source);
            }
            memcpy(__builtin_assume_aligned(to + c * LINES * PITCH, BYTES < 16 ? BYTES : 16), &pack, BYTES);
        }
    }
};

// The tile's sums by scalar products: a warp has 4 x 8 threads, whose rows and columns alternate. A thread has as many
// sums as registers hold, since each element that it reads from shared memory serves a row or a column of them; the warps
// that are left over share the depth.
template <class V, bool TENSORS>
struct Tile {
    static constexpr int PER_ROW = 8, PER_COLUMN = sizeof(Value) == 4 ? 8 : 4;
    static constexpr int ACROSS = COLUMNS / (8 * PER_COLUMN), DOWN = ROWS / (4 * PER_ROW);  // warps
    static constexpr int PARTS = WARPS / (DOWN * ACROSS);                                   // of the depth
    static constexpr int EACH = 16 / sizeof(Value), LOADS = STEP / EACH / PARTS;
    static_assert(DOWN * ACROSS * PARTS == WARPS && STEP / EACH % PARTS == 0, "the warps cover the tile");
    int row, column, part;
    Accum sum[PER_ROW][PER_COLUMN] = {};

    __device__ __forceinline__ Tile() {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, place = warp % (DOWN * ACROSS);
        // Of 16 lanes, neighbours have one column, and one half the rows of the other: fewer passes of a load.
        row = place / ACROSS * (4 * PER_ROW) + lane / 16 * 2 + lane % 2;
        column = place % ACROSS * (8 * PER_COLUMN) + lane / 2 % 8;
        part = warp / (DOWN * ACROSS);
    }

    __device__ __forceinline__ void add(const u8 *x, const u8 *y) {
        using Few = tile::Pack<Value, EACH>;
        x += part * LOADS * 16, y += part * LOADS * 16;
#pragma unroll 1
        for (int k = 0; k < LOADS; ++k) {
            Few of_x[PER_ROW];
#pragma unroll
            for (int i = 0; i < PER_ROW; ++i)
                of_x[i] = *reinterpret_cast<const Few *>(x + (row + 4 * i) * PITCH + k * 16);
#pragma unroll
            for (int j = 0; j < PER_COLUMN; ++j) {
                const Few of_y = *reinterpret_cast<const Few *>(y + (column + 8 * j) * PITCH + k * 16);
#pragma unroll
                for (int v = 0; v < EACH; ++v)
#pragma unroll
                    for (int i = 0; i < PER_ROW; ++i)
                        sum[i][j] = times_plus(tile::widen_at(of_x[i], v), tile::widen_at(of_y, v), sum[i][j]);
            }
        }
    }

    // The parts of the depth are added in their order.
    __device__ __forceinline__ void store(Accum *to) const {
#pragma unroll
        for (int p = 0; p < PARTS; ++p) {
            if (p > 0) __syncthreads();
            if (part != p) continue;
#pragma unroll
            for (int i = 0; i < PER_ROW; ++i)
#pragma unroll
                for (int j = 0; j < PER_COLUMN; ++j) {
                    Accum &all = to[(row + 4 * i) * SUM_PITCH + column + 8 * j];
                    all = p > 0 ? plus(all, sum[i][j]) : sum[i][j];
                }
        }
    }
};

__device__ __forceinline__ void mma(f32 (&sum)[4], const u32 (&x)[4], const u32 (&y)[2], f16) {
    ptx::mma_f16(sum, x, y);
}
__device__ __forceinline__ void mma(f32 (&sum)[4], const u32 (&x)[4], const u32 (&y)[2], bf16) {
    ptx::mma_bf16(sum, x, y);
}

// The same on tensor cores: a warp has DOWN x ALONG products of 16 x 8.
template <class V>
struct Tile<V, true> {
    static constexpr int ACROSS = WARPS >= 8 ? 4 : 2;  // warps
    static constexpr int DOWN = ROWS * ACROSS / WARPS / 16, ALONG = COLUMNS / ACROSS / 8;
    static_assert(DOWN > 0 && ALONG % 2 == 0 && DOWN * 16 * WARPS == ROWS * ACROSS, "the warps cover the tile");
    int row, column;
    f32 sum[DOWN][ALONG][4] = {};

    __device__ __forceinline__ Tile() {
        const int warp = threadIdx.x / 32;
        row = warp / ACROSS * DOWN * 16, column = warp % ACROSS * ALONG * 8;
    }

    __device__ __forceinline__ void add(const u8 *x, const u8 *y) {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int k = 0; k < STEP / 16; ++k) {
            u32 of_x[DOWN][4], of_y[ALONG][2];
#pragma unroll
            for (int i = 0; i < DOWN; ++i)
                ptx::load_matrices(of_x[i], x + (row + i * 16 + lane % 16) * PITCH + k * 32 + lane / 16 * 16);
#pragma unroll
            for (int j = 0; j < ALONG; j += 2) {
                u32 both[4];
                const int line = column + j * 8 + lane % 8 + lane / 16 * 8;
                ptx::load_matrices(both, y + line * PITCH + k * 32 + lane / 8 % 2 * 16);
                of_y[j][0] = both[0], of_y[j][1] = both[1], of_y[j + 1][0] = both[2], of_y[j + 1][1] = both[3];
            }
#pragma unroll
            for (int i = 0; i < DOWN; ++i)
#pragma unroll
                for (int j = 0; j < ALONG; ++j) mma(sum[i][j], of_x[i], of_y[j], V{});
        }
    }

    __device__ __forceinline__ void store(Accum *to) const {
        const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < DOWN; ++i)
#pragma unroll
            for (int j = 0; j < ALONG; ++j)
#pragma unroll
                for (int s = 0; s < 4; ++s)
                    to[(row + i * 16 + g + s / 2 * 8) * SUM_PITCH + column + j * 8 + 2 * t + s % 2] = sum[i][j][s];
    }
};

extern "C" __global__ void __launch_bounds__(BLOCK, RESIDENT / BLOCK)
    dense_tiles(const __grid_constant__ Arguments args) {
    extern __shared__ __align__(16) u8 shared[];
    ptx::wait_for_prerequisites();
    const u64 begin = __ldg(args.begins + blockIdx.x), end = __ldg(args.begins + blockIdx.x + 1);
    if (begin == end) return;
    const u64 row = (u64)(blockIdx.x / args.across) * ROWS, column = (u64)(blockIdx.x % args.across) * COLUMNS;
    const u32 steps = (u32)((args.depth + STEP - 1) / STEP);
    // The lists are read last: they come to L2 meanwhile.
    if (threadIdx.x < 32) {
        const int lane = threadIdx.x;
        ptx::prefetch(args.positions + begin, (end - begin) * sizeof(Position), lane, 32);
        ptx::prefetch(args.places + begin, (end - begin) * sizeof(u16), lane, 32);
    }
    const Operand of_x(args.x, args.ldx, row, args.rows), of_y(args.y, args.ldy, column, args.columns);
    const auto bring = [&](u32 step) {
        u8 *const stage = shared + step % STAGES * STAGE;
        if (step < steps) {
            of_x.bring<ROWS>(args.depth, (u64)step * STEP, stage);
            of_y.bring<COLUMNS>(args.depth, (u64)step * STEP, stage + ROWS * PITCH);
        }
        ptx::close_copies();
    };
#pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) bring(s);
    Tile<Value, TENSOR> tile;
#pragma unroll 1
    for (u32 s = 0; s < steps; ++s) {
        // Later parts may be on their way; the part that all threads have left makes room for one more.
        ptx::wait_copies<STAGES - 2>();
        __syncthreads();
        bring(s + STAGES - 1);
        const u8 *x = shared + s % STAGES * STAGE;
        tile.add(x, x + ROWS * PITCH);
    }
    ptx::wait_copies<0>();
    __syncthreads();
    Accum *const sums = reinterpret_cast<Accum *>(shared);
    tile.store(sums);
    __syncthreads();
    const Accum alpha = from_bits<Accum>(args.alpha), beta = from_bits<Accum>(args.beta);
    for (u64 first = begin + threadIdx.x; first < end; first += AT_ONCE * BLOCK) {
        Position position[AT_ONCE];
        u32 place[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const u64 n = first + i * BLOCK < end ? first + i * BLOCK : first;
            position[i] = __ldg(args.positions + n), place[i] = __ldg(args.places + n);
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            if (first + i * BLOCK >= end) continue;
            const Accum sum = sums[place[i] / COLUMNS * SUM_PITCH + place[i] % COLUMNS];
            sddmm::finish<Value>(args, position[i], sum, alpha, beta);
        }
    }
}
