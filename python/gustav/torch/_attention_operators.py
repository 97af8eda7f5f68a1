"""The operators of softmax and attention: kernels, shapes, and gradients."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .. import _families, _gustav
from ._calls import calls
from ._layouts import exported, for_module, of_nonzeros, packed, rows
from ._pattern import Pattern, concrete_pattern, of_handle

SCHEMAS = (
    "softmax(SymInt handle, Tensor scores) -> Tensor",
    "softmax_gradient(SymInt handle, Tensor weights, Tensor g) -> Tensor",
    "attention(SymInt handle, SymInt nnz, Tensor q, Tensor k, Tensor v, Tensor? bias, float? scale, "
    "float? negative_slope) -> (Tensor, Tensor)",
    "attention_gradients(SymInt handle, SymInt nnz, Tensor q, Tensor k, Tensor v, Tensor? bias, Tensor o, "
    "Tensor lse, Tensor g, float? scale, float? negative_slope, bool with_bias) -> (Tensor, Tensor, Tensor, Tensor)",
)


# Softmax over rows: scores nnz or heads × nnz.


def _softmax(handle: int, scores: Tensor) -> Tensor:
    return of_handle(handle).softmax(scores)


def _softmax_fake(handle: int, scores: Tensor) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


def _softmax_context(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.handle = inputs[0]
    ctx.pattern = concrete_pattern(ctx.handle)
    ctx.save_for_backward(output)


def _softmax_backward(ctx: Any, g: Tensor) -> Any:
    (weights,) = ctx.saved_tensors
    return None, calls.softmax_gradient(ctx.handle, weights, g)


def _softmax_gradient(handle: int, weights: Tensor, g: Tensor) -> Tensor:
    return of_handle(handle).softmax_gradient(weights, g)


def _softmax_gradient_fake(handle: int, weights: Tensor, g: Tensor) -> Tensor:
    return torch.empty_like(weights, memory_format=torch.contiguous_format)


def _softmax_gradient_context(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.handle, weights, g = inputs
    ctx.pattern = concrete_pattern(ctx.handle)
    ctx.save_for_backward(weights, g)


def _softmax_gradient_backward(ctx: Any, h: Tensor) -> Any:
    weights, g = ctx.saved_tensors
    return None, *_of_softmax_gradient(ctx.handle, weights, g, h)


def _of_softmax_gradient(handle: int, weights: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
    """Of w·(g − Σ w·g), the sum over the row: h·(g − Σ w·g) − g·Σ w·h for w, w·(h − Σ w·h) for g."""
    row = calls.inner_indices(handle, weights.shape[-1], weights, True)

    def summed(t: Tensor) -> Tensor:
        # At the first nonzero of the row, as the operator is not told how many rows there are.
        starts = torch.searchsorted(row, row)
        return torch.zeros_like(t).index_add(-1, starts, t).index_select(-1, starts)

    of_weights = h * (g - summed(weights * g)) - g * summed(weights * h)
    return of_weights, calls.softmax_gradient(handle, weights, h)


# Attention over rows, and the logarithms of the sums of its exponentials: q m × d, k n × d, v n × e, or with heads
# between; bias nnz or nnz × heads.


def _plan(pattern: Pattern, q: Tensor, v: Tensor) -> Any:
    heads = q.shape[1] if q.ndim == 3 else 1
    widths, dtype = (q.shape[-1], v.shape[-1]), q.dtype

    def make() -> Any:
        return _gustav.AttentionPlan(pattern._native, heads, *widths, _families.dtype_name(dtype), pattern.place())

    return pattern.plan(("attention", heads, widths, dtype, pattern.threads()), make)


def _attention(
    handle: int,
    nnz: int,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    scale: float | None,
    negative_slope: float | None,
) -> tuple[Tensor, Tensor]:
    return product_of(of_handle(handle), q, k, v, bias, scale, negative_slope)


def product_of(
    pattern: Pattern,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    scale: float | None,
    negative_slope: float | None,
) -> tuple[Tensor, Tensor]:
    """O and the logarithms, without gradients."""
    o, lse = _results(q, v)
    matrices = rows(q), rows(k), rows(v), for_module(o), for_module(lse)
    _plan(pattern, q, v).execute_into(*matrices, scale, negative_slope, of_nonzeros(bias), pattern.place())
    return o, lse


def _attention_fake(handle: int, nnz: int, q: Tensor, k: Tensor, v: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return _results(q, v)


def _results(q: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Tensors for O and the logarithms."""
    heads = q.shape[1] if q.ndim == 3 else 1
    lse = q.new_empty((heads, q.shape[0]), dtype=type_of_sums(q.dtype))
    return q.new_empty((*q.shape[:-1], v.shape[-1])), lse


def type_of_sums(dtype: torch.dtype) -> torch.dtype:
    """The type of the logarithms, in which operands of a type are summed."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def _attention_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.handle, ctx.nnz, q, k, v, bias, *ctx.scores = inputs
    ctx.pattern = concrete_pattern(ctx.handle)
    # Of the logarithms nobody takes gradients: zeros for them would be made in vain.
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(q, k, v, bias, *output)


def _attention_backward(ctx: Any, g: Tensor | None, _: Any) -> Any:
    if g is None:
        return (None,) * 8
    saved = ctx.saved_tensors
    with_bias = bool(ctx.needs_input_grad[5])
    of_q, of_k, of_v, of_bias = calls.attention_gradients(
        ctx.handle, ctx.nnz, *saved, g, *ctx.scores, with_bias
    )
    return None, None, of_q, of_k, of_v, of_bias if with_bias else None, None, None


def _attention_gradients(
    handle: int,
    nnz: int,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    o: Tensor,
    lse: Tensor,
    g: Tensor,
    scale: float | None,
    negative_slope: float | None,
    with_bias: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    results = _gradients(q, k, v, bias, with_bias)
    of_bias = results[3]
    heads = q.shape[1] if q.ndim == 3 else 1
    # On a GPU sums over heads would be in 16 bits.
    by_head = with_bias and bias is not None and bias.ndim == 1 and heads > 1 and bias.itemsize == 2
    if by_head:
        of_bias = q.new_empty((heads, nnz)).T
    gradients_of(
        of_handle(handle),
        (q, k, v),
        bias,
        (o, lse, g),
        results[:3],
        of_bias if with_bias else None,
        scale,
        negative_slope,
    )
    if by_head:
        results[3].copy_(of_bias.sum(1))
    return results


def gradients_of(
    pattern: Pattern,
    inputs: tuple[Tensor, Tensor, Tensor],
    bias: Tensor | None,
    saved: tuple[Tensor, Tensor, Tensor],
    results: tuple[Tensor, ...],
    of_bias: Tensor | None,
    scale: float | None,
    negative_slope: float | None,
) -> None:
    """Writes the gradients of q, k and v to `results`, new tensors of packed rows, given o, the logarithms and the
    gradient of o."""
    q, _, v = inputs
    o, lse, g = saved
    _plan(pattern, q, v).gradients_into(
        *map(rows, (*inputs, o)),
        packed(lse),
        rows(g),
        *map(for_module, results),
        scale,
        negative_slope,
        of_nonzeros(bias),
        of_nonzeros(of_bias),
        pattern.place(),
    )


def _attention_gradients_fake(
    handle: int, nnz: int, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, *others: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return _gradients(q, k, v, bias, with_bias=others[-1])


def _gradients(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, with_bias: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tensors for the gradients."""
    of_bias = q.new_empty(bias.shape if bias is not None and with_bias else (0,))
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape), of_bias


def _attention_gradients_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.handle, ctx.nnz, q, k, v, bias, _, _, g, ctx.scale, ctx.negative_slope, ctx.with_bias = inputs
    ctx.pattern = concrete_pattern(ctx.handle)
    ctx.save_for_backward(q, k, v, bias, g)


def heads_first(bias: Tensor) -> Tensor:
    """Values of nonzeros × heads as heads × nonzeros, and back; values of nonzeros alone as they are."""
    return bias.T if bias.ndim == 2 else bias


def _attention_gradients_backward(ctx: Any, h_q: Tensor, h_k: Tensor, h_v: Tensor, h_bias: Tensor) -> Any:
    q, k, v, bias, g = ctx.saved_tensors
    of_q, of_k, of_v, of_bias, of_g = second_gradients(
        (ctx.handle, ctx.nnz),
        (q, k, v, g),
        bias,
        (h_q, h_k, h_v),
        h_bias if ctx.with_bias else None,
        ctx.scale,
        ctx.negative_slope,
    )
    return None, None, of_q, of_k, of_v, of_bias, None, None, of_g, None, None, None


def second_gradients(
    pattern: tuple[int, int],
    inputs: tuple[Tensor, Tensor, Tensor, Tensor],
    bias: Tensor | None,
    h: tuple[Tensor, Tensor, Tensor],
    h_bias: Tensor | None,
    scale: float | None,
    negative_slope: float | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor]:
    """Gradients of gradients with respect to q, k, v, the bias and g, by the unfused products.

    `inputs` are q, k, v and g, `h` gradients with respect to the gradients of q, k and v.

    With weights w of the scores, p the gradient with respect to w, and l the derivative of the leaky ReLU, that with
    respect to what the scores are made of is s = l·w·(p − Σ w·p), and the gradients are c·s·k, c·sᵀ·q, wᵀ·g and s. O
    and the logarithms are functions of the other inputs here, and have no gradients of their own.
    """
    (handle, nnz), (q, k, v, g), (h_q, h_k, h_v) = pattern, inputs, h
    c = 1.0 / math.sqrt(q.shape[-1]) if scale is None else scale
    heads = q.ndim == 3
    if heads:
        # Heads are a batch, which leads.
        q, k, v, g, h_q, h_k, h_v = (t.transpose(0, 1) for t in (q, k, v, g, h_q, h_k, h_v))
    rows, columns = q.shape[-2], k.shape[-2]

    def sampled(x: Tensor, y: Tensor) -> Any:
        return calls.sddmm(handle, nnz, x, y)

    def times(values: Tensor, x: Tensor) -> Any:
        return calls.spmm(handle, rows, values, x, False)

    def transposed_times(values: Tensor, x: Tensor) -> Any:
        return calls.spmm(handle, columns, values, x, True)

    scores = c * sampled(q, k)
    of_s = c * (sampled(h_q, k) + sampled(q, h_k))
    if bias is not None:
        scores = scores + heads_first(bias)
    if h_bias is not None:
        of_s = of_s + heads_first(h_bias)
    leak = None
    if negative_slope is not None:
        leak = torch.full_like(scores, negative_slope).masked_fill(scores > 0, 1.0)

    def leaked(t: Tensor) -> Tensor:
        return t if leak is None else leak * t

    w, p = calls.softmax(handle, leaked(scores)), sampled(g, v)
    s = leaked(calls.softmax_gradient(handle, w, p))
    of_w, of_p = _of_softmax_gradient(handle, w, p, leaked(of_s))
    of_scores = leaked(calls.softmax_gradient(handle, w, of_w + sampled(g, h_v)))
    of_q = c * (times(of_scores, k) + times(s, h_k))
    of_k = c * (transposed_times(of_scores, q) + transposed_times(s, h_q))
    of_v = transposed_times(of_p, g)
    of_g = times(of_p, v) + times(w, h_v)
    of_bias = None
    if bias is not None:
        of_bias = of_scores.sum(0) if of_scores.ndim > bias.ndim else heads_first(of_scores)
    if heads:
        of_q, of_k, of_v, of_g = (t.transpose(0, 1) for t in (of_q, of_k, of_v, of_g))
    return of_q, of_k, of_v, of_bias, of_g


#: Name, kernel, shapes, what is saved, and gradients.
OPERATORS = (
    ("softmax", _softmax, _softmax_fake, _softmax_context, _softmax_backward),
    (
        "softmax_gradient",
        _softmax_gradient,
        _softmax_gradient_fake,
        _softmax_gradient_context,
        _softmax_gradient_backward,
    ),
    ("attention", _attention, _attention_fake, _attention_context, _attention_backward),
    (
        "attention_gradients",
        _attention_gradients,
        _attention_gradients_fake,
        _attention_gradients_context,
        _attention_gradients_backward,
    ),
)
