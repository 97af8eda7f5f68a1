"""Softmax and attention over a pattern."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ._attention_operators import heads_first
from ._calls import calls
from ._functions import _expect, _expect_on, _one_type, number, sddmm, spmm
from ._layouts import expect_tensor
from ._pattern import Pattern

# Columns of a head that the fused product holds.
WIDEST = 256


def softmax(pattern: Pattern, values: Tensor) -> Tensor:
    """The softmax of values over each row of a pattern, with gradients.

    Parameters
    ----------
    pattern : Pattern
        Where the values are.
    values : tensor, nnz or batch × nnz
        Scores. A row of −∞ alone has weights of zero; NaN or +∞ makes a row NaN.

    Returns
    -------
    tensor
        Of the shape of `values`; the sum of every row that has entries is 1.

    Examples
    --------
    >>> import torch, gustav.torch as gt
    >>> P = gt.Pattern(torch.tensor([0, 2, 3]), torch.tensor([0, 2, 1]), (2, 3))
    >>> gt.softmax(P, torch.tensor([0.0, 0.0, 7.0]))
    tensor([0.5000, 0.5000, 1.0000])
    """
    _expect_on(pattern, "values", values)
    _expect("values", values, pattern.nnz, -1)
    if not values.is_floating_point():
        raise TypeError(f"values: {values.dtype} is not taken; floating-point types are")
    weights: Tensor = calls.softmax(pattern._handle, values)
    return weights


def attention(
    pattern: Pattern,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float | None = None,
    bias: Tensor | None = None,
    *,
    negative_slope: float | None = None,
) -> Tensor:
    """``softmax(leaky_relu(scale * q @ k.T + bias)) @ v`` over the nonzeros of a pattern, with gradients.

    Parameters
    ----------
    pattern : Pattern, m × n
        Which keys a query attends to.
    q, k, v : tensor, m × d, n × d and n × e, or with heads m × heads × d, n × heads × d, n × heads × e
        Queries, keys and values.
    scale : float, optional
        1/√d where not given.
    bias : tensor, nnz or nnz × heads, optional
        Added to the scores, with gradients; one of each head or of all.
    negative_slope : float, optional
        Of the leaky ReLU, without which scores go to the softmax as they are. Graph attention networks have one;
        :func:`gustav.torch.pyg.graph_attention` is their layer.

    Returns
    -------
    tensor, m × e or m × heads × e
        Rows without nonzeros, or with scores of −∞ alone, are zero. A slope that is not positive makes scores of −∞
        NaN or +∞, and with them the row NaN.

    Notes
    -----
    One pass over the rows of the pattern, which stores one number for every row and head and nothing of the size
    of the nonzeros: gradients make the weights again. The plan of the gradients holds the transposed pattern and,
    on a GPU, 8 bytes for every nonzero and head (16 in f64); heads go in groups of at most 256 MiB, one head at
    least. Each number of heads, width and type has a plan of its own. Gradients of gradients, and rows of q or v of
    more than 256 columns for each head, take :func:`sddmm`, :func:`softmax` and :func:`spmm`, one after the other,
    which store scores and weights of all nonzeros and heads.

    Examples
    --------
    >>> import torch, gustav.torch as gt
    >>> P = gt.Pattern(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 1]), (2, 2))
    >>> q, k = torch.zeros(2, 1), torch.zeros(2, 1)
    >>> gt.attention(P, q, k, torch.tensor([[1.0, 0.0], [3.0, 8.0]]))
    tensor([[2., 4.],
            [3., 8.]])

    Four heads, as a linear layer leaves them, and a bias for each:

    >>> qkv = torch.zeros(2, 3, 4, 8)
    >>> gt.attention(P, *qkv.unbind(1), bias=torch.zeros(3, 4)).shape
    torch.Size([2, 4, 8])
    """
    scale, negative_slope = number("scale", scale), number("negative_slope", negative_slope)
    _expect_heads(q, k, v)
    _expect_on(pattern, "q", q)
    if bias is None:
        q, k, v = _one_type(("q", "k", "v"), q, k, v)
    else:
        q, k, v, bias = _one_type(("q", "k", "v", "bias"), q, k, v, bias)
        _expect_bias(pattern, q, bias)
    if not q.is_floating_point():
        raise TypeError(f"q: {q.dtype} is not taken; floating-point types are")
    _expect("q", q, pattern.shape[0], 0)
    _expect("k", k, pattern.shape[1], 0)
    _expect("v", v, pattern.shape[1], 0)
    _expect("k", k, q.shape[-1], -1)
    if q.shape[-1] == 0:
        raise ValueError("q: expected a column at least, found none")
    has_heads = q.ndim == 2 or q.shape[1] > 0
    if has_heads and max(q.shape[-1], v.shape[-1]) <= WIDEST:
        o: Tensor = calls.attention(pattern._handle, pattern.nnz, q, k, v, bias, scale, negative_slope)[0]
        return o
    return _composed(pattern, q, k, v, scale, bias, negative_slope)


def _composed(
    pattern: Pattern,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float | None,
    bias: Tensor | None,
    negative_slope: float | None,
) -> Tensor:
    """The same by three products; heads are a batch of them."""
    with_heads = q.ndim == 3
    if with_heads:
        q, k, v = (t.transpose(0, 1) for t in (q, k, v))
    scores = sddmm(pattern, q, k) * (1.0 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if bias is not None:
        scores = scores + heads_first(bias)
    if negative_slope is not None:
        scores = torch.nn.functional.leaky_relu(scores, negative_slope)
    o = spmm(pattern, softmax(pattern, scores), v)
    return o.transpose(0, 1) if with_heads else o


def _expect_heads(q: Tensor, k: Tensor, v: Tensor) -> None:
    for name, t in (("q", q), ("k", k), ("v", v)):
        expect_tensor(name, t)
        if t.ndim not in (2, 3) or t.ndim != q.ndim:
            raise ValueError(
                f"{name}: expected two dimensions, or three with heads, as all of q, k and v; found the "
                f"shape {tuple(t.shape)}"
            )
        if t.ndim == 3:
            _expect(name, t, q.shape[1], -2)


def _expect_bias(pattern: Pattern, q: Tensor, bias: Tensor) -> None:
    _expect("bias", bias, pattern.nnz, 0)
    if bias.ndim > 1 and q.ndim != 3:
        raise ValueError(f"bias: expected one dimension, as there are no heads, found {bias.ndim}")
    if bias.ndim > 2:
        raise ValueError(f"bias: expected nonzeros, or nonzeros x heads, found the shape {tuple(bias.shape)}")
    if bias.ndim == 2:
        _expect("bias", bias, q.shape[1], 1)
