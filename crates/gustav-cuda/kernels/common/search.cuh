// Binary search for a column in a row whose columns increase.
#pragma once
#include "common/types.cuh"

// The first of `[from, to)` whose column is not below `column`, or `to`.
template <class Index, class At>
__device__ __forceinline__ At lower_bound(const Index *indices, At from, At to, u64 column) {
    while (from < to) {
        const At middle = from + (to - from) / 2;
        if (indices[middle] < column)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}
