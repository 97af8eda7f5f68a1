// columns: facts about the columns of a CSR matrix's rows.
//
//   increasing: thread -> a row; raises a flag where columns do not increase
//   cuts: thread -> a row and a chunk boundary, found by binary search in increasing columns
//
// GUSTAV_INDEX, GUSTAV_OFFSET   types of column indices and of row offsets; u32 for `cuts`
#include "common/types.cuh"

typedef GUSTAV_INDEX Index;
typedef GUSTAV_OFFSET Offset;

constexpr int BLOCK = GUSTAV_BLOCK;

struct Arguments {
    const Offset *offsets;
    const Index *indices;
    u32 *out;    // the flag, or boundaries: out[c * rows + row] for c = 0 .. chunks
    u64 rows;
    u64 width;   // columns of a chunk
    u64 chunks;
};

extern "C" __global__ void __launch_bounds__(BLOCK) increasing(const Arguments args) {
    const u64 step = (u64)gridDim.x * BLOCK;
    for (u64 row = (u64)blockIdx.x * BLOCK + threadIdx.x; row < args.rows; row += step) {
        const u64 last = args.offsets[row + 1];
        bool wrong = false;
        for (u64 at = args.offsets[row]; at + 1 < last; ++at)
            wrong |= args.indices[at] >= args.indices[at + 1];
        if (wrong) *args.out = 1;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK) cuts(const Arguments args) {
    const u64 row = (u64)blockIdx.x * BLOCK + threadIdx.x;
    if (row >= args.rows) return;
    const u32 begin = (u32)args.offsets[row], end = (u32)args.offsets[row + 1];
    for (u64 chunk = blockIdx.y; chunk <= args.chunks; chunk += gridDim.y) {
        const u64 bound = chunk * args.width;
        u32 low = begin, high = end;
        while (low < high) {
            const u32 middle = low + (high - low) / 2;
            if (args.indices[middle] < bound)
                low = middle + 1;
            else
                high = middle;
        }
        args.out[chunk * args.rows + row] = low;
    }
}
