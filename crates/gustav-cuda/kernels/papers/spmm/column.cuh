// A column of B, of which a thread reads an element for every nonzero.
//
// Lanes without a column read the last one, and addresses are numbers of bytes: a load is two
// instructions beside itself, where a condition and the compiler's arithmetic on pointers make ten
// of them.
#pragma once
#include "common/types.cuh"

template <class Value>
struct Column {
    u64 first, stride;

    // Column `j` of `b`, which has `columns` columns and leading dimension `ldb`.
    __device__ __forceinline__ Column(const Value *b, u64 columns, u64 ldb, u64 j)
        : first(reinterpret_cast<u64>(b + (j < columns ? j : columns - 1))),
          stride(ldb * sizeof(Value)) {}

    __device__ __forceinline__ Value operator[](u32 row) const {
        return __ldg(reinterpret_cast<const Value *>(first + row * stride));
    }
};
