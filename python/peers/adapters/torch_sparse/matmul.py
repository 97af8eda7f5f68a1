import torch

import gustav.torch as gt

from .tensor import SparseTensor


def matmul(src, other, reduce="sum"):
    if isinstance(other, SparseTensor):
        values = [m.pattern.ones(torch.float32) if m.value is None else m.value for m in (src, other)]
        pattern, value = gt.spgemm(src.pattern, values[0], other.pattern, values[1])
        return SparseTensor.of(pattern, None if src.value is None else value)
    return gt.spmm(src.pattern, src.value, other, reduce="sum" if reduce == "add" else reduce)


def spmm(index, value, m, n, matrix):
    a = SparseTensor(*index, value, (m, n))
    return gt.spmm(a.pattern, a.value, matrix)


def spspmm(index_a, value_a, index_b, value_b, m, k, n):
    a, b = SparseTensor(*index_a, value_a, (m, k)), SparseTensor(*index_b, value_b, (k, n))
    row, col, value = matmul(a, b).coo()
    return torch.stack([row, col]), value
