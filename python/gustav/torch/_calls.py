"""Calls of the operators: past PyTorch's dispatcher where nothing there has to see them.

The dispatcher reaches a kernel in Python through functions in Python, which take longer than a small product does, and
with gradients several times as long. An eager call on plain tensors comes to the same kernel, with the same rules for
gradients, by a function of autograd. Compilers, modes, tracers, profilers, and tensors that are more than their memory
go by the registered operators. These have no rules for transforms (:mod:`torch.func`) and tangents: such calls go by
another function of autograd, which has.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from . import _transforms
from ._eager import applied, is_recorded

if TYPE_CHECKING:
    from ._pattern import Pattern

#: The operators by name, filled by :func:`add`.
calls: Any = SimpleNamespace()

#: The same for calls that are known to be eager, on plain tensors, and recorded for gradients.
recorded: Any = SimpleNamespace()

_is_compiling = torch.compiler.is_compiling
# The name is PyTorch's own.
_is_any_autocast_enabled: Callable[[], bool] = getattr(torch._C, "_is_any_autocast_enabled", lambda: True)
_NOTHING = nullcontext()
# A compiler of backward passes follows them.
_is_compiled = torch.compiler.is_dynamo_compiling

_STRAIGHT, _WITH_GRADIENTS, _TRANSFORMED, _BY_DISPATCHER = range(4)


def _way(arguments: tuple[Any, ...]) -> int:
    """How an eager call with these arguments reaches the kernel."""
    recorded = is_recorded(arguments)
    if recorded is not None:
        return _WITH_GRADIENTS if recorded else _STRAIGHT
    if not _transforms.are_active():
        return _BY_DISPATCHER
    # There tangents would be lost: by the other way they are refused.
    return _BY_DISPATCHER if _transforms.functionalizes() and not _transforms.has_level() else _TRANSFORMED


def add(
    name: str,
    kernel: Callable[..., Any],
    context: Callable[..., None],
    backward: Callable[..., Any],
    *,
    is_constant: bool,
) -> None:
    """Adds the registered operator of this name, with the functions that it was registered with.

    `is_constant` if its result depends on no tensor's elements.
    """
    registered = getattr(torch.ops.gustav, name).default

    class Direct(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            result = kernel(*arguments)
            context(ctx, arguments, result)
            return result

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            return backward(ctx, *gradients)

    Direct.__name__ = f"Gustav_{name}"

    def call(*arguments: Any) -> Any:
        if _is_compiling():
            if _transforms.has_level():
                # The registered operators would drop tangents, and say nothing. Without fullgraph this is a graph break.
                raise NotImplementedError(
                    f"{name}: tangents are not compiled; nearest that works: torch.func.jvp outside of torch.compile"
                )
            return registered(*arguments)
        way = _way(arguments)
        if way == _STRAIGHT:
            return kernel(*arguments)
        if way == _WITH_GRADIENTS:
            return apply(*arguments)
        if way == _TRANSFORMED:
            return transformed(*arguments)
        return registered(*arguments)

    apply = applied(Direct)
    transformed = _transforms.with_rules(call, context, backward, is_constant)
    setattr(calls, name, call)
    setattr(recorded, name, apply)


def product(
    pattern: Pattern | None, handle: int, rows: int, values: Tensor | None, x: Tensor, transpose: bool
) -> Tensor:
    """``calls.spmm`` within a backward pass: in one call of the module, where the pattern is known and nothing records
    or sees it."""
    if pattern is not None and pattern._eager is not None and not _is_compiled():
        found: Tensor | None = pattern._eager.product(values, x, transpose, pattern, None)
        if found is not None:
            return found
    y: Tensor = calls.spmm(handle, rows, values, x, transpose)
    return y


def in_own_type(x: Tensor) -> AbstractContextManager[Any]:
    """Whatever autocast is when a kernel runs: its operands were cast before it."""
    return torch.autocast(x.device.type, enabled=False) if is_autocast_on(x) else _NOTHING


def is_autocast_on(t: Tensor) -> bool:
    """Whether autocast is on for the device of a tensor."""
    # Mostly it is on for none, which an eager call finds in a sixth of the time.
    return (_is_compiling() or _is_any_autocast_enabled()) and torch.is_autocast_enabled(t.device.type)
