"""Products on sparse patterns for PyTorch, with gradients.

A :class:`Pattern` says where the nonzeros are; values are a tensor. Gradients with respect to values are
values of the same pattern: nothing dense of the sparse matrix's shape is ever made.

>>> import torch, gustav.torch as gt
>>> P = gt.Pattern(torch.tensor([0, 2, 3]), torch.tensor([0, 2, 1]), (2, 3))
>>> values = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> gt.spmm(P, values, torch.ones(3, 2)).sum().backward()
>>> values.grad
tensor([2., 2., 2.])

The operators are registered with ``torch.library``: ``torch.compile(fullgraph=True)`` takes them, and
their gradients have gradients.
"""

from ._attention import attention, softmax
from ._functions import sddmm, spgemm, spmm
from ._pattern import Pattern

__all__ = ["Pattern", "attention", "sddmm", "softmax", "spgemm", "spmm"]
