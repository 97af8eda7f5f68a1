"""The operator of graph convolution layers: a product with a pattern and a linear map, one after the other.

A·(X·Wᵀ) and (A·X)·Wᵀ are the same but for rounding. The product with A takes time in proportion to the columns of what
is in the middle, X·Wᵀ or A·X. As one operator the layer is one step of autograd.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from .. import _device
from ._calls import calls, in_own_type, product, recorded
from ._pattern import Pattern, concrete_pattern, of_handle
from ._transforms import has_level

SCHEMAS = (
    "graph_convolution(SymInt handle, SymInt rows, Tensor? values, Tensor x, Tensor weight, Tensor? bias, "
    "bool product_first) -> (Tensor, Tensor)",
)


def is_product_first(x: Tensor, weight: Tensor) -> bool:
    """Whether (A·X)·Wᵀ multiplies A by fewer columns than A·(X·Wᵀ), in the gradients of x and of the weight too."""
    out, features = weight.shape
    if torch.is_grad_enabled() and weight.requires_grad and not x.requires_grad:
        # The gradient of the weight needs a product with Aᵀ only in the other order.
        return bool(features < 2 * out)
    return bool(features < out)


def of_plain(src: Any, values: Any, x: Any, weight: Any, bias: Any) -> Tensor | None:
    """The layer in an eager call on tensors that are nothing but their memory, with weights of edges in the order of a
    pattern, whose checks the module makes; else ``None``. Ones, which stand for no weights, are found by Python."""
    if type(src) is not Pattern or torch.compiler.is_compiling() or src._eager is None or src.permutation is not None:
        return None
    is_recorded = src._eager.is_convolution_recorded(values, x, weight, bias)
    if is_recorded is None:
        return None
    way = recorded.graph_convolution if is_recorded else _graph_convolution
    y: Tensor = way(src._handle, src.shape[0], values, x, weight, bias, is_product_first(x, weight))[0]
    return y


# x nodes × features, weight out × features, bias out. The second result is what is in the middle; it has no gradient.


def _graph_convolution(
    handle: int,
    rows: int,
    values: Tensor | None,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    product_first: bool,
) -> tuple[Tensor, Tensor]:
    pattern = of_handle(handle)
    for t in (x, weight, bias):
        # PyTorch's own products read behind a storage that was shrunk.
        if t is not None:
            _device.expect_storage(t)
    with in_own_type(x):
        if product_first:
            middle = pattern.product(values, x, False)
            return linear(middle, weight, bias), middle
        middle = linear(x, weight)
        y = pattern.product(values, middle, False)
        return y if bias is None else y.add_(bias), middle


def _graph_convolution_fake(
    handle: int, rows: int, values: Tensor | None, x: Tensor, weight: Tensor, *others: Any
) -> tuple[Tensor, Tensor]:
    out = weight.shape[0]
    middle = (rows, x.shape[1]) if others[-1] else (x.shape[0], out)
    return x.new_empty((rows, out)), x.new_empty(middle)


def _graph_convolution_context(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.handle, ctx.rows, values, x, weight, _, ctx.product_first = inputs
    ctx.pattern = concrete_pattern(ctx.handle)
    ctx.inner = x.shape[0]
    if values is not None:
        ctx.nnz = values.shape[0]
    # Of what is in the middle nobody takes gradients: zeros for them would be made in vain.
    ctx.set_materialize_grads(False)
    of_values, of_x, of_weight = ctx.needs_input_grad[2:5]
    ctx.save_for_backward(
        values if of_x or of_weight else None,
        x if of_values or of_weight else None,
        weight if of_values or of_x else None,
        output[1] if (of_weight if ctx.product_first else of_values) else None,
    )


def _graph_convolution_backward(ctx: Any, g: Tensor | None, _: Any) -> Any:
    if g is None:
        return (None,) * 7
    with in_own_type(g):
        return None, None, *_of_operands(ctx, g, *ctx.saved_tensors), g.sum(0) if ctx.needs_input_grad[5] else None, None


def _of_operands(
    ctx: Any, g: Tensor, values: Tensor | None, x: Tensor, weight: Tensor, middle: Any
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The gradients of values, x and weight."""
    needs_values, needs_x, needs_weight = ctx.needs_input_grad[2:5]
    # What was saved is a constant. It counts as a function of the operands where gradients have gradients or tangents.
    is_constant = not (torch.is_grad_enabled() or has_level())
    of_values = of_x = of_weight = None
    if ctx.product_first:
        if needs_weight:
            if not is_constant:
                middle = product(ctx.pattern, ctx.handle, ctx.rows, values, x, False)
            of_weight = g.T @ middle
        if needs_values or needs_x:
            of_middle = g @ weight
            if needs_values:
                of_values = calls.sddmm(ctx.handle, ctx.nnz, of_middle, x)
            if needs_x:
                of_x = product(ctx.pattern, ctx.handle, ctx.inner, values, of_middle, True)
    else:
        if needs_values:
            of_values = calls.sddmm(ctx.handle, ctx.nnz, g, middle if is_constant else linear(x, weight))
        if needs_weight or needs_x:
            of_middle = product(ctx.pattern, ctx.handle, ctx.inner, values, g, True)
            if needs_weight:
                of_weight = of_middle.T @ x
            if needs_x:
                of_x = of_middle @ weight
    return of_values, of_x, of_weight


#: Name, kernel, shapes, what is saved, and gradients.
OPERATORS = (
    (
        "graph_convolution",
        _graph_convolution,
        _graph_convolution_fake,
        _graph_convolution_context,
        _graph_convolution_backward,
    ),
)
