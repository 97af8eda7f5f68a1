"""The operator of graph attention layers: attention whose scores are sums of a number of the row and one of the column.

A score tᵢ + sⱼ is the inner product of (tᵢ, 1) and (1, sⱼ). A head's Q and K, side by side, are one product of its
features with its two vectors, and the rest is attention:

    column    0    1    2 ..    width    width + 1    width + 2 ..
              t    1    0         1          s            0

As one operator the layer is one step of autograd. There the host takes longer for a call of PyTorch than a GPU for most
of these kernels, so that calls are few.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._attention_operators import gradients_of, product_of, second_gradients, type_of_sums
from ._calls import calls, in_own_type
from ._pattern import Pattern, concrete_pattern, of_handle

SCHEMAS = (
    "graph_attention(SymInt handle, SymInt nnz, Tensor x, Tensor att_src, Tensor att_dst, float negative_slope) "
    "-> (Tensor, Tensor, Tensor)",
    "graph_attention_gradients(SymInt handle, SymInt nnz, Tensor x, Tensor att_src, Tensor att_dst, "
    "float negative_slope, Tensor o, Tensor lse, Tensor qk, Tensor g) -> (Tensor, Tensor, Tensor)",
)


def _width(x: Tensor) -> int:
    """Columns of Q and of K of a head: zeros fill up what is loaded at once, 16 bytes."""
    return max(2, 16 // x.element_size())


def operands(of_sources: Tensor, of_targets: Tensor, att_src: Tensor, att_dst: Tensor) -> tuple[Tensor, Tensor]:
    """Q and K by functions that have gradients of any order; features rows × heads × features, vectors heads × features."""
    width = _width(of_sources)

    def side(x: Tensor, vector: Tensor, place: int) -> Tensor:
        numbers = torch.bmm(x.transpose(0, 1), vector.unsqueeze(-1)).transpose(0, 1)
        ones = torch.ones_like(numbers)
        two = (numbers, ones) if place == 0 else (ones, numbers)
        return torch.nn.functional.pad(torch.cat(two, -1), (0, width - 2))

    return side(of_targets, att_dst, 0), side(of_sources, att_src, 1)


# x and o rows × heads × features, the vectors heads × features or 1 × heads × features, Q and K heads × rows ×
# (2 · width).


def _sides(qk: Tensor) -> tuple[Tensor, Tensor]:
    """Q and K, rows × heads × width."""
    q, k = qk.transpose(0, 1).chunk(2, 2)
    return q, k


def _constants(pattern: Pattern, x: Tensor) -> tuple[Tensor, Tensor]:
    """What is added to Q and K of a head, and zeros like the vectors."""
    width = _width(x)

    def make() -> tuple[Tensor, Tensor]:
        places = [column in (1, width) for column in range(2 * width)]
        return torch.tensor(places, dtype=x.dtype, device=x.device), x.new_zeros(x.shape[1:])

    constants: tuple[Tensor, Tensor] = pattern.cached(("graph attention", x.dtype, x.shape[1:]), make)
    return constants


def _graph_attention(
    handle: int, nnz: int, x: Tensor, att_src: Tensor, att_dst: Tensor, negative_slope: float
) -> tuple[Tensor, Tensor, Tensor]:
    pattern, width = of_handle(handle), _width(x)
    ones, zeros = _constants(pattern, x)
    columns = [zeros] * (2 * width)
    columns[0], columns[width + 1] = att_dst.view(x.shape[1:]), att_src.view(x.shape[1:])
    with in_own_type(x):
        qk = torch.baddbmm(ones, x.transpose(0, 1), torch.stack(columns, 2))
    q, k = _sides(qk)
    o, lse = product_of(pattern, q, k, x, None, 1.0, negative_slope)
    return o, lse, qk


def _graph_attention_fake(handle: int, nnz: int, x: Tensor, *others: Any) -> tuple[Tensor, Tensor, Tensor]:
    rows, heads, _ = x.shape
    lse = x.new_empty((heads, rows), dtype=type_of_sums(x.dtype))
    return x.new_empty(x.shape), lse, x.new_empty((heads, rows, 2 * _width(x)))


def _graph_attention_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.handle, ctx.nnz, *tensors, ctx.negative_slope = inputs
    ctx.pattern = concrete_pattern(ctx.handle)
    # Of the others nobody takes gradients: zeros for them would be made in vain.
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*tensors, *output)


def _graph_attention_backward(ctx: Any, g: Tensor | None, *_: Any) -> Any:
    if g is None:
        return (None,) * 6
    x, att_src, att_dst, *output = ctx.saved_tensors
    gradients = calls.graph_attention_gradients(
        ctx.handle, ctx.nnz, x, att_src, att_dst, ctx.negative_slope, *output, g
    )
    return None, None, *gradients, None


def _gradients(
    handle: int,
    nnz: int,
    x: Tensor,
    att_src: Tensor,
    att_dst: Tensor,
    negative_slope: float,
    o: Tensor,
    lse: Tensor,
    qk: Tensor,
    g: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    rows, heads, features = x.shape
    width = _width(x)
    of_x, of_qk = x.new_empty(x.shape), x.new_empty((2, heads, rows, width))
    (q, k), of_q_and_k = _sides(qk), of_qk.transpose(1, 2).unbind()
    gradients_of(
        of_handle(handle), (q, k, x), None, (o, lse, g), (*of_q_and_k, of_x), None, 1.0, negative_slope
    )
    # Those of t and of s, side × heads × rows: columns 0 of Q and 1 of K.
    strides = (heads * rows * width + 1, rows * width, width)
    of_numbers = of_qk.as_strided((2, heads, rows), strides).contiguous()
    with in_own_type(x):
        vectors = torch.stack((att_dst, att_src), -2).view(heads, 2, features)
        of_x.transpose(0, 1).baddbmm_(of_numbers.permute(1, 2, 0), vectors)
        # Of all pairs of heads, of which those of one head are taken: a sum over all rows is fast as one product.
        of_pairs = of_numbers.view(2 * heads, rows) @ x.flatten(1)
    of_dst, of_src = of_pairs.view(2, heads, heads, features).diagonal(0, 1, 2).unbind()
    return of_x, _like(att_src, of_src.T), _like(att_dst, of_dst.T)


def _like(att: Tensor, of_att: Tensor) -> Tensor:
    """A gradient in the shape of its vectors, heads × features or 1 × heads × features."""
    return of_att.contiguous().view(att.shape)


def _gradients_fake(
    handle: int, nnz: int, x: Tensor, att_src: Tensor, att_dst: Tensor, *_: Any
) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty(att_src.shape), x.new_empty(att_dst.shape)


def _gradients_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.handle, ctx.nnz, x, att_src, att_dst, ctx.negative_slope, *_, g = inputs
    ctx.pattern = concrete_pattern(ctx.handle)
    ctx.save_for_backward(x, att_src, att_dst, g)


def _gradients_backward(ctx: Any, *h: Tensor) -> Any:
    """Gradients of gradients, by unfused products. What the product left counts as a function of x.

    With t = ⟨att_dst, x⟩ and s = ⟨att_src, x⟩, and u, v and w the gradients with respect to t, to s and to x as V, those
    of the layer are w + u·att_dst + v·att_src, Σ v·x and Σ u·x.
    """
    x, att_src, att_dst, g = ctx.saved_tensors
    of_vectors = att_src.shape, att_dst.shape
    att_src, att_dst = att_src.view(x.shape[1:]), att_dst.view(x.shape[1:])
    h_x, h_src, h_dst = h[0], h[1].reshape(x.shape[1:]), h[2].reshape(x.shape[1:])
    with in_own_type(x):
        q, k = operands(x, x, att_src, att_dst)
    pattern, scores = (ctx.handle, ctx.nnz), (1.0, ctx.negative_slope)
    o, lse = calls.attention(*pattern, q, k, x, None, *scores)
    of_q, of_k, *_ = calls.attention_gradients(*pattern, q, k, x, None, o, lse, g, *scores, False)
    u, v = of_q[:, :, :1], of_k[:, :, 1:2]
    h_u = (h_x * att_dst + h_dst * x).sum(-1, keepdim=True)
    h_v = (h_x * att_src + h_src * x).sum(-1, keepdim=True)
    width = _width(x)
    h_q = torch.nn.functional.pad(h_u, (0, width - 1))
    h_k = torch.nn.functional.pad(h_v, (1, width - 2))
    of_q, of_k, of_w, _, of_g = second_gradients(pattern, (q, k, x, g), None, (h_q, h_k, h_x), None, *scores)
    of_t, of_s = of_q[:, :, :1], of_k[:, :, 1:2]
    of_x = of_w + of_t * att_dst + of_s * att_src + u * h_dst + v * h_src
    of_src, of_dst = (of_s * x + v * h_x).sum(0), (of_t * x + u * h_x).sum(0)
    of_src, of_dst = of_src.view(of_vectors[0]), of_dst.view(of_vectors[1])
    return None, None, of_x, of_src, of_dst, None, None, None, None, of_g


#: Name, kernel, shapes, what is saved, and gradients.
OPERATORS = (
    (
        "graph_attention",
        _graph_attention,
        _graph_attention_fake,
        _graph_attention_context,
        _graph_attention_backward,
    ),
    (
        "graph_attention_gradients",
        _gradients,
        _gradients_fake,
        _gradients_context,
        _gradients_backward,
    ),
)
