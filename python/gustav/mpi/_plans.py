"""Plans over ranks: indices are exchanged once, a product is executed any number of times."""

from __future__ import annotations

from typing import Any

from .. import _device, _families, _gustav
from . import _arguments
from ._matrix import DistCsr, DistPattern, expect_matrix, expect_pattern, ranks_of


def in_rows(name: str, array: Any, shape: tuple[int, ...], device: int | None) -> Any:
    """`array` in rows, a copy if it is not, of this shape, where the plan computes."""
    array = _families.checked(name, array, "gustav.mpi.torch")
    _expect(name, array, shape, device)
    if len(shape) == 1:
        return array
    torch = _families.torch_of(array)
    if torch is not None:
        return array.contiguous()
    if device is None:
        return _families.namespace(array).ascontiguousarray(array) if hasattr(array, "flags") else array
    cupy = _families.cupy_of(array)
    if cupy is None:
        return array
    with array.device:
        return cupy.ascontiguousarray(array)


def _new(like: Any, shape: tuple[int, ...]) -> Any:
    """A new array of this shape, which the library of `like` takes: what it does not is refused before the product."""
    result = _families.empty(like, shape)
    if not isinstance(result, type(like)):
        _families.give_back(like, _families.empty(like, (0,)))
    return result


def to_write(name: str, array: Any, shape: tuple[int, ...], device: int | None) -> Any:
    """`array`, which is written, of this shape, where the plan computes."""
    array = _families.writable(name, array)
    _expect(name, array, shape, device)
    return array


def _expect(name: str, array: Any, shape: tuple[int, ...], device: int | None) -> None:
    found = _device.number(array)
    if found != device:
        raise ValueError(
            f"{name} is in {_device._named(found)}, and the plan computes in {_device._named(device)}; give all arrays "
            "there, or make a plan with another `device`"
        )
    if tuple(array.shape) != shape:
        raise ValueError(f"{name}: expected the shape {shape} on this rank, found {tuple(array.shape)}")


def _given(arrays: list[tuple[str, Any]], out: Any) -> tuple[list[Any], _device.Place]:
    """Arrays and the one that is written as the module takes them, and their place."""
    place = _device.place_of(None, *arrays)
    if place is None:
        return [*(array for _, array in arrays), out], None
    return [*(_device.exported(array, place) for _, array in arrays), _device.written("out", out, place)], place


def pattern_of(a: DistCsr | DistPattern) -> DistPattern:
    """The pattern of a matrix, or a pattern."""
    if isinstance(a, DistCsr):
        return a.pattern
    if isinstance(a, DistPattern):
        return a
    raise TypeError(f"a: {type(a).__name__} is not taken; gustav.mpi.DistCsr and DistPattern are")


class _Plan:
    """What plans of all products say of themselves.

    Attributes
    ----------
    sent_bytes, messages : int
        What all ranks send in one execution.
    workspace_bytes : int
        Bytes that the plan holds on this rank besides patterns.
    """

    def __init__(self, explanation: _gustav.DistExplanation) -> None:
        self._explanation = explanation
        self.sent_bytes: int = explanation.sent_bytes
        self.messages: int = explanation.messages
        self.workspace_bytes: int = explanation.workspace_bytes

    def explain(self) -> str:
        """What is computed, what ranks send, and how work is balanced."""
        return str(self._explanation)


class SpmmPlan(_Plan):
    """A sparse × dense product over ranks; :func:`plan_spmm` makes it."""

    def __init__(
        self,
        pattern: DistPattern,
        columns: int,
        dtype: str,
        calls: int,
        transpose: bool,
        semiring: str,
        deterministic: bool,
        threads: int | None,
        communication: str,
        copies: int | str,
        device: int | None,
    ) -> None:
        with ranks_of(pattern=pattern)._preparing():
            pattern = expect_pattern("pattern", pattern)
            columns = _arguments.count("columns", columns)
            dtype = _arguments.dtype(dtype)
            calls = _arguments.count("calls", calls)
            transpose = _arguments.flag("transpose", transpose)
            semiring = _arguments.semiring(semiring)
            deterministic = _arguments.flag("deterministic", deterministic)
            threads = _threads(pattern, threads)
            communication = _arguments.word("communication", communication, '"cheapest"')
            copies = _arguments.copies(copies)
            self._device = _arguments.device(device)
            place = _device.current(self._device)
        self._native = _gustav.DistSpmmPlan(
            pattern._native,
            columns,
            dtype,
            calls,
            transpose,
            semiring,
            deterministic,
            threads,
            communication,
            copies,
            place,
        )
        self._pattern, self._columns = pattern, columns
        of_rows, of_columns = pattern.local_rows, pattern.local_columns
        self._rows_of_b, self._rows_of_c = (of_rows, of_columns) if transpose else (of_columns, of_rows)
        super().__init__(self._native.explanation)

    def execute(
        self, values: Any, b: Any, out: Any = None, alpha: float | None = None, beta: float | None = None
    ) -> Any:
        """``alpha * op(A) @ b + beta * out``, of this rank's values and rows. Collective.

        Parameters
        ----------
        values : array, nonzeros of this rank
        b : array, rows of B that this rank has × columns, or a vector where columns is 1
        out : array, optional
            Where this rank's rows of the product are written.
        alpha, beta : number, optional
            The one and the zero of the semiring where not given.

        Returns
        -------
        array
            `out`, or a new one of the library of `b`.
        """
        with self._pattern.ranks._preparing():
            tail = () if len(getattr(b, "shape", ())) == 1 and self._columns == 1 else (self._columns,)
            b = in_rows("b", b, (self._rows_of_b, *tail), self._device)
            values = in_rows("values", values, (self._pattern.local_nnz,), self._device)
            shape = (self._rows_of_c, *tail)
            if out is None and beta is not None:
                raise ValueError("beta: it needs an out that it multiplies")
            result = _new(b, shape) if out is None else to_write("out", out, shape, self._device)
            (of_b, of_a, written), place = _given([("b", b), ("values", values)], result)
        # The work is done when it returns: nothing of it is left that the arrays' libraries would have to know of.
        self._native.execute_into(of_a, of_b, written, alpha, beta, place)
        return result if out is not None else _families.give_back(b, result)


class SddmmPlan(_Plan):
    """A product at the nonzeros of a pattern over ranks; :func:`plan_sddmm` makes it."""

    def __init__(
        self, pattern: DistPattern, depth: int, dtype: str, calls: int, threads: int | None, device: int | None
    ) -> None:
        with ranks_of(pattern=pattern)._preparing():
            pattern = expect_pattern("pattern", pattern)
            depth = _arguments.count("depth", depth)
            dtype = _arguments.dtype(dtype)
            calls = _arguments.count("calls", calls)
            threads = _threads(pattern, threads)
            self._device = _arguments.device(device)
            place = _device.current(self._device)
        self._native = _gustav.DistSddmmPlan(pattern._native, depth, dtype, calls, threads, place)
        self._pattern, self._depth = pattern, depth
        super().__init__(self._native.explanation)

    def execute(
        self, x: Any, y: Any, out: Any = None, alpha: float | None = None, beta: float | None = None
    ) -> Any:
        """``alpha * (x @ y.T) + beta * out`` at the nonzeros of this rank. Collective.

        Parameters
        ----------
        x : array, rows of this rank × depth
        y : array, columns of this rank × depth
        out : array, nonzeros of this rank, optional
        alpha, beta : number, optional
            One and zero where not given.
        """
        with self._pattern.ranks._preparing():
            x = in_rows("x", x, (self._pattern.local_rows, self._depth), self._device)
            y = in_rows("y", y, (self._pattern.local_columns, self._depth), self._device)
            if out is None and beta is not None:
                raise ValueError("beta: it needs an out that it multiplies")
            shape = (self._pattern.local_nnz,)
            result = _new(x, shape) if out is None else to_write("out", out, shape, self._device)
            (of_x, of_y, written), place = _given([("x", x), ("y", y)], result)
        self._native.execute_into(of_x, of_y, written, alpha, beta, place)
        return result if out is not None else _families.give_back(x, result)


class SpgemmPlan(_Plan):
    """A sparse × sparse product over ranks; :func:`plan_spgemm` makes it."""

    def __init__(
        self, a: DistPattern, b: DistPattern, dtype: str, semiring: str, threads: int | None, device: int | None
    ) -> None:
        with ranks_of(a=a, b=b)._preparing():
            a, b = expect_pattern("a", a), expect_pattern("b", b)
            dtype = _arguments.dtype(dtype)
            semiring = _arguments.semiring(semiring)
            threads = _threads(a, threads)
            self._device = _arguments.device(device)
            place = _device.current(self._device)
        self._native = _gustav.DistSpgemmPlan(a._native, b._native, dtype, semiring, threads, place)
        self._patterns = (a, b)
        super().__init__(self._native.explanation)

    def execute(self, a: DistCsr, b: DistCsr, alpha: float | None = None) -> DistCsr:
        """``alpha * a @ b``, with values of `a` and `b` that the plan was made for. Collective."""
        ranks = self._patterns[0].ranks
        with ranks._preparing():
            for name, matrix, pattern in zip(("a", "b"), (a, b), self._patterns, strict=True):
                if not isinstance(matrix, DistCsr) or matrix.pattern is not pattern:
                    raise ValueError(f"{name}: it is not of the pattern that the plan was made for; make a new plan")
            of_a = in_rows("values of a", a.data, (a.pattern.local_nnz,), self._device)
            of_b = in_rows("values of b", b.data, (b.pattern.local_nnz,), self._device)
            place = _device.place_of(None, ("values of a", of_a), ("values of b", of_b))
            if place is not None:
                # What the library of the values cannot make is refused before the product.
                _families.empty_vector(a.data, 0, _families.dtype_name(of_a))
                of_a, of_b = _device.exported(of_a, place), _device.exported(of_b, place)
        native, block = self._native.execute(of_a, of_b, alpha, place)
        # A rank that has no memory for it is heard of by the check.
        with ranks._preparing():
            made = _families.of_block(block, a.data) if place is None else _families.copied(block, a.data, place)
        ranks._native.check("the values of a product")
        return DistCsr._of(DistPattern._of_native(ranks, native), made, a._like)


def plan_spmm(
    a: DistCsr | DistPattern,
    columns: int,
    *,
    dtype: Any = None,
    calls: int = 1000,
    transpose: bool = False,
    semiring: str = "plus_times",
    deterministic: bool = False,
    threads: int | None = None,
    communication: str = "cheapest",
    copies: int | str = 1,
    device: int | None = None,
) -> SpmmPlan:
    """A plan for ``op(a) @ b`` with dense b of so many columns. Collective.

    Parameters
    ----------
    a : DistCsr or DistPattern
    columns : int
        Columns of b; 1 for vectors too.
    dtype : optional
        The type of values and of b; that of `a` where not given.
    calls : int
        How often it will be executed, which decides how much planning pays.
    transpose, semiring, deterministic
        As of :func:`gustav.spmm`; deterministic for the same number of ranks.
    threads : int, optional
        Threads of this rank; those of the ranks where not given.
    communication : str
        ``cheapest``, ``rows-of-b`` or ``partial-rows-of-c``: what ranks send each other.
    copies : int or "auto"
        Ranks of a team, to each of which a row of b is sent once: a divisor of the number of ranks; ``"auto"`` for the
        one that sends the fewest bytes and fits into memory, which ``explain()`` compares with the others.
    device : int, optional
        The number of the GPU that this rank's arrays are on; that of the values of `a` where not given, and host
        memory for a pattern. Ranks may differ in it, and some may have their arrays in host memory. Where one of
        several ranks has a GPU, max-times takes no `alpha` but one except in teams of several ranks, and float16 and bfloat16 raise
        ``NotImplementedError``: sums would be rounded once for every rank.
    """
    pattern = pattern_of(a)
    with pattern.ranks._preparing():
        name, device = _dtype_of(a, dtype), _device_of(a, device)
    return SpmmPlan(
        pattern, columns, name, calls, transpose, semiring, deterministic, threads, communication, copies, device
    )


def plan_sddmm(
    a: DistCsr | DistPattern,
    depth: int,
    *,
    dtype: Any = None,
    calls: int = 1000,
    threads: int | None = None,
    device: int | None = None,
) -> SddmmPlan:
    """A plan for ``x @ y.T`` at the nonzeros of `a`, for x and y of `depth` columns; `device` is as of
    :func:`plan_spmm`. Collective."""
    pattern = pattern_of(a)
    with pattern.ranks._preparing():
        name, device = _dtype_of(a, dtype), _device_of(a, device)
    return SddmmPlan(pattern, depth, name, calls, threads, device)


def plan_spgemm(
    a: DistCsr, b: DistCsr, *, semiring: str = "plus_times", threads: int | None = None
) -> SpgemmPlan:
    """A plan for ``a @ b``, rows of `b` being where `a` has its columns. Collective.

    A rank whose values of `a` are on a GPU computes there.
    """
    with ranks_of(a=a, b=b)._preparing():
        a, b = expect_matrix("a", a), expect_matrix("b", b)
        name, device = _dtype_of(a, None), _device_of(a, None)
        if _families.dtype_name(b.data) != name:
            found = _families.dtype_name(b.data)
            raise TypeError(f"b: its values are {found}, those of a {name}; give both in one type")
    return SpgemmPlan(a.pattern, b.pattern, name, semiring, threads, device)


def _threads(pattern: DistPattern, threads: Any) -> int:
    return _arguments.count("threads", pattern.ranks.threads if threads is None else threads, 1)


def _dtype_of(a: DistCsr | DistPattern, dtype: Any) -> str:
    if dtype is not None:
        return _arguments.dtype(dtype)
    if isinstance(a, DistCsr):
        return _families.dtype_name(a.data)
    raise TypeError("dtype: a pattern has no values whose type could be taken; give it")


def _device_of(a: DistCsr | DistPattern, device: int | None) -> int | None:
    return _device.number(a.data) if device is None and isinstance(a, DistCsr) else device
