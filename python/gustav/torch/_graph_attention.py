"""The operator of graph attention layers: attention whose scores are sums of a number of the row and one of the column.

A score tᵢ + sⱼ is the inner product of (tᵢ, 1) and (1, sⱼ), so that Q and K are one dense product of the features with a
matrix that holds the layer's two vectors, and the rest is attention. As one operator it is one step of autograd, where
a step of the host takes longer than most of the kernels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._attention_operators import gradients_of, product_of
from ._calls import calls
from ._pattern import Pattern, kept, of_handle

SCHEMAS = (
    "graph_attention(SymInt handle, SymInt nnz, Tensor x, Tensor att_src, Tensor att_dst, float negative_slope) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    "graph_attention_gradients(SymInt handle, SymInt nnz, Tensor x, Tensor att_src, Tensor att_dst, "
    "float negative_slope, Tensor o, Tensor lse, Tensor qk, Tensor maps, Tensor g) -> (Tensor, Tensor, Tensor)",
)


def width_of(x: Tensor) -> int:
    """Columns of Q and K of a head: zeros fill up what is loaded at once, 16 bytes."""
    return max(2, 16 // x.element_size())


def operands(of_sources: Tensor, of_targets: Tensor, att_src: Tensor, att_dst: Tensor) -> tuple[Tensor, ...]:
    """Q and K by functions that have gradients of any order; features and vectors with heads."""
    heads, features = att_src.shape
    width = width_of(of_sources)
    vectors = torch.stack((att_dst, att_src), -1)
    units = torch.eye(2, width, dtype=vectors.dtype, device=vectors.device)
    # heads × features × side × heads × width, zero where the heads are different ones.
    maps = torch.diag_embed((vectors.unsqueeze(-1) * units).permute(1, 2, 3, 0), dim1=0, dim2=3)
    maps = maps.reshape(heads * features, 2, heads * width)
    ones = units.flip(0).unsqueeze(1).expand(2, heads, width).reshape(2, -1)
    return tuple(
        torch.addmm(ones[side], t.flatten(1), maps[:, side]).view(-1, heads, width)
        for side, t in enumerate((of_targets, of_sources))
    )


# x rows × heads × features, the vectors heads × features; o like x, and Q beside K, rows × (2 · heads · width). The host
# takes longer for calls of PyTorch than a GPU for most kernels here, so there are as few as can be.


def _constants(pattern: Pattern, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What is added to the product: a one in Q's second column and in K's first; and where the matrix has the vectors,
    heads × features: that of targets in Q's first column, that of sources in K's second."""
    _, heads, features = x.shape
    width = width_of(x)

    def make() -> tuple[Tensor, Tensor, Tensor]:
        side, head, feature = torch.meshgrid(
            *(torch.arange(n, device=x.device) for n in (2, heads, features)), indexing="ij"
        )
        row, column = head * features + feature, (side * heads + head) * width + side
        units = torch.eye(2, width, dtype=x.dtype, device=x.device).flip(0)
        of_dst, of_src = row * 2 * heads * width + column
        return units.unsqueeze(1).expand(2, heads, width).reshape(-1), of_dst, of_src

    constants: tuple[Tensor, Tensor, Tensor] = pattern.keep(("graph attention", heads, features, x.dtype), make)
    return constants


def _sides(qk: Tensor, heads: int) -> tuple[Tensor, Tensor]:
    rows, both = qk.shape
    shape = rows, heads, both // heads // 2
    return qk[:, : both // 2].view(shape), qk[:, both // 2 :].view(shape)


def _graph_attention(
    handle: int, nnz: int, x: Tensor, att_src: Tensor, att_dst: Tensor, negative_slope: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    pattern = of_handle(handle)
    _, heads, features = x.shape
    ones, of_dst, of_src = _constants(pattern, x)
    maps = x.new_zeros((heads * features, len(ones))).put_(of_dst, att_dst).put_(of_src, att_src)
    qk = torch.addmm(ones, x.flatten(1), maps)
    o, lse = product_of(pattern, *_sides(qk, heads), x, None, 1.0, negative_slope)
    return o, lse, qk, maps


def _graph_attention_fake(
    handle: int, nnz: int, x: Tensor, att_src: Tensor, att_dst: Tensor, negative_slope: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rows, heads, features = x.shape
    sums = torch.float64 if x.dtype == torch.float64 else torch.float32
    both = 2 * heads * width_of(x)
    maps = x.new_empty((heads * features, both))
    return x.new_empty(x.shape), x.new_empty((heads, rows), dtype=sums), x.new_empty((rows, both)), maps


def _graph_attention_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.handle, ctx.nnz, *tensors, ctx.negative_slope = inputs
    ctx.kept = kept(ctx.handle)
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
    maps: Tensor,
    g: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    pattern, heads = of_handle(handle), x.shape[1]
    of_x, (q, k) = x.new_empty(x.shape), _sides(qk, heads)
    of_q, of_k = x.new_empty((2, *q.shape)).unbind()
    gradients_of(pattern, (q, k, x), None, (o, lse, g), (of_q, of_k, of_x), None, 1.0, negative_slope)
    of_qk = torch.cat((of_q.flatten(1), of_k.flatten(1)), 1)
    of_x.flatten(1).addmm_(of_qk, maps.T)
    _, of_dst, of_src = _constants(pattern, x)
    of_maps = x.flatten(1).T @ of_qk
    return of_x, of_maps.take(of_src), of_maps.take(of_dst)


def _gradients_fake(
    handle: int,
    nnz: int,
    x: Tensor,
    att_src: Tensor,
    att_dst: Tensor,
    negative_slope: float,
    o: Tensor,
    lse: Tensor,
    qk: Tensor,
    maps: Tensor,
    g: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty(att_src.shape), x.new_empty(att_dst.shape)


def _gradients_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.handle, ctx.nnz, x, att_src, att_dst, ctx.negative_slope, *_, g = inputs
    ctx.kept = kept(ctx.handle)
    ctx.save_for_backward(x, att_src, att_dst, g)


def _gradients_backward(ctx: Any, *h: Tensor) -> Any:
    """Gradients of gradients: those of the layer's functions. What the product left counts as a function of x."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        # Tensors of their own: g may be a function of x, whose gradient is no part of this one.
        x, att_src, att_dst, g = (
            t.view_as(t) if again and t.requires_grad else t.detach().requires_grad_() for t in ctx.saved_tensors
        )
        q, k = operands(x, x, att_src, att_dst)
        o, _ = calls.attention(ctx.handle, ctx.nnz, q, k, x, None, 1.0, ctx.negative_slope)
        inputs = (x, att_src, att_dst)
        gradients = torch.autograd.grad(o, inputs, g, create_graph=True)
        of_x, of_src, of_dst, of_g = torch.autograd.grad(gradients, (*inputs, g), h, create_graph=again)
    return None, None, of_x, of_src, of_dst, None, None, None, None, None, of_g


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
