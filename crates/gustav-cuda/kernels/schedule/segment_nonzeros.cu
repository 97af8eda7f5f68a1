// segment_nonzeros: the nonzeros of a list of segments (schedule/segments.cuh), one after another.
//
//   rows, columns, positions  of every nonzero, in the order of the list
//
// `segment_lengths` writes the length of segment s to begins[s + 1]; a scan turns lengths into the
// start of every segment's nonzeros; `segment_nonzeros` writes them, a warp a segment. Parts of cut
// rows name their row.
#include "schedule/segments.cuh"

using Index = GUSTAV_INDEX;
using Row = GUSTAV_ROW;
using Position = GUSTAV_POSITION;

constexpr int BLOCK = GUSTAV_BLOCK;
static_assert(schedule::LENGTH_BITS == GUSTAV_LENGTH_BITS, "the host sees the same fields");

#include "gustav_cuda::schedule::segment_nonzeros::Arguments"

extern "C" __global__ void __launch_bounds__(BLOCK) segment_lengths(const Arguments args) {
    const u64 s = (u64)blockIdx.x * BLOCK + threadIdx.x;
    if (s >= args.segments) return;
    const auto segment = schedule::segment<u64>(args.list, s);
    args.begins[s + 1] = segment.last - segment.first;
}

extern "C" __global__ void __launch_bounds__(BLOCK) segment_nonzeros(const Arguments args) {
    const u64 s = ((u64)blockIdx.x * BLOCK + threadIdx.x) / 32;
    if (s >= args.segments) return;
    const auto segment = schedule::segment<u64>(args.list, s);
    const u64 begin = args.begins[s];
    for (u64 k = threadIdx.x % 32; k < segment.last - segment.first; k += 32) {
        args.rows[begin + k] = (Row)segment.target();
        args.columns[begin + k] = args.indices[segment.first + k];
        args.positions[begin + k] = (Position)(segment.first + k);
    }
}
