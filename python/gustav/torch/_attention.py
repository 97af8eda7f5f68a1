"""Softmax and attention over a pattern."""

from __future__ import annotations

from torch import Tensor

from ._pattern import Pattern


def softmax(pattern: Pattern, values: Tensor) -> Tensor:
    """The softmax of values over each row of a pattern; not implemented yet.

    Raises
    ------
    NotImplementedError
        Always.
    """
    raise NotImplementedError(
        "softmax over a pattern is not implemented; nearest that works: values.exp() divided by "
        "gustav.torch.spmm(P, values.exp(), ones) of its row"
    )


def attention(
    pattern: Pattern,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float | None = None,
    bias: Tensor | None = None,
) -> Tensor:
    """Attention of the queries to the keys at the nonzeros of a pattern; not implemented yet.

    Raises
    ------
    NotImplementedError
        Always.
    """
    raise NotImplementedError(
        "attention over a pattern is not implemented; nearest that works: gustav.torch.sddmm for the "
        "scores, and gustav.torch.spmm with what they become"
    )
