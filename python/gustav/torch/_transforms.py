"""How calls of operators pass through the transforms of :mod:`torch.func`, and how they carry tangents.

The rules need nothing of an operator but its gradients, which have gradients themselves.
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
# Its functions have no types.
_forward_ad: Any = forward_ad
_FUNCTIONALIZE = _C.TransformType.Functionalize

# The name is PyTorch's own.
_are_transforms: Callable[[], bool] = getattr(
    torch._C, "_are_functorch_transforms_active", lambda: _C.peek_interpreter_stack() is not None
)

_Result = TypeVar("_Result")


def are_active() -> bool:
    """Whether a transform is on, or tangents are, in whatever thread: PyTorch has one level of tangents for all."""
    return _are_transforms() or (_forward_ad._current_level >= 0 and torch._C._is_fwd_grad_enabled())


def has_level() -> bool:
    """Whether there may be tangents; compilers can follow this function."""
    return bool(_forward_ad._current_level >= 0)


def functionalizes() -> bool:
    """Whether the innermost transform is ``functionalize``, for which functions of autograd have no rule."""
    interpreter = _C.peek_interpreter_stack()
    return interpreter is not None and interpreter.key() == _FUNCTIONALIZE


def is_differentiated(t: Tensor) -> bool:
    """Whether a gradient or a tangent of a tensor may be asked for."""
    requires_grad = t.requires_grad and torch.is_grad_enabled()
    if torch.compiler.is_compiling():
        # What is below a transform is not to be seen there.
        return requires_grad or _C.peek_interpreter_stack() is not None
    return bool(
        requires_grad
        or _C.is_functorch_wrapped_tensor(t)
        or (has_level() and _forward_ad.unpack_dual(t).tangent is not None)
    )


def with_rules(
    call: Callable[..., Any], save: Callable[..., None], backward: Callable[..., Any], is_constant: bool
) -> Callable[..., Any]:
    """`call`, an operator, with rules for transforms.

    `save` and `backward` are what it was registered with; `is_constant` if its result depends on no tensor's elements.
    """

    class Transformed(torch.autograd.Function):
        @staticmethod
        def forward(*arguments: Any) -> Any:
            # All transforms are behind it now, and `call` finds the kernel.
            return call(*arguments)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            save(ctx, inputs, output)
            # A tangent of zeros would be multiplied, with what may be infinite, where None is left out.
            ctx.set_materialize_grads(False)
            if is_constant:
                ctx.mark_non_differentiable(*_as_tuple(output))
            ctx.outputs = [(o.shape, o.dtype, o.device) for o in _as_tuple(output)]
            ctx.inputs = inputs if has_level() else None

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            if all(g is None for g in gradients):
                return (None,) * len(ctx.needs_input_grad)
            filled = (
                torch.zeros(shape, dtype=dtype, device=device) if g is None and dtype.is_floating_point else g
                for g, (shape, dtype, device) in zip(gradients, ctx.outputs, strict=True)
            )
            return backward(ctx, *filled)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            has_tangent = [dtype.is_floating_point and not is_constant for _, dtype, _ in ctx.outputs]
            # Compilers would look into it, and find tensors without their tangents.
            untraced: Any = torch.compiler.disable(_tangents_of)  # type: ignore[no-untyped-call]
            return untraced(call, ctx.inputs, has_tangent, tangents)

        @staticmethod
        def vmap(info: Any, in_dims: Any, *arguments: Any) -> Any:
            if is_constant:
                return call(*_of_one(in_dims, arguments)), None
            return _one_by_one(call, info.batch_size, in_dims, arguments)

    apply: Callable[..., Any] = Transformed.apply
    return apply


def _as_tuple(outputs: Any) -> tuple[Tensor, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _tangents_of(
    call: Callable[..., Any], inputs: tuple[Any, ...], has_tangent: list[bool], tangents: tuple[Any, ...]
) -> Any:
    """J·t of an operator: Jᵀ·g, which is linear in g, differentiated with respect to g. Indices have None."""
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
    """The results of a batch of calls, stacked, and the dimensions of the batch in them, as ``vmap`` returns both."""

    def one(batch: int) -> Any:
        return call(*(a if d is None else a.select(d, batch) for a, d in zip(arguments, in_dims, strict=True)))

    # Of no batch what a call would return says the shapes.
    results = [one(batch) for batch in range(batches)] or [call(*_of_one(in_dims, arguments))]
    if isinstance(results[0], tuple):
        return tuple(torch.stack(output)[:batches] for output in zip(*results, strict=True)), (0,) * len(results[0])
    return torch.stack(results)[:batches], 0


def _of_one(in_dims: tuple[int | None, ...], arguments: tuple[Any, ...]) -> list[Any]:
    """Arguments of the shapes that those of one call of a batch have."""
    return [
        a if d is None else a.new_zeros((*a.shape[:d], *a.shape[d + 1 :]))
        for a, d in zip(arguments, in_dims, strict=True)
    ]


def without_transforms(function: Callable[..., _Result]) -> Callable[..., _Result]:
    """`function`, run without the transforms that are active: they would wrap tensors that patterns cache."""

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> _Result:
        # Compilers follow the function itself.
        if torch.compiler.is_compiling() or _C.peek_interpreter_stack() is None:
            return function(*arguments, **options)
        arguments = tuple(map(_unwrapped, arguments))
        options = {name: _unwrapped(option) for name, option in options.items()}
        with temporarily_clear_interpreter_stack():
            return function(*arguments, **options)

    return run


def _unwrapped(t: Any) -> Any:
    while isinstance(t, Tensor) and _C.is_functorch_wrapped_tensor(t):
        if _C.is_batchedtensor(t):
            raise NotImplementedError(
                "vmap over indices of a graph is not implemented; nearest that works: a loop over the graphs"
            )
        t = _C.get_unwrapped(t)
    return t
