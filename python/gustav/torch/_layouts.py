"""Tensors as the module takes them: vectors, matrices, of which one may hold a batch, and matrices with heads."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import _device


def for_module(t: Tensor) -> Any:
    """A tensor as the module takes it in the order of PyTorch's current stream. Without the checks of Tensor.__dlpack__,
    which operators have no use for: gradients are recorded above them."""
    return _device.for_module(torch, t)


def expect_tensor(name: str, t: Any) -> None:
    """Refuses what is no tensor."""
    if not isinstance(t, Tensor):
        remedy = "; torch.from_numpy makes one" if isinstance(t, np.ndarray) else ""
        raise TypeError(f"{name}: expected a tensor of PyTorch, found {type(t).__name__}{remedy}")


def exported(t: Tensor) -> Any:
    """A tensor as the module takes it, copied where no layout with a leading dimension expresses it."""
    if not t.is_contiguous() and not _has_layout(t):
        _device.expect_storage(t)
        t = t.contiguous()
    return for_module(t)


def _has_layout(t: Tensor) -> bool:
    if t.ndim != 2:
        return False
    (rows, columns), (of_row, of_column) = t.shape, t.stride()
    return (of_column == 1 and of_row >= columns) or (of_row == 1 and of_column >= rows)


def rows(t: Tensor) -> Any:
    """Rows × columns, or rows × heads × columns, as the module takes them: in place where rows are packed and heads are
    side by side or one above the other, else a copy."""
    if not t.is_contiguous() and not _has_packed_rows(t):
        _device.expect_storage(t)
        t = t.contiguous()
    return for_module(t)


def _has_packed_rows(t: Tensor) -> bool:
    """Whether the module takes the tensor in place, by the rule of `shape.rs`."""
    if t.ndim == 2:
        (_, columns), (of_row, of_column) = t.shape, t.stride()
        return of_column == 1 and of_row >= columns
    (rows, heads, columns), (of_row, of_head, of_column) = t.shape, t.stride()
    if of_column != 1:
        return False
    beside = of_head == columns and of_row >= heads * columns
    return beside or (of_head == rows * of_row and of_row >= columns)


def _row_major(t: Tensor) -> Tensor:
    """A matrix whose rows are packed, copied where they are not."""
    return t if _has_packed_rows(t) else t.contiguous()


def packed(t: Tensor) -> Any:
    """The tensor as the module takes all elements one after another, copied where they are not."""
    if not t.is_contiguous():
        _device.expect_storage(t)
        t = t.contiguous()
    return for_module(t)


def of_nonzeros(bias: Tensor | None) -> tuple[Any, str] | None:
    """Values of nonzeros, or of nonzeros × heads, and their order."""
    if bias is None:
        return None
    if bias.ndim == 1:
        return exported(bias), "shared"
    _device.expect_storage(bias)
    if bias.T.is_contiguous():
        return for_module(flat(bias.T)), "head_major"
    return for_module(flat(bias.contiguous())), "nonzero_major"


def flat(t: Tensor) -> Tensor:
    return t if t.ndim == 1 else t.reshape(-1)


def as_one(t: Tensor, batches: tuple[int, ...] = ()) -> Tensor:
    """A batch of matrices as one matrix, side by side in its columns or one above the other in its rows.

    A matrix without a batch is repeated for each of `batches`, as the module takes as many as there are.
    """
    if t.ndim == 2:
        if not batches:
            return t
        t = t.expand(*batches, -1, -1)
    beside = t.stride(0) == t.shape[2] * t.stride(2)
    one = t.transpose(0, 1).flatten(1) if beside else t.flatten(0, 1)
    # On a GPU batches are of row-major matrices.
    return _row_major(one) if t.is_cuda else one
