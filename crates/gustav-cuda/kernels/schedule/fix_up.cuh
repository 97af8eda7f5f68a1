// The tree in which the parts of a cut row are added: of the groups with the parts of one node, the last to
// arrive adds them in their order and takes the sum one level up. Which group that is depends on the run, the order
// of the sums does not: the same bits in every run.
#pragma once
#include "common/types.cuh"

namespace fix_up {

constexpr int FAN_BITS = 5;
constexpr int FAN = 1 << FAN_BITS;  // children of a node, at most
constexpr int LEVELS = GUSTAV_LEVELS;
static_assert(LEVELS * FAN_BITS <= 32 + FAN_BITS, "no level divides by more than 2^32");

// A node of the tree: where sums of children, of 2^shift parts each, are added.
struct Node {
    u32 begin;     // its first child, counted from the row's beginning
    int children;
    int shift;
    bool is_root;

    // The node at `level` that `part` of `count` parts is below.
    __device__ __forceinline__ Node(u32 count, u32 part, int level) : shift(level * FAN_BITS) {
        const u32 sums = (count + (1u << shift) - 1) >> shift;
        begin = part >> shift >> FAN_BITS << FAN_BITS;
        children = sums - begin < FAN ? (int)(sums - begin) : FAN;
        is_root = sums <= FAN;
    }

    // The part whose slot has the sum of child `c`; that of child 0 takes the sum of the node.
    __device__ __forceinline__ u64 part(int c) const { return (u64)(begin + c) << shift; }
};

}  // namespace fix_up
