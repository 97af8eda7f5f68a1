// items: records the row found for each item of a matrix, for the test that equal partitions hold
// every row start and every nonzero exactly once.
//
//   LANES lanes -> one item, searched for together
#include "common/warp.cuh"
#include "schedule/even_shares.cuh"

constexpr int LANES = GUSTAV_LANES;

#include "gustav_cuda::schedule::items::Arguments"

extern "C" __global__ void items(const Arguments args) {
    const u64 item = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
    if (item >= args.items) return;
    const int lane = threadIdx.x % LANES;
    const u32 group = warp::lanes_of_group<LANES>();
    const u32 row = schedule::row_of_item<LANES, u32>(args.offsets, (u32)args.rows,
                                                      (u32)args.nonzeros, (u32)item, lane, group);
    if (lane == 0) args.rows_of[item] = row;
}
