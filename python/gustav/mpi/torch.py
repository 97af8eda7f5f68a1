"""Products over ranks for PyTorch, with gradients: for training on a graph of which every rank has some nodes.

Operands are this rank's rows, as of :mod:`gustav.mpi`, and so are gradients; a rank whose rows are on a GPU computes
there. Forwards and backwards are collective: all ranks run the same model on their rows, and need gradients of the same
operands. PyTorch computes gradients in one thread for each device, so that a rank has the tensors of one graph on one
device, and with a GPU several ranks need an MPI that several threads may call. Parameters that every rank has get on
each the gradient of its own rows, which the program sums, as ``python/examples/gcn_mpi.py`` does.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _device
from . import _arguments
from ._matrix import DistPattern, expect_pattern, ranks_of
from ._plans import plan_sddmm, plan_spmm
from ._products import cached

__all__ = ["sddmm", "spmm"]


def spmm(pattern: DistPattern, values: Tensor | None, x: Tensor, *, transpose: bool = False) -> Tensor:
    """``op(A) @ x`` over ranks, with gradients with respect to `values` and `x`. Collective.

    Parameters
    ----------
    pattern : DistPattern, m × k
        Where A has nonzeros.
    values : tensor, nonzeros of this rank, or None
        Values of A; ``None`` stands for ones.
    x : tensor
        Rows of X where this rank has columns of A, or with `transpose` rows; of the type of `values`.
    transpose : bool
        Multiplies Aᵀ.

    Returns
    -------
    tensor
        Rows of the product where this rank has rows of A, or with `transpose` columns.

    Examples
    --------
    >>> import torch, gustav.mpi as gm, gustav.mpi.torch as gmt
    >>> A = torch.tensor([[1.0, 0.0], [2.0, 3.0]]).to_sparse_csr()
    >>> P = gm.DistPattern(gm.Ranks.alone(), A)
    >>> values = A.values().clone().requires_grad_()
    >>> gmt.spmm(P, values, torch.ones(2, 2)).sum().backward()
    >>> values.grad
    tensor([2., 2., 2.])
    """
    with ranks_of(pattern=pattern)._preparing():
        pattern = expect_pattern("pattern", pattern)
        transpose = _arguments.flag("transpose", transpose)
        _expect_tensors(x=x, **({} if values is None else {"values": values}))
        if x.ndim not in (1, 2):
            raise ValueError(f"x: expected a vector or a matrix, found {x.ndim} dimensions")
        if values is None:
            values = x.new_ones(pattern.local_nnz)
        elif values.dtype != x.dtype:
            raise TypeError(f"values and x: {values.dtype} and {x.dtype}; give both in one type")
        _expect_gradients(pattern, values, x)
        is_vector = x.ndim == 1
        rows = x.unsqueeze(1) if is_vector else x
    y: Tensor = _Spmm.apply(pattern, values, rows, transpose)
    return y.squeeze(1) if is_vector else y


def sddmm(pattern: DistPattern, q: Tensor, k: Tensor) -> Tensor:
    """⟨row i of `q`, row j of `k`⟩ at every nonzero (i, j) of this rank, with gradients with respect to both.
    Collective.

    Parameters
    ----------
    pattern : DistPattern, m × n
    q : tensor, rows of this rank × depth
    k : tensor, columns of this rank × depth
    """
    with ranks_of(pattern=pattern)._preparing():
        pattern = expect_pattern("pattern", pattern)
        _expect_tensors(q=q, k=k)
        if q.ndim != 2 or q.dtype != k.dtype:
            raise TypeError("q and k: two matrices of one type are taken")
        _expect_gradients(pattern, q, k)
    values: Tensor = _Sddmm.apply(pattern, q, k)
    return values


def _expect_tensors(**tensors: Any) -> None:
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}: {type(tensor).__name__} is not taken; tensors are, gustav.mpi takes other arrays")


def _expect_gradients(pattern: DistPattern, *tensors: Tensor) -> None:
    """Refuses tensors on a GPU whose gradients could not be computed: in the forward, when all ranks learn of it."""
    needed = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    if not needed or pattern.ranks.size == 1 or not any(tensor.is_cuda for tensor in tensors):
        return
    if tensors[0].dtype.itemsize == 2:
        raise NotImplementedError(
            f"gradients of {tensors[0].dtype} on a GPU over ranks would be rounded once for every rank; nearest that "
            "works: float32, or tensors in host memory"
        )
    if not pattern.ranks._native.takes_threads:
        raise RuntimeError(
            "PyTorch computes gradients on a GPU in a thread of its own, and MPI was initialised for the main thread "
            "alone; initialise it with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE, which mpi4py does by default"
        )


def _product(pattern: DistPattern, values: Tensor, x: Tensor, transpose: bool) -> Tensor:
    with pattern.ranks._preparing():
        columns, dtype, device = x.shape[1], str(x.dtype).removeprefix("torch."), _device.number(x)
    plan = cached(
        pattern,
        ("spmm", columns, dtype, transpose, "plus_times", False),
        device,
        lambda: plan_spmm(pattern, columns, dtype=dtype, transpose=transpose, device=device),
    )
    y: Tensor = plan.execute(values.detach(), x.detach())
    return y


def _at_nonzeros(pattern: DistPattern, q: Tensor, k: Tensor) -> Tensor:
    with pattern.ranks._preparing():
        depth, dtype, device = q.shape[1], str(q.dtype).removeprefix("torch."), _device.number(q)
    plan = cached(
        pattern,
        ("sddmm", depth, dtype),
        device,
        lambda: plan_sddmm(pattern, depth, dtype=dtype, device=device),
    )
    values: Tensor = plan.execute(q.detach(), k.detach())
    return values


class _Spmm(torch.autograd.Function):
    """Backwards is made of the same two functions, so that gradients have gradients."""

    @staticmethod
    def forward(ctx: Any, pattern: DistPattern, values: Tensor, x: Tensor, transpose: bool) -> Tensor:
        ctx.pattern, ctx.transpose = pattern, transpose
        ctx.save_for_backward(values, x)
        return _product(pattern, values, x, transpose)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        values, x = ctx.saved_tensors
        (of_y,) = gradients
        _, needs_values, needs_x, _ = ctx.needs_input_grad
        of_values = of_x = None
        if needs_x:
            of_x = _Spmm.apply(ctx.pattern, values, of_y, not ctx.transpose)
        if needs_values:
            q, k = (x, of_y) if ctx.transpose else (of_y, x)
            of_values = _Sddmm.apply(ctx.pattern, q, k)
        return None, of_values, of_x, None


class _Sddmm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pattern: DistPattern, q: Tensor, k: Tensor) -> Tensor:
        ctx.pattern = pattern
        ctx.save_for_backward(q, k)
        return _at_nonzeros(pattern, q, k)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k = ctx.saved_tensors
        (of_values,) = gradients
        _, needs_q, needs_k = ctx.needs_input_grad
        of_q = _Spmm.apply(ctx.pattern, of_values, k, False) if needs_q else None
        of_k = _Spmm.apply(ctx.pattern, of_values, q, True) if needs_k else None
        return None, of_q, of_k
