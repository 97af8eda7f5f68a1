"""Calls of the operators: past PyTorch's dispatcher where nothing there has to see them.

The dispatcher reaches a kernel in Python through functions in Python, which take longer than a small product does, and
with gradients several times as long. An eager call on plain tensors comes to the same kernel, with the same rules for
gradients, by a function of autograd. Compilers, modes, tracers, profilers, and tensors that are more than their memory
go by the registered operators. These have no rules for transforms (:mod:`torch.func`) and tangents: such calls go by
another function of autograd, which has.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from . import _transforms

#: The operators by name, filled by :func:`add`.
calls: Any = SimpleNamespace()

#: Their kernels by name, filled likewise.
_kernels: Any = SimpleNamespace()

_C: Any = torch._C
try:
    _is_excluded: Callable[[Any], bool] = _C._dispatch_tls_is_dispatch_key_excluded
    _modes: Callable[[], int] = _C._len_torch_dispatch_stack
    _is_function_mode: Callable[[], bool] = _C._is_torch_function_mode_enabled
    _is_profiled: Callable[[], bool] = _C._autograd._profiler_enabled
    _tracing_state: Callable[[], Any] = _C._get_tracing_state
    _keys_of: Callable[[Tensor], Any] = _C._dispatch_keys
    # Excluded in kernels and in inference mode, together with the keys of all devices.
    _BELOW_AUTOGRAD: Any = _C.DispatchKey.AutogradOther
    _is_asked = True
except AttributeError:
    # A version of PyTorch without one of these names, which are its own.
    _is_asked = False
_is_grad_enabled, _is_compiling = torch.is_grad_enabled, torch.compiler.is_compiling
# An exported program has no backward pass.
_is_compiled = torch.compiler.is_dynamo_compiling

_TENSORS = (torch.Tensor, torch.nn.Parameter)
_NUMBERS = frozenset((int, bool, float, str, type(None)))

_STRAIGHT, _WITH_GRADIENTS, _TRANSFORMED, _BY_DISPATCHER = range(4)


class _PlainKeys(dict[bool, list[Any]]):
    """What the dispatcher knows of tensors that are nothing but their memory: in that of a GPU, or in host memory.

    It is asked when the first such tensor is seen: asking before would use CUDA.
    """

    def __missing__(self, on_gpu: bool) -> list[Any]:
        found = []
        for inference in (False, True):
            with torch.inference_mode(inference):
                found.append(_keys_of(torch.empty(0, device="cuda" if on_gpu else "cpu")))
        self[on_gpu] = found
        return found


_plain = _PlainKeys()


def _is_its_memory(t: Tensor) -> bool:
    """Whether a tensor of PyTorch's own classes is what its memory holds, on a device that products run on."""
    # Those of other devices have other keys than those of the CPU.
    return _keys_of(t) in _plain[t.is_cuda]


def _is_watched() -> bool:
    """Whether a mode, a tracer or a profiler wants to see operators."""
    return bool(_modes() or _is_function_mode() or _is_profiled() or _tracing_state() is not None)


def _way(arguments: tuple[Any, ...]) -> int:
    """How an eager call with these arguments reaches the kernel."""
    if _transforms.are_active():
        # There tangents would be lost: by the other way they are refused.
        return _BY_DISPATCHER if _transforms.functionalizes() and not _transforms.has_level() else _TRANSFORMED
    if _is_watched():
        return _BY_DISPATCHER
    requires_grad = False
    for argument in arguments:
        kind = type(argument)
        if kind in _NUMBERS:
            continue
        if kind not in _TENSORS or not _is_its_memory(argument):
            return _BY_DISPATCHER
        requires_grad = requires_grad or argument.requires_grad
    if requires_grad and _is_grad_enabled() and not _is_excluded(_BELOW_AUTOGRAD):
        return _WITH_GRADIENTS
    return _STRAIGHT


def in_backward(ctx: Any, gradient: Tensor, *saved: Tensor | None) -> Any:
    """The namespace whose functions a backward pass calls, of operators by name: the kernels themselves, where nothing
    else sees its calls and its forward pass reached the kernel straight; else :data:`calls`."""
    if (
        not getattr(ctx, "is_direct", False)
        or _is_compiled()
        or _is_grad_enabled()
        or _transforms.are_active()
        or _is_watched()
    ):
        return calls
    for t in (gradient, *saved):
        # Hooks may have put anything in place of what was saved.
        if t is not None and (type(t) not in _TENSORS or not _is_its_memory(t)):
            return calls
    return _kernels


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
            # Of the registered operators' contexts it is not said.
            ctx.is_direct = True
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
        way = _way(arguments) if _is_asked else _BY_DISPATCHER
        if way == _STRAIGHT:
            return kernel(*arguments)
        if way == _WITH_GRADIENTS:
            return Direct.apply(*arguments)
        if way == _TRANSFORMED:
            return transformed(*arguments)
        return registered(*arguments)

    transformed = _transforms.with_rules(call, context, backward, is_constant)
    setattr(calls, name, call)
    setattr(_kernels, name, kernel)
