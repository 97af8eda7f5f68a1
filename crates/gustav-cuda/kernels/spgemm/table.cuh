// Columns of a row in a hash table in shared memory: linear probing, a power of two of slots.
#pragma once
#include "common/types.cuh"

namespace table {

// No column: the host refuses matrices so wide.
constexpr u32 EMPTY = 0xffffffffu;

__device__ __forceinline__ u32 hash(u32 column, u32 log_slots) {
    return column * 0x9e3779b1u >> (32 - log_slots);
}

// The slot of `column`, which is inserted if absent; `added` says whether it was.
__device__ __forceinline__ u32 find(u32 *keys, u32 log_slots, u32 column, bool &added) {
    added = false;
    for (u32 at = hash(column, log_slots);; at = (at + 1) & ((1u << log_slots) - 1)) {
        u32 key = *(volatile u32 *)(keys + at);
        if (key == EMPTY) {
            key = atomicCAS(keys + at, EMPTY, column);
            if (key == EMPTY) {
                added = true;
                return at;
            }
        }
        if (key == column) return at;
    }
}

}  // namespace table
