"""What calls without a plan learn of a matrix: its pattern from the second call on, and plans for it.

An entry belongs to an object of the caller's, and goes with it. The pattern is a copy, compared with the
arrays in every call: comparing costs less than validating, and a matrix that was written to is learnt anew. Tensors
on a GPU say when they were written to, as far as PyTorch counts it; arrays of CuPy are compared there, for which the
host waits.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

import numpy as np

from . import _device, _families, _gustav
from ._operands import Operand

# Matrices of which a copy of the indices is kept, the oldest dropped first.
_MOST = 16
# Calls by which a plan has been executed before the next one is expected to be executed as often as the second
# number says: analysis has to pay for itself.
_EXPECTED = {1: 8, 8: 1000}


class _Planned:
    """A pattern, and what belongs to it alone: never changed for another pattern, but replaced."""

    __slots__ = ("calls", "pattern", "plans", "seen")

    def __init__(self, operand: Operand, place: _device.Place) -> None:
        self.pattern = _gustav.Pattern(*operand.pattern_at(place), copy=True, place=place)
        # Of a pattern on a GPU: the versions of the tensors, or copies of the arrays.
        self.seen: Any = None if place is None else _seen(operand)
        self.calls: dict[Any, int] = {}
        self.plans: dict[Any, _gustav.SpmmPlan] = {}

    def is_of(self, operand: Operand, place: _device.Place, threads: int | None) -> bool:
        """Whether the operand has this pattern at the place."""
        pattern = self.pattern
        if pattern.shape != operand.shape or pattern.gpu != (None if place is None else place[0]):
            return False
        if place is None:
            return pattern.matches(*operand.pattern_at(None)[:2], threads)
        versions = _versions(operand)
        if versions is not None or isinstance(self.seen[0], int):
            return bool(versions == self.seen)
        return all(
            kept.dtype == now.dtype and kept.shape == now.shape and bool((kept == now).all())
            for kept, now in zip(self.seen, (operand.indptr, operand.indices), strict=True)
        )


def _versions(operand: Operand) -> Any:
    """How often the tensors of indices were written to, if they say, and where they are."""
    arrays = (operand.indptr, operand.indices)
    if _families.torch_of(operand.like) is None or any(t.is_inference() for t in arrays):
        return None
    return tuple(number for t in arrays for number in (t._version, t.data_ptr(), len(t)))


def _seen(operand: Operand) -> Any:
    versions = _versions(operand)
    if versions is not None:
        return versions
    is_torch = _families.torch_of(operand.indptr) is not None
    return tuple(t.clone() if is_torch else t.copy() for t in (operand.indptr, operand.indices))


class _Learnt:
    __slots__ = ("planned", "refers")

    def __init__(self, owner: Any, forget: Any) -> None:
        self.refers = weakref.ref(owner, forget)
        self.planned: _Planned | None = None


_learnt: dict[int, _Learnt] = {}


def _begin_child() -> None:
    """Drops plans that a thread of the parent may have been executing. Those on a GPU stay: a child refuses them."""
    for learnt in _learnt.values():
        if learnt.planned is not None and learnt.planned.pattern.gpu is None:
            learnt.planned = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)


def spmm_plan(
    operand: Operand,
    columns: int,
    dtype: str,
    transpose: bool,
    semiring: str,
    reduce: str,
    deterministic: bool,
    threads: int | None,
    place: _device.Place = None,
) -> _gustav.SpmmPlan | None:
    """The plan of this product, if the matrix has been multiplied before; values in its own order."""
    if operand.order is not None or isinstance(operand.like, tuple):
        return None
    # Transposes and matrices of other values share their index arrays with those they were made from.
    of_arrays = isinstance(operand.indices, np.ndarray) or _families.cupy_of(operand.indices) is not None
    owner = operand.indices if of_arrays else operand.like
    key = id(owner)
    learnt = _learnt.get(key)
    if learnt is None or learnt.refers() is not owner:
        _remember(key, owner)
        return None
    # Other threads may replace it meanwhile, for a matrix with the same indices.
    planned = learnt.planned
    if planned is None or not planned.is_of(operand, place, threads):
        planned = learnt.planned = _Planned(operand, place)
    count = _gustav.get_num_threads() if threads is None else threads
    of_call = (columns, dtype, transpose, semiring, reduce, deterministic, count)
    calls = planned.calls.get(of_call, 0) + 1
    planned.calls[of_call] = calls
    if calls in _EXPECTED:
        planned.plans[of_call] = _gustav.SpmmPlan(
            planned.pattern,
            columns,
            dtype,
            _EXPECTED[calls],
            transpose,
            semiring,
            deterministic,
            threads,
            reduce,
            place,
        )
    return planned.plans.get(of_call)


def _remember(key: int, owner: Any) -> None:
    def forget(reference: Any) -> None:
        learnt = _learnt.get(key)
        if learnt is not None and learnt.refers is reference:
            del _learnt[key]

    # A copy of the keys, as other threads may change the dictionary.
    for oldest in list(_learnt)[: max(0, len(_learnt) - _MOST + 1)]:
        _learnt.pop(oldest, None)
    _learnt[key] = _Learnt(owner, forget)
