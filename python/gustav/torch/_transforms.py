"""Rules by which the transforms of :mod:`torch.func`, and tangents, pass through operators.

Every operator has gradients of any order. What else transforms ask for follows from those: tangents are gradients of
gradients, and a batch is one call after another.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.autograd import forward_ad

_C: Any = torch._C._functorch
_forward_ad: Any = forward_ad

_Result = TypeVar("_Result")


def are_active() -> bool:
    """Whether a transform is on, or tangents are."""
    return _C.peek_interpreter_stack() is not None or (
        _forward_ad._current_level >= 0 and torch._C._is_fwd_grad_enabled()
    )


def differentiates_forward() -> bool:
    """Whether tangents are on, as a compiler sees it too."""
    level: int = _forward_ad._current_level
    return level >= 0


def rules(
    call: Callable[..., Any], context: Callable[..., None], backward: Callable[..., Any]
) -> Callable[..., Any]:
    """`call`, an operator with the functions that it was registered with, as transforms take it."""

    class Transformed(torch.autograd.Function):
        @staticmethod
        def forward(*arguments: Any) -> Any:
            # No transform is left, and no tangent counts in here.
            return call(*arguments)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            context(ctx, inputs, output)
            ctx.inputs = inputs
            ctx.has_tangent = [o.is_floating_point() for o in _as_tuple(output)]

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return backward(ctx, *gradients)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            return _tangents_of(call, ctx.inputs, ctx.has_tangent, tangents)

        @staticmethod
        def vmap(info: Any, in_dims: Any, *arguments: Any) -> Any:
            return _one_by_one(call, info.batch_size, in_dims, arguments)

    apply: Callable[..., Any] = Transformed.apply
    return apply


def _as_tuple(outputs: Any) -> tuple[Tensor, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _tangents_of(
    call: Callable[..., Any], inputs: tuple[Any, ...], has_tangent: list[bool], tangents: tuple[Any, ...]
) -> Any:
    """J·t of an operator: Jᵀ·g, which is linear in g, differentiated with respect to g; None of what has no tangent."""
    found: Any = iter(())
    if any(has_tangent):
        given = [place for place, t in enumerate(tangents) if isinstance(t, Tensor)]
        arguments = [_forward_ad.unpack_dual(t).primal if isinstance(t, Tensor) else t for t in inputs]

        def of_given(*tensors: Tensor) -> tuple[Tensor, ...]:
            for place, t in zip(given, tensors, strict=True):
                arguments[place] = t
            outputs = _as_tuple(call(*arguments))
            return tuple(o for o, has in zip(outputs, has_tangent, strict=True) if has)

        # PyTorch turns tangents off where it calls this; those of an outer transform count.
        with _forward_ad._set_fwd_grad_enabled(True):
            outputs, pull_back, *_ = torch.func.vjp(of_given, *(arguments[place] for place in given))
            _, push_forward, *_ = torch.func.vjp(pull_back, tuple(torch.zeros_like(o) for o in outputs))
            found = iter(push_forward(tuple(tangents[place] for place in given))[0])
    results = tuple(next(found) if has else None for has in has_tangent)
    return results[0] if len(results) == 1 else results


def _one_by_one(
    call: Callable[..., Any], batches: int, in_dims: tuple[int | None, ...], arguments: tuple[Any, ...]
) -> Any:
    """The results of a batch of calls, stacked, and that their batch leads."""
    if batches == 0:
        raise ValueError("vmap: a batch of 0 calls has no result to take shapes from; give at least one")
    results = [
        call(*(a if d is None else a.select(d, batch) for a, d in zip(arguments, in_dims, strict=True)))
        for batch in range(batches)
    ]
    if isinstance(results[0], tuple):
        return tuple(torch.stack(output) for output in zip(*results, strict=True)), (0,) * len(results[0])
    return torch.stack(results), 0


def outside(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """`function` outside of all transforms: for what is made of a graph, which none of them changes."""

    @functools.wraps(function)
    def outside_of_all(*arguments: Any, **options: Any) -> _Result:
        if _C.peek_interpreter_stack() is None:
            return function(*arguments, **options)
        arguments = tuple(map(_unwrapped, arguments))
        options = {name: _unwrapped(option) for name, option in options.items()}
        with temporarily_clear_interpreter_stack():
            return function(*arguments, **options)

    return outside_of_all


def _unwrapped(t: Any) -> Any:
    while isinstance(t, Tensor) and _C.is_functorch_wrapped_tensor(t):
        if _C.is_batchedtensor(t):
            raise NotImplementedError(
                "vmap over indices of a graph is not implemented; nearest that works: a loop over the graphs"
            )
        t = _C.get_unwrapped(t)
    return t
