"""Sparse × sparse for patterns: the pattern of a product once, its values in every call."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import _families, _gustav
from ._layouts import exported
from ._pattern import Pattern, arrays_of, positions
from ._transforms import without_transforms


class _Plan:
    """A plan of the module for operands in host memory or on a GPU."""

    def __init__(self, a: Pattern, b: Pattern, mask: Pattern | None, dtype: torch.dtype, calls: int) -> None:
        for name, other in (("pattern_b", b), ("the mask", mask)):
            if other is not None and other.device != a.device:
                raise ValueError(
                    f"pattern_a is on {a.device} and {name} on {other.device}; give all on one"
                )
        self._a = a
        natives = (a._native, b._native, None if mask is None else mask._native)
        name, place = _families.dtype_name(dtype), a.place()
        if place is None:
            self._native: Any = _gustav.SpgemmPlan(*natives, name, calls)
        else:
            self._native = _gustav.DeviceSpgemmPlan(*natives, name, calls, place)

    def execute(self, of_a: Tensor, of_b: Tensor) -> tuple[_gustav.Pattern, Tensor]:
        """The pattern of the product, and its values."""
        place = self._a.place()
        values = exported(of_a), exported(of_b)
        if place is None:
            pattern, block = self._native.execute(*values)
            return pattern, _families.of_block(block, of_a)
        pattern, block = self._native.execute(*values, place)
        return pattern, _families.copied(block, of_a, place)


class _Masked(NamedTuple):
    """A plan of a product at the nonzeros of a pattern."""

    plan: _Plan
    #: For each entry of the product its position in the pattern; None where it has all of them.
    positions: Tensor | None


def pattern_of(a: Pattern, b: Pattern) -> Pattern:
    """The pattern of a·b: made once for both, and kept with a as long as b lives."""
    known = a._products.get(b)
    if known is None:
        if torch.compiler.is_compiling():
            raise NotImplementedError(
                "a compiled function makes no patterns; nearest that works: gustav.torch.spgemm of both "
                "patterns once before it, which keeps theirs"
            )
        known = a._products[b] = _made(a, b)
    product: Pattern = known
    return product


@without_transforms
def _made(a: Pattern, b: Pattern) -> Pattern:
    plan = _Plan(a, b, None, torch.float32, 1)
    native, _ = plan.execute(a.ones(torch.float32), b.ones(torch.float32))
    return Pattern._of(native)


def at(
    c: Pattern, a: Pattern, b: Pattern, of_a: Tensor, transpose_a: bool, of_b: Tensor, transpose_b: bool
) -> Tensor:
    """Values of op(a)·op(b) at the nonzeros of `c`, which has no two in one position."""
    if transpose_a:
        a, permutation = a.transposed()
        of_a = of_a[permutation]
    if transpose_b:
        b, permutation = b.transposed()
        of_b = of_b[permutation]
    masked = _plan(c, a, b, of_a.dtype)
    _, values = masked.plan.execute(of_a, of_b)
    if masked.positions is None:
        return values
    return of_a.new_zeros(c.nnz).index_copy_(0, masked.positions, values)


def _plan(c: Pattern, a: Pattern, b: Pattern, dtype: torch.dtype) -> _Masked:
    by_b: Any = c._masked.setdefault(a, weakref.WeakKeyDictionary())
    plans: dict[Any, _Masked] = by_b.setdefault(b, {})
    key = (dtype, a.threads())
    masked = plans.get(key)
    if masked is None:
        mask = None if a._products.get(b) is c else c
        plan = _Plan(a, b, mask, dtype, 1000)
        positions = None
        if mask is not None:
            positions = _positions(plan.execute(a.ones(dtype), b.ones(dtype))[0], c)
        masked = plans[key] = _Masked(plan, positions)
    return masked


def _positions(product: _gustav.Pattern, mask: Pattern) -> Tensor | None:
    """For each entry of `product` its position in `mask`, which has them all; None where they are equal."""
    crow, col = arrays_of(product, mask.device)
    if product.nnz == mask.nnz and torch.equal(crow, mask.crow) and torch.equal(col, mask.col):
        return None
    rows = torch.arange(mask.shape[0], device=mask.device)
    row = rows.repeat_interleave(crow.diff(), output_size=product.nnz)
    columns = torch.unique(mask.inner_indices(False))
    of_mask, order = mask.positions(columns).sort(stable=True)
    found = torch.searchsorted(of_mask, positions(mask.shape[0], columns, row, col.to(torch.int64)))
    return order[found]
