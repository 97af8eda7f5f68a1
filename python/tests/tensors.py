"""Patterns and tensors that the tests of PyTorch share."""

import torch
from torch.autograd import gradcheck, gradgradcheck

import gustav.torch as gt

F64 = torch.float64


def made(rows, columns, density=0.4, dtype=F64):
    """A pattern, its values with gradients, and the matrix."""
    generator = torch.Generator().manual_seed(rows * 100 + columns)
    full = torch.randn(rows, columns, generator=generator, dtype=dtype)
    full *= torch.rand(rows, columns, generator=generator) < density
    t = full.to_sparse_csr()
    return gt.Pattern.from_sparse(t), t.values().clone().requires_grad_(), full


def random(*shape, dtype=F64):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator, dtype=dtype, requires_grad=True)


def checked(f, *inputs):
    return gradcheck(f, inputs) and gradgradcheck(f, inputs)
