"""The operators that PyTorch knows: kernels, which are the same for the CPU and for CUDA, shapes, and gradients.

Both products are linear in each operand, and their gradients are these products again: that of ``spmm`` in
its values is an ``sddmm``, those of ``sddmm`` are ``spmm``, and those of ``spgemm_at`` are ``spgemm_at``. So
gradients of gradients need nothing more.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import _attention_operators, _calls, _graph_attention, _graph_convolution, _spgemm
from ._calls import calls, product
from ._eager import applied
from ._pattern import Pattern, concrete_pattern, of_handle

__all__ = ["calls", "record_spmm"]

_library: Any = torch.library.Library("gustav", "DEF")  # type: ignore[no-untyped-call]
_library.define(
    "spmm(SymInt handle, SymInt rows, Tensor? values, Tensor x, bool transpose) -> Tensor"
)
_library.define("sddmm(SymInt handle, SymInt nnz, Tensor q, Tensor k) -> Tensor")
_library.define(
    "spgemm_at(SymInt handle, SymInt nnz, SymInt a, Tensor of_a, bool transpose_a, "
    "SymInt b, Tensor of_b, bool transpose_b) -> Tensor"
)
_library.define(
    "spmm_extremum(SymInt handle, SymInt rows, SymInt nnz, Tensor? values, Tensor x, bool transpose, "
    "str reduce) -> (Tensor, Tensor)"
)
for _schema in (*_attention_operators.SCHEMAS, *_graph_attention.SCHEMAS, *_graph_convolution.SCHEMAS):
    _library.define(_schema)
_library.define("inner_indices(SymInt handle, SymInt nnz, Tensor like, bool transpose) -> Tensor")
_library.define("inverse_lengths(SymInt handle, SymInt rows, Tensor like, bool transpose) -> Tensor")


def _batches(*operands: tuple[Tensor | None, int]) -> tuple[int, ...]:
    """The leading dimension of operands of which each has it or not, given their dimensions without it."""
    for operand, dimensions in operands:
        if operand is not None and operand.ndim > dimensions:
            return (operand.shape[0],)
    return ()


# Sparse × dense: values nnz or batch × nnz, x k × n or batch × k × n.


def _spmm(handle: int, rows: int, values: Tensor | None, x: Tensor, transpose: bool) -> Tensor:
    if x.ndim == 2 and (values is None or values.ndim == 1):
        return of_handle(handle).product(values, x, transpose)
    return of_handle(handle).spmm(values, x, transpose, _batches((values, 1), (x, 2)))


def _spmm_fake(handle: int, rows: int, values: Tensor | None, x: Tensor, transpose: bool) -> Tensor:
    return x.new_empty((*_batches((values, 1), (x, 2)), rows, x.shape[-1]))


def _spmm_context(ctx: Any, inputs: Any, output: Tensor) -> None:
    handle, _, values, x, transpose = inputs
    ctx.handle, ctx.transpose = handle, transpose
    ctx.pattern = concrete_pattern(handle)
    ctx.inner, ctx.has_batch = x.shape[-2], x.ndim > 2
    if values is not None:
        # Whether all matrices of a batch have the same values.
        ctx.nnz, ctx.is_shared = values.shape[-1], values.ndim == 1
    save_operands(ctx, values, x, ctx.needs_input_grad[2:4])


def save_operands(ctx: Any, values: Tensor | None, x: Tensor, needs: tuple[bool, bool]) -> None:
    """Saves each operand if the gradient of the other needs it: the same whichever way a call goes, since a program
    may repeat it in another way and take what that saves."""
    needs_values, needs_x = needs
    ctx.save_for_backward(values if needs_x else None, x if needs_values else None)


def _spmm_backward(ctx: Any, g: Tensor) -> Any:
    values, x = ctx.saved_tensors
    of_values = of_x = None
    if ctx.needs_input_grad[2]:
        first, second = (x, g) if ctx.transpose else (g, x)
        if ctx.is_shared and g.ndim == 3:
            # The sum over batches is an inner product over batches and columns.
            first, second = (_unbatched(t, g.shape[0]) for t in (first, second))
        of_values = calls.sddmm(ctx.handle, ctx.nnz, first, second)
    if ctx.needs_input_grad[3]:
        of_x = calls.spmm(ctx.handle, ctx.inner, values, g, not ctx.transpose)
        if g.ndim == 3 and not ctx.has_batch:
            of_x = of_x.sum(0)
    return None, None, of_values, of_x, None


def _unbatched(t: Tensor, batches: int) -> Tensor:
    """batch × rows × n as rows × (batch · n)."""
    if t.ndim == 2:
        t = t.unsqueeze(0).expand(batches, -1, -1)
    return t.transpose(0, 1).reshape(t.shape[1], -1)


class RecordedSpmm(torch.autograd.Function):
    """The product of plain tensors, values nnz and x k × n, that the pattern has a plan of, recorded for gradients."""

    @staticmethod
    def forward(ctx: Any, pattern: Pattern, values: Tensor, x: Tensor, transpose: bool) -> Tensor:
        ctx.pattern, ctx.transpose = pattern, transpose
        save_operands(ctx, values, x, ctx.needs_input_grad[1:3])
        return pattern.product(values, x, transpose)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        values, x = ctx.saved_tensors
        pattern, transpose = ctx.pattern, ctx.transpose
        _, needs_values, needs_x, _ = ctx.needs_input_grad
        of_values = of_x = None
        if needs_values:
            of_values = calls.sddmm(pattern._handle, pattern.nnz, *((x, g) if transpose else (g, x)))
        if needs_x:
            rows = pattern.shape[0 if transpose else 1]
            of_x = product(pattern, pattern._handle, rows, values, g, not transpose)
        return None, of_values, of_x, None


record_spmm = applied(RecordedSpmm)


# Dense × dense at the nonzeros: q m × d, k n × d, either with a leading batch.


def _sddmm(handle: int, nnz: int, q: Tensor, k: Tensor) -> Tensor:
    has_batch = q.ndim > 2 or k.ndim > 2
    return of_handle(handle).sddmm(q, k, _batches((q, 2), (k, 2)) if has_batch else ())


def _sddmm_fake(handle: int, nnz: int, q: Tensor, k: Tensor) -> Tensor:
    return q.new_empty((*_batches((q, 2), (k, 2)), nnz))


def _sddmm_context(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.handle = inputs[0]
    ctx.pattern = concrete_pattern(ctx.handle)
    ctx.save_for_backward(inputs[2], inputs[3])


def _sddmm_backward(ctx: Any, g: Tensor) -> Any:
    q, k = ctx.saved_tensors
    of_q = of_k = None
    if ctx.needs_input_grad[2]:
        of_q = calls.spmm(ctx.handle, q.shape[-2], g, k, False)
        of_q = of_q.sum(0) if of_q.ndim > q.ndim else of_q
    if ctx.needs_input_grad[3]:
        of_k = calls.spmm(ctx.handle, k.shape[-2], g, q, True)
        of_k = of_k.sum(0) if of_k.ndim > k.ndim else of_k
    return None, None, of_q, of_k


# Sparse × sparse at the nonzeros of a pattern: values of op(A)·op(B).


def _spgemm_at(
    handle: int, nnz: int, a: int, of_a: Tensor, transpose_a: bool, b: int, of_b: Tensor, transpose_b: bool
) -> Tensor:
    patterns = (of_handle(handle), of_handle(a), of_handle(b))
    return _spgemm.at(*patterns, of_a, transpose_a, of_b, transpose_b)


def _spgemm_at_fake(
    handle: int, nnz: int, a: int, of_a: Tensor, transpose_a: bool, b: int, of_b: Tensor, transpose_b: bool
) -> Tensor:
    return of_a.new_empty((nnz,))


def _spgemm_at_context(ctx: Any, inputs: Any, output: Tensor) -> None:
    c, _, a, of_a, transpose_a, b, of_b, transpose_b = inputs
    ctx.handles, ctx.transposes = (a, b, c), (transpose_a, transpose_b)
    ctx.patterns = [concrete_pattern(handle) for handle in ctx.handles]
    ctx.save_for_backward(of_a, of_b)


def _spgemm_at_backward(ctx: Any, g: Tensor) -> Any:
    of_a, of_b = ctx.saved_tensors
    (a, b, c), (ta, tb) = ctx.handles, ctx.transposes
    grad_a = grad_b = None
    if ctx.needs_input_grad[3]:
        # G·op(B)ᵀ, or its transpose.
        operands = (b, of_b, tb, c, g, True) if ta else (c, g, False, b, of_b, not tb)
        grad_a = calls.spgemm_at(a, of_a.shape[0], *operands)
    if ctx.needs_input_grad[6]:
        # op(A)ᵀ·G, or its transpose.
        operands = (c, g, True, a, of_a, ta) if tb else (a, of_a, not ta, c, g, False)
        grad_b = calls.spgemm_at(b, of_b.shape[0], *operands)
    return None, None, None, grad_a, None, None, grad_b, None


# The largest or smallest products of rows, and which nonzeros won: values nnz, x k × n.


def _spmm_extremum(
    handle: int,
    rows: int,
    nnz: int,
    values: Tensor | None,
    x: Tensor,
    transpose: bool,
    reduce: str,
) -> tuple[Tensor, Tensor]:
    return of_handle(handle).spmm_extremum(values, x, transpose, reduce)


def _spmm_extremum_fake(
    handle: int,
    rows: int,
    nnz: int,
    values: Tensor | None,
    x: Tensor,
    transpose: bool,
    reduce: str,
) -> tuple[Tensor, Tensor]:
    shape = (rows, x.shape[-1])
    return x.new_empty(shape), x.new_empty(shape, dtype=torch.int64)


def _spmm_extremum_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.handle, _, ctx.nnz, values, x, ctx.transpose, _ = inputs
    ctx.pattern = concrete_pattern(ctx.handle)
    ctx.save_for_backward(values, x, output[1])


def _spmm_extremum_backward(ctx: Any, g: Tensor, _: Any) -> Any:
    """An element of the result is one product; its gradient goes to the two factors."""
    values, x, winners = ctx.saved_tensors
    # Where nothing won, any position will do.
    g = g * (winners >= 0)
    winners = winners.clamp(min=0)
    of_values = of_x = None
    if ctx.nnz == 0:
        of_values = None if values is None else torch.zeros_like(values)
        return None, None, None, of_values, torch.zeros_like(x), None, None
    inner = calls.inner_indices(ctx.handle, ctx.nnz, x, ctx.transpose)[winners]
    if ctx.needs_input_grad[3]:
        products = (g * x.gather(0, inner)).flatten()
        of_values = torch.zeros_like(values).scatter_add(0, winners.flatten(), products)
    if ctx.needs_input_grad[4]:
        products = g if values is None else g * values[winners]
        of_x = torch.zeros_like(x).scatter_add(0, inner, products)
    return None, None, None, of_values, of_x, None, None


# For each nonzero the row of x that it is multiplied by.


def _inner_indices(handle: int, nnz: int, like: Tensor, transpose: bool) -> Tensor:
    # The caller may write to what an operator returns.
    return of_handle(handle).inner_indices(transpose).clone()


def _inner_indices_fake(handle: int, nnz: int, like: Tensor, transpose: bool) -> Tensor:
    return like.new_empty((nnz,), dtype=torch.int64)


# One over the number of nonzeros of each row, of each column for the transpose; 1 where there are none.


def _inverse_lengths(handle: int, rows: int, like: Tensor, transpose: bool) -> Tensor:
    pattern = of_handle(handle)

    def make() -> Tensor:
        counts = torch.bincount(pattern.col, minlength=rows) if transpose else pattern.crow.diff()
        return 1.0 / counts.clamp(min=1).to(torch.float64)

    inverse: Tensor = pattern.cached(("inverse lengths", transpose), make)
    # The caller may write to what an operator returns.
    return inverse.to(like.dtype, copy=True)


def _inverse_lengths_fake(handle: int, rows: int, like: Tensor, transpose: bool) -> Tensor:
    return like.new_empty((rows,))


def _constant_context(ctx: Any, inputs: Any, output: Tensor) -> None:
    """Nothing: the output depends on no tensor's elements."""


def _constant_backward(ctx: Any, g: Tensor) -> Any:
    return None, None, None, None


for _name, _kernel, _fake, _context, _backward in (
    ("spmm", _spmm, _spmm_fake, _spmm_context, _spmm_backward),
    ("sddmm", _sddmm, _sddmm_fake, _sddmm_context, _sddmm_backward),
    ("spgemm_at", _spgemm_at, _spgemm_at_fake, _spgemm_at_context, _spgemm_at_backward),
    (
        "spmm_extremum",
        _spmm_extremum,
        _spmm_extremum_fake,
        _spmm_extremum_context,
        _spmm_extremum_backward,
    ),
    (
        "inner_indices",
        _inner_indices,
        _inner_indices_fake,
        _constant_context,
        _constant_backward,
    ),
    (
        "inverse_lengths",
        _inverse_lengths,
        _inverse_lengths_fake,
        _constant_context,
        _constant_backward,
    ),
    *_attention_operators.OPERATORS,
    *_graph_attention.OPERATORS,
    *_graph_convolution.OPERATORS,
):
    for _key in ("CPU", "CUDA"):
        _library.impl(_name, _kernel, _key)
    torch.library.register_fake(f"gustav::{_name}", _fake, lib=_library)
    torch.library.register_autograd(
        f"gustav::{_name}", _backward, setup_context=_context, lib=_library
    )
    _calls.add(_name, _kernel, _context, _backward, is_constant=_context is _constant_context)
