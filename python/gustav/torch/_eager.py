"""Eager calls on tensors that are nothing but their memory: the module checks them, without functions in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad

from .. import _gustav

_C: Any = torch._C
# The names are PyTorch's own, and the table is that of DLPack's version 1.
try:
    eager: Any = _gustav.Eager(
        [torch.Tensor, torch.nn.Parameter],
        [
            _C._are_functorch_transforms_active,
            _C._len_torch_dispatch_stack,
            _C._is_torch_function_mode_enabled,
            _C._autograd._profiler_enabled,
            _C._get_tracing_state,
        ],
        forward_ad,
        torch.is_grad_enabled,
        _C._dispatch_tls_is_dispatch_key_excluded,
        # Excluded in kernels and in inference mode, together with the keys of all devices.
        _C.DispatchKey.AutogradOther,
        _C._is_fwd_grad_enabled,
        _C._is_any_autocast_enabled,
    )
except (AttributeError, TypeError):
    # A version of PyTorch without one of these: calls go by its dispatcher.
    eager = None


def is_recorded(arguments: tuple[Any, ...]) -> bool | None:
    """Whether an eager call of an operator with these arguments is recorded for gradients, where nothing sees the call
    but the operator's kernel; else ``None``."""
    recorded: bool | None = None if eager is None else eager.is_recorded(arguments)
    return recorded


def products_of(gpu: int | None, shape: tuple[int, int], nnz: int) -> Any:
    """What finds plans of a pattern's products with tensors; ``None`` where PyTorch cannot be asked."""
    return None if eager is None else _gustav.EagerSpmm(eager, gpu, shape, nnz)


def applied(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """What applies a function of autograd to tensors that are nothing but their memory, where no transform is active:
    all else that its `apply` does is for others."""
    apply: Callable[..., Any] = super(torch.autograd.Function, function).apply  # type: ignore[misc]
    return apply
