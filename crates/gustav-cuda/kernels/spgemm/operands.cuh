// The matrices of a product C = A * B.
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

#include "gustav_cuda::product::sparse_operands::Matrix"
#include "gustav_cuda::product::sparse_operands::Output"
