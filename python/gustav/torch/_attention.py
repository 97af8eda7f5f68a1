"""Softmax and attention over a pattern."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ._functions import _cast, _expect, _expect_on, sddmm, spmm
from ._pattern import Pattern

_ops: Any = torch.ops.gustav


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
    (values,) = _cast(values)
    _expect("values", values, pattern.nnz, -1)
    if not values.is_floating_point():
        raise TypeError(f"values: {values.dtype} is not taken; floating-point types are")
    weights: Tensor = _ops.softmax(pattern._handle, values)
    return weights


def attention(
    pattern: Pattern,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """``softmax(scale * q @ k.T + bias) @ v`` over the nonzeros of a pattern, with gradients.

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

    Returns
    -------
    tensor, m × e or m × heads × e
        Rows without nonzeros are zero.

    Notes
    -----
    The scores and weights of all nonzeros are stored, one for each head.

    Examples
    --------
    >>> import torch, gustav.torch as gt
    >>> P = gt.Pattern(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 1]), (2, 2))
    >>> q, k = torch.zeros(2, 1), torch.zeros(2, 1)
    >>> gt.attention(P, q, k, torch.tensor([[1.0, 0.0], [3.0, 8.0]]))
    tensor([[2., 4.],
            [3., 8.]])
    """
    for name, t in (("q", q), ("k", k), ("v", v)):
        if t.ndim not in (2, 3) or t.ndim != q.ndim:
            raise ValueError(
                f"{name}: expected two dimensions, or three with heads, as all of q, k and v; found the "
                f"shape {tuple(t.shape)}"
            )
    if q.ndim == 3:
        for name, t in (("k", k), ("v", v)):
            _expect(name, t, q.shape[1], -2)
        q, k, v = (t.transpose(0, 1) for t in (q, k, v))
    if bias is not None:
        _expect("bias", bias, pattern.nnz, 0)
        if bias.ndim == 2:
            if q.ndim != 3:
                raise ValueError("bias: expected one dimension, as there are no heads, found two")
            _expect("bias", bias, q.shape[0], 1)
            bias = bias.transpose(0, 1)
    if q.shape[-1] == 0:
        raise ValueError("q: expected a column at least, found none")
    scores = sddmm(pattern, q, k) * (1.0 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if bias is not None:
        scores = scores + bias
    o = spmm(pattern, softmax(pattern, scores), v)
    return o.transpose(0, 1) if o.ndim == 3 else o
