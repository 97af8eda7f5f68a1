"""Plans: a pattern is analysed once, a product executed any number of times."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _device, _families, _gustav, _operands
from ._products import expect_out, vector


class SpmmPlan:
    """A sparse × dense product that is planned for one pattern; :func:`plan_spmm` makes it.

    Attributes
    ----------
    algorithm : str
        The algorithm that was chosen.
    workspace_bytes : int
        Bytes that the plan holds besides the operands.
    shape : tuple of int
        Rows and columns of the result.

    Notes
    -----
    The plan has a copy of the pattern, unless it was made without. Threads may share it; their executions follow one another, on a GPU in the
    order of their streams.
    """

    __slots__ = ("_execute", "_gpu", "_native", "_order", "_values", "shape")

    def __init__(self, native: _gustav.SpmmPlan, values: Any, order: Any) -> None:
        self._native = native
        self._execute = native.execute_into
        self._gpu = native.gpu
        self._values, self._order = values, order
        self.shape = (native.output_rows, native.columns)

    def execute(
        self,
        values: Any,
        b: Any,
        out: Any = None,
        alpha: float | None = None,
        beta: float | None = None,
        *,
        stream: Any = None,
    ) -> Any:
        """``alpha * op(A) @ b + beta * out`` with `values` in the order of A's entries.

        Parameters
        ----------
        values : array, nnz
            ``None`` stands for those of the matrix that the plan was made of.
        b : array, k × columns, or k where columns is 1
            In any layout that :func:`spmm` reads in place.
        out : array, optional
            Where the result is written.
        alpha, beta : number, optional
            The one and the zero of the semiring where not given.
        stream : int or object, optional
            As of :func:`spmm`. On a GPU the work is queued, and the call returns.

        Returns
        -------
        array
            `out`, or a new one of the library of `b`.

        Examples
        --------
        >>> import numpy as np, scipy.sparse as sp, gustav
        >>> a = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
        >>> plan = gustav.plan_spmm(a, 1)
        >>> plan.execute(10 * a.data, np.ones(3))
        array([30., 30.])
        """
        if values is None:
            values = self._values
        elif self._order is None:
            values = _families.checked("values", values)
        else:
            values = vector("values", values, len(self._order))
        if self._order is not None:
            values = values[self._order]
        b = _families.checked("b", b)
        if self._gpu is not None or stream is not None:
            return self._execute_on_gpu(values, b, out, alpha, beta, stream)
        if out is None:
            expect_out("out", beta, out)
            shape = self.shape if len(b.shape) == 2 else self.shape[:1]
            result = _families.empty(b, shape)
            self._execute_on_host(values, b, result, alpha, beta)
            return _families.give_back(b, result)
        self._execute_on_host(values, b, _families.writable("out", out), alpha, beta)
        return out

    def _execute_on_host(self, values: Any, b: Any, out: Any, alpha: float | None, beta: float | None) -> None:
        if type(b) is not np.ndarray:
            values, b, out = _device.exported(values, None), _device.exported(b, None), _device.written("out", out, None)
        self._execute(values, b, out, alpha, beta)

    def _execute_on_gpu(
        self, values: Any, b: Any, out: Any, alpha: float | None, beta: float | None, stream: Any
    ) -> Any:
        expect_out("out", beta, out)
        shape = self.shape if len(b.shape) == 2 else self.shape[:1]
        result = _families.empty(b, shape) if out is None else _families.writable("out", out)
        torch = _families.torch_of(b)
        if (
            stream is None
            and torch is not None
            and b.is_cuda
            and isinstance(values, torch.Tensor)
            and isinstance(result, torch.Tensor)
        ):
            # Nothing but the current stream of one library uses the memory.
            device = b.get_device()
            current = (device, _device.torch_stream(torch, device), None)
            written = _device.written("out", result, current)
            of_values, of_b = _device.in_order(torch, values), _device.in_order(torch, b)
            self._execute(of_values, of_b, written, alpha, beta, None, current)
            return result
        place = _device.place_of(stream, ("b", b), ("values", values))
        of_values, of_b = _device.exported(values, place), _device.exported(b, place)
        written = _device.written("out", result, place)
        self._execute(of_values, of_b, written, alpha, beta, None, place)
        _device.settle(place, values, b, of_values, of_b, result)
        return out if out is not None else _families.give_back(b, result)

    def prepare(self) -> None:
        """Makes ready what an execution with packed row-major operands needs, before it is captured or timed.

        On the CPU nothing is needed. On a GPU kernels are compiled, and the host waits for what the plan has
        queued.
        """
        if self._gpu is not None:
            self._native.prepare()

    def explain(self) -> str:
        """Algorithm, configuration, facts about the pattern, reason and workspace, as text."""
        return self._native.explain()

    @property
    def algorithm(self) -> str:
        """The algorithm that was chosen."""
        return self._native.algorithm

    @property
    def workspace_bytes(self) -> int:
        """Bytes that the plan holds besides the operands."""
        return self._native.workspace_bytes

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<SpmmPlan of a {rows} x {columns} result in {self._native.dtype} by {self.algorithm}>"


def plan_spmm(
    a: Any,
    columns: int,
    *,
    dtype: Any = None,
    calls: int = 1000,
    transpose: bool = False,
    semiring: str = "plus_times",
    deterministic: bool = False,
    copy: bool = True,
    stream: Any = None,
) -> SpmmPlan:
    """Plans products of the pattern of `a` with dense matrices.

    Parameters
    ----------
    a : sparse matrix, m × k
        See :func:`spmm`.
    columns : int
        Columns of the dense operand.
    dtype : dtype, optional
        Type of the values, else that of `a`.
    calls : int
        How often the plan will be executed, as far as known: what analysis pays for itself.
    transpose, semiring, deterministic
        See :func:`spmm`.
    copy : bool
        ``False`` reads the indices of `a` where they are, by the promise that nobody writes to or resizes them.
    stream
        See :func:`spmm`; of the pattern's copy alone.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, gustav
    >>> a = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    >>> plan = gustav.plan_spmm(a, 2)
    >>> plan.execute(None, np.ones((3, 2)))
    array([[3., 3.],
           [3., 3.]])
    >>> print(plan.explain().splitlines()[0])
    problem    spmm of A, A 2 x 3 with 3 nonzeros, 2 columns, f64, u32/u32 indices, B row-major, C row-major
    """
    operand = _operands.of("a", a, reads_values=dtype is None)
    name = _families.dtype_name(operand.data if dtype is None else dtype)
    place = _device.place_of(stream, ("a", operand.data))
    given = operand.pattern_at(place)
    pattern = _gustav.Pattern(*given, copy=copy, place=place)
    _device.settle(place, operand.indptr, operand.indices, *given[:2])
    transpose = bool(transpose) != operand.transposed
    native = _gustav.SpmmPlan(
        pattern, columns, name, calls, transpose, semiring, deterministic, None, "sum", place
    )
    return SpmmPlan(native, operand.data if operand.order is None else operand.like.data, operand.order)
