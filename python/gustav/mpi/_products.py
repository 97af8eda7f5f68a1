"""Products over ranks in one call. Plans are cached with the pattern, so that a second product exchanges no indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _device, _families
from . import _arguments
from ._matrix import DistCsr, DistPattern, expect_matrix, ranks_of
from ._plans import SddmmPlan, SpgemmPlan, SpmmPlan, pattern_of, plan_sddmm, plan_spgemm, plan_spmm

# The most plans that a pattern caches.
_CACHED_PLANS = 8


def cached(
    pattern: DistPattern,
    key: tuple[Any, ...],
    device: int | None,
    make: Callable[[], Any],
    fits: Callable[[Any], bool] = lambda plan: True,
) -> Any:
    """The plan of this key, if it `fits` and is for the place of this rank's arrays; made anew on all ranks where one has
    none. Collective.

    The oldest is dropped, which is the same one on every rank: keys hold nothing that differs between ranks.
    """
    plan = pattern._plans.get(key)
    missing = plan is None or plan._device != device or not fits(plan)
    if pattern.ranks._native.any(missing):
        pattern._plans.pop(key, None)
        plan = make()
        if len(pattern._plans) >= _CACHED_PLANS:
            del pattern._plans[next(iter(pattern._plans))]
        pattern._plans[key] = plan
    return plan


def spmm(
    a: DistCsr,
    b: Any,
    *,
    out: Any = None,
    alpha: float | None = None,
    beta: float | None = None,
    transpose: bool = False,
    semiring: str = "plus_times",
    deterministic: bool = False,
) -> Any:
    """``alpha * op(a) @ b + beta * out`` over ranks. Collective.

    Parameters
    ----------
    a : DistCsr, m × k
    b : array
        The rows of B where this rank has columns of `a`, or with `transpose` rows; of the type of `a`, and on its GPU
        if the values of `a` are on one.
    out : array, optional
        Where this rank's rows of the product are written: where it has rows of `a`, or with `transpose` columns.
    alpha, beta, transpose, semiring, deterministic
        As of :func:`gustav.spmm`; deterministic for the same number of ranks.

    Returns
    -------
    array
        `out`, or a new one of the library of `b`.
    """
    with ranks_of(a=a)._preparing():
        pattern = expect_matrix("a", a).pattern
        columns = _columns("b", b)
        dtype = _families.dtype_name(a.data)
        transpose = _arguments.flag("transpose", transpose)
        semiring = _arguments.semiring(semiring)
        deterministic = _arguments.flag("deterministic", deterministic)
        device = _device.number(a.data)
    plan: SpmmPlan = cached(
        pattern,
        ("spmm", columns, dtype, transpose, semiring, deterministic),
        device,
        lambda: plan_spmm(a, columns, transpose=transpose, semiring=semiring, deterministic=deterministic),
    )
    return plan.execute(a.data, b, out, alpha, beta)


def spmv(
    a: DistCsr,
    x: Any,
    *,
    out: Any = None,
    alpha: float | None = None,
    beta: float | None = None,
    transpose: bool = False,
    semiring: str = "plus_times",
    deterministic: bool = False,
) -> Any:
    """``alpha * op(a) @ x + beta * out`` with vectors; see :func:`spmm`. Collective."""
    with ranks_of(a=a)._preparing():
        if len(getattr(x, "shape", ())) != 1:
            raise ValueError("x: expected a vector; spmm takes matrices")
    return spmm(
        a,
        x,
        out=out,
        alpha=alpha,
        beta=beta,
        transpose=transpose,
        semiring=semiring,
        deterministic=deterministic,
    )


def sddmm(
    a: DistCsr | DistPattern,
    x: Any,
    y: Any,
    *,
    out: Any = None,
    alpha: float | None = None,
    beta: float | None = None,
) -> Any:
    """``alpha * (x @ y.T) + beta * out`` at the nonzeros of `a`, of this rank. Collective.

    Parameters
    ----------
    a : DistCsr or DistPattern, m × n
        Its values are not read; where x is decides where this rank computes.
    x : array, rows of this rank × depth
    y : array, columns of this rank × depth
    out : array, nonzeros of this rank, optional
    alpha, beta : number, optional
        One and zero where not given.
    """
    pattern = pattern_of(a)
    with pattern.ranks._preparing():
        if len(getattr(x, "shape", ())) != 2:
            raise ValueError("x: expected two dimensions")
        depth, dtype, device = int(x.shape[1]), _families.dtype_name(x), _device.number(x)
    plan: SddmmPlan = cached(
        pattern, ("sddmm", depth, dtype), device, lambda: plan_sddmm(pattern, depth, dtype=dtype, device=device)
    )
    return plan.execute(x, y, out, alpha, beta)


def spgemm(a: DistCsr, b: DistCsr, *, alpha: float | None = None, semiring: str = "plus_times") -> DistCsr:
    """``alpha * a @ b`` over ranks, rows of `b` being where `a` has its columns. Collective.

    A rank whose values of `a` are on a GPU computes there; those of `b` are on the same. The plan is cached until `a` is
    multiplied with another pattern: a plan of :func:`plan_spgemm` lives until the program drops it.

    Returns
    -------
    DistCsr
        Its rows are where `a` has its rows, its columns where `b` has its columns, and its values on this rank where
        those of `a` are.
    """
    with ranks_of(a=a, b=b)._preparing():
        a, b = expect_matrix("a", a), expect_matrix("b", b)
        dtype = _families.dtype_name(a.data)
        semiring = _arguments.semiring(semiring)
        device = _device.number(a.data)
    # Of the patterns that A was multiplied with, the last one is kept alive.
    plan: SpgemmPlan = cached(
        a.pattern,
        ("spgemm", dtype, semiring),
        device,
        lambda: plan_spgemm(a, b, semiring=semiring),
        lambda plan: plan._patterns[1] is b.pattern,
    )
    return plan.execute(a, b, alpha)


def _columns(name: str, array: Any) -> int:
    shape: tuple[int, ...] = getattr(array, "shape", ())
    if len(shape) not in (1, 2):
        raise ValueError(f"{name}: expected one or two dimensions, found {len(shape)}")
    return 1 if len(shape) == 1 else int(shape[1])
