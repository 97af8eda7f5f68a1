// The matrices of a product C = A * B, which every kernel is told first.
//
// GUSTAV_INDEX, GUSTAV_OFFSET    types of column indices and of row offsets
// GUSTAV_VALUE, GUSTAV_OUT       types of values of A and B, and of C
#pragma once
#include "common/types.cuh"

typedef GUSTAV_INDEX Index;
typedef GUSTAV_OFFSET Offset;
typedef GUSTAV_VALUE Value;
typedef GUSTAV_OUT Out;
typedef typename Accumulator<Value>::Type Sum;

struct Matrices {
    const Offset *a_offsets;
    const Index *a_indices;
    const Value *a_values;
    const Offset *b_offsets;
    const Index *b_indices;
    const Value *b_values;
    Offset *c_offsets;
    Index *c_indices;
    Out *c_values;
};
