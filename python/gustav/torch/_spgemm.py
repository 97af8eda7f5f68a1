"""Sparse × sparse for patterns: the pattern of a product once, its values in every call."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .. import _families, _gustav
from ._pattern import Pattern, exported


class _Masked(NamedTuple):
    """A plan of a product at the nonzeros of a pattern."""

    plan: _gustav.SpgemmPlan
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
        plan = _gustav.SpgemmPlan(a._native, b._native, None, "float32", 1)
        native, _ = plan.execute(*(exported(p.ones(torch.float32)) for p in (a, b)))
        known = a._products[b] = Pattern._of(native)
    product: Pattern = known
    return product


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
    _, block = masked.plan.execute(exported(of_a), exported(of_b))
    values: Tensor = _families.of_block(block, of_a)
    if masked.positions is None:
        return values
    return of_a.new_zeros(c.nnz).index_copy_(0, masked.positions, values)


def _plan(c: Pattern, a: Pattern, b: Pattern, dtype: torch.dtype) -> _Masked:
    by_b: Any = c._masked.setdefault(a, weakref.WeakKeyDictionary())
    plans: dict[Any, _Masked] = by_b.setdefault(b, {})
    key = (dtype, _gustav.get_num_threads())
    masked = plans.get(key)
    if masked is None:
        name = _families.dtype_name(dtype)
        mask = None if a._products.get(b) is c else c._native
        plan = _gustav.SpgemmPlan(a._native, b._native, mask, name, 1000)
        positions = None
        if mask is not None:
            ones = (exported(p.ones(dtype)) for p in (a, b))
            positions = _positions(plan.execute(*ones)[0], c)
        masked = plans[key] = _Masked(plan, positions)
    return masked


def _positions(product: _gustav.Pattern, mask: Pattern) -> Tensor | None:
    """For each entry of `product` its position in `mask`, which has them all; None where they are equal."""
    if product.nnz == mask.nnz and mask._native.matches(
        np.asarray(product.indptr), np.asarray(product.indices)
    ):
        return None
    of_mask = _keys(mask._native)
    order = np.argsort(of_mask, kind="stable")
    found = np.searchsorted(of_mask, _keys(product), sorter=order)
    return torch.from_numpy(order[found])


def _keys(pattern: _gustav.Pattern) -> Any:
    """A number for the position of every entry, in the order of rows and columns."""
    indptr, columns = np.asarray(pattern.indptr), np.asarray(pattern.indices)
    rows = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))
    return rows * pattern.shape[1] + columns
