// row_lengths: a histogram of row lengths, and how many parts cutting long rows would make.
//
// The grid strides over rows; a CTA counts in shared memory and adds its counts to memory.
//   counts = BINS numbers of rows | CUTS numbers of parts | CUTS numbers of cut rows | longest row
#include "schedule/lengths.cuh"

using Offset = GUSTAV_OFFSET;

constexpr int BLOCK = GUSTAV_BLOCK;
constexpr int FIRST_CUT_BITS = GUSTAV_FIRST_CUT_BITS;
constexpr int CUTS = GUSTAV_CUTS;

#include "gustav_cuda::schedule::lengths::Lengths"

extern "C" __global__ void __launch_bounds__(BLOCK) row_lengths(const Lengths args) {
    using namespace schedule;
    constexpr int COUNTS = BINS + 2 * CUTS + 1;
    __shared__ u64 counts[COUNTS];
    for (int i = threadIdx.x; i < COUNTS; i += BLOCK) counts[i] = 0;
    __syncthreads();
    const u64 step = (u64)gridDim.x * BLOCK;
    u64 longest = 0;
    for (u64 row = (u64)blockIdx.x * BLOCK + threadIdx.x; row < args.rows; row += step) {
        const u64 first = args.offsets[row], last = args.offsets[row + 1], length = last - first;
        const int bin = length_bin(length);
        // Lanes of the same bin add once.
        const u32 same = __match_any_sync(__activemask(), bin);
        if ((same & ((1u << threadIdx.x % 32) - 1)) == 0)
            atomicAdd(counts + bin, (u64)__popc(same));
        longest = length > longest ? length : longest;
        for (int cut = 0; cut < CUTS && length >> (FIRST_CUT_BITS + cut); ++cut) {
            atomicAdd(counts + BINS + cut, parts(first, last, FIRST_CUT_BITS + cut));
            atomicAdd(counts + BINS + CUTS + cut, 1);
        }
    }
    atomicMax(counts + COUNTS - 1, longest);
    __syncthreads();
    for (int i = threadIdx.x; i < COUNTS - 1; i += BLOCK)
        if (counts[i] > 0) atomicAdd(args.counts + i, counts[i]);
    if (threadIdx.x == 0) atomicMax(args.counts + COUNTS - 1, counts[COUNTS - 1]);
}
