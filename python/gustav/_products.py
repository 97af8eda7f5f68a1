"""Products in one call."""

from __future__ import annotations

from typing import Any

from . import _device, _families, _gustav, _memory, _operands
from ._operands import Operand

REDUCTIONS = ("sum", "mean", "max", "min")


def spmm(
    a: Any,
    b: Any,
    *,
    out: Any = None,
    alpha: float | None = None,
    beta: float | None = None,
    transpose: bool = False,
    semiring: str = "plus_times",
    reduce: str = "sum",
    threads: int | None = None,
    deterministic: bool = False,
    stream: Any = None,
) -> Any:
    """Sparse × dense: ``alpha * op(a) @ b + beta * out``.

    Parameters
    ----------
    a : sparse matrix, m × k
        SciPy's and CuPy's csr, csc and coo arrays and matrices, torch.sparse_csr, sparse_csc and
        sparse_coo tensors, or ``(indptr, indices, data, shape)``. CSR is read in place, CSC as the CSR of
        the transpose; COO is sorted by rows, which copies. Duplicate entries add up.
    b : array, k × n or k
        NumPy's, PyTorch's, CuPy's, or any with ``__dlpack__``, ``__array_interface__`` or
        ``__cuda_array_interface__``. Row- and column-major arrays with a leading dimension are read in
        place; other strides are copied. All operands are in host memory, or on one GPU.
    out : array, m × n or m, optional
        Where the result is written; must not overlap an operand.
    alpha, beta : number, optional
        Factors; the one and the zero of the semiring where not given. A `beta` that is not given leaves
        `out` unread.
    transpose : bool
        Multiplies the transpose of `a`.
    semiring : str
        ``plus_times``, ``min_plus``, ``max_times``, ``or_and``, ``plus_first`` or ``plus_second``.
    reduce : str
        What is made of the products of a row: their ``sum``, their ``mean`` over the number of stored
        entries, the largest (``max``) or the smallest (``min``). Rows without entries give 0. NaN wins
        over numbers.
    threads : int, optional
        Instead of what :func:`set_num_threads` says.
    deterministic : bool
        Asks for results that are the same to the bit from run to run, for any number of threads.
    stream : int or object, optional
        For operands on a GPU: the stream that the work goes to, as the driver's handle, by
        ``__cuda_stream__``, or a stream of PyTorch or CuPy; else the current stream of `b`'s library. Work
        that was queued on that current stream before is waited for. A stream that is given by its handle
        must live as long as what was planned for its operands, most easily as long as the program.

    Returns
    -------
    array, m × n or m
        Of the library of `b`, or `out`.

    Raises
    ------
    ValueError
        For shapes that do not fit, indices out of range, row offsets that go back.
    TypeError
        For types that are not taken; the text says which are.
    NotImplementedError
        With the nearest thing that works.

    Notes
    -----
    From the second product of a SciPy matrix or a tensor on, its indices are kept in a copy, which lives as
    long as they do, and plans are made for it. In host memory, and of CuPy, the indices are compared with it in every
    call, so that any write to them is noticed. Of a tensor on a GPU those writes are noticed that PyTorch counts:
    not those through ``.data``, nor those of another library that shares its memory by DLPack.

    Operands of two types are promoted as NumPy or PyTorch does, which copies one of them. Other
    threads of Python run during the product; they must not write to or resize the operands.

    On a GPU the result is complete in the order of the stream. This function may wait for the device: its
    first call validates the indices there. :func:`plan_spmm` is for loops and for captures in a graph.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, gustav
    >>> a = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    >>> gustav.spmm(a, np.ones((3, 2)))
    array([[3., 3.],
           [3., 3.]])
    >>> gustav.spmm(a, np.ones((2, 1)), transpose=True).ravel()
    array([1., 3., 2.])
    """
    operand = _operands.of("a", a)
    b = _families.checked("b", b)
    place = _device.place_of(stream, ("b", b), ("a", operand.data))
    dimensions = len(b.shape)
    if dimensions not in (1, 2):
        raise ValueError(f"b: expected one or two dimensions, found {dimensions}")
    data, dense = _families.common_type(operand.data, b)
    transpose = bool(transpose) != operand.transposed
    rows = operand.shape[1] if transpose else operand.shape[0]
    _check_reduction(reduce, semiring)
    result = _result(out, beta, dense, (rows, *b.shape[1:]))
    columns = b.shape[1] if dimensions == 2 else 1
    name = _families.dtype_name(dense)
    if place is not None:
        _no_threads(threads)
    plan = _memory.spmm_plan(
        operand, columns, name, transpose, semiring, reduce, bool(deterministic), threads, place
    )
    arrays = _device.exported(data, place), _device.exported(dense, place), _device.written("out", result, place)
    if plan is not None:
        plan.execute_into(*arrays, alpha, beta, None, place)
        _device.settle(place, data, dense, result, *arrays)
    else:
        pattern = operand.pattern_at(place)
        operands = (pattern, *arrays, alpha, beta, transpose, semiring)
        if dimensions == 1 and reduce == "sum" and _is_contiguous(result):
            _gustav.spmv(*operands, deterministic, threads, place)
        else:
            _gustav.spmm(*operands, reduce, deterministic, threads, place)
        _device.settle(place, operand.indptr, operand.indices, *pattern[:2], data, dense, result, *arrays)
    return out if out is not None else _families.give_back(b, result)


def spmv(
    a: Any,
    x: Any,
    *,
    out: Any = None,
    alpha: float | None = None,
    beta: float | None = None,
    transpose: bool = False,
    semiring: str = "plus_times",
    reduce: str = "sum",
    threads: int | None = None,
    deterministic: bool = False,
    stream: Any = None,
) -> Any:
    """Sparse × vector: ``alpha * op(a) @ x + beta * out``; see :func:`spmm`.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, gustav
    >>> a = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    >>> gustav.spmv(a, np.array([1.0, 10.0, 100.0]), alpha=2.0)
    array([402.,  60.])
    """
    x = _families.checked("x", x)
    if len(x.shape) != 1:
        raise ValueError(f"x: expected one dimension, found {len(x.shape)}; spmm takes matrices")
    return spmm(
        a,
        x,
        out=out,
        alpha=alpha,
        beta=beta,
        transpose=transpose,
        semiring=semiring,
        reduce=reduce,
        threads=threads,
        deterministic=deterministic,
        stream=stream,
    )


def spgemm(
    a: Any,
    b: Any,
    *,
    mask: Any = None,
    alpha: float | None = None,
    semiring: str = "plus_times",
    sorted: bool = True,
    deterministic: bool = False,
    threads: int | None = None,
    stream: Any = None,
) -> Any:
    """Sparse × sparse: ``alpha * a @ b``, all of it or at the entries of a mask.

    Parameters
    ----------
    a, b : sparse matrix, m × k and k × n
        As in :func:`spmm`. Two matrices in CSC are multiplied as they are; one in CSC beside one in
        CSR is converted where the product needs it, which copies.
    mask : sparse matrix, m × n, optional
        Entries of the result outside its pattern are not computed. Its entries must be unique.
    alpha : number, optional
        A factor.
    semiring : str
        See :func:`spmm`.
    sorted : bool
        Whether the columns of every row must increase; unsorted can be faster.
    deterministic, threads, stream
        See :func:`spmm`.

    Returns
    -------
    sparse matrix, m × n
        Of the library of `a`: in CSC if both operands are, else in CSR. Entries that come out as zero
        are stored.

    Examples
    --------
    >>> import scipy.sparse as sp, gustav
    >>> a = sp.csr_array([[0.0, 1.0], [1.0, 0.0]])
    >>> gustav.spgemm(a, a).toarray()
    array([[1., 0.],
           [0., 1.]])
    """
    first, second = _operands.of("a", a), _operands.of("b", b)
    of_mask = None if mask is None else _operands.of("mask", mask, reads_values=False)
    place = _device.place_of(stream, ("a", first.data), ("b", second.data))
    like = first.like
    csc = first.transposed and second.transposed
    if csc:
        # The arrays are those of the transposes, and so are those of the result.
        first, second = second, first
        transpose = False
        if of_mask is not None:
            of_mask = of_mask if of_mask.transposed else _flipped(of_mask)
    else:
        transpose = first.transposed
        second = second.in_csr()
        of_mask = None if of_mask is None else of_mask.in_csr()
    of_first, of_second = _families.common_type(first.data, second.data)
    patterns = _one_width(first, second, of_mask)
    if place is not None:
        _no_threads(threads)
        like_operand = _operands.of("a", a)
        given = [p if p is None else Operand(None, p[0], p[1], None, p[2]).pattern_at(place) for p in patterns]
        values = [_device.exported(values, place) for values in (of_first, of_second)]
        pattern, block = _gustav.spgemm_on_gpu(
            given[0],
            values[0],
            given[1],
            values[1],
            given[2],
            alpha,
            transpose,
            semiring,
            sorted,
            deterministic,
            place,
        )
        held = [array for p in (*patterns, *given) if p is not None for array in p[:2]]
        _device.settle(place, of_first, of_second, *values, *held)
        return _operands.result_on_gpu(like_operand, pattern, block, csc, place)
    blocks = _gustav.spgemm(
        patterns[0],
        of_first,
        patterns[1],
        of_second,
        patterns[2],
        alpha,
        transpose,
        semiring,
        sorted,
        deterministic,
        threads,
    )
    rows = first.shape[1] if transpose else first.shape[0]
    shape = (rows, second.shape[1])
    return _operands.result(like, *blocks, shape[::-1] if csc else shape, csc)


def sddmm(
    p: Any,
    x: Any,
    y: Any,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    values: Any = None,
    out: Any = None,
    threads: int | None = None,
    stream: Any = None,
) -> Any:
    """Dense × dense at the places of a pattern: values of ``alpha * (x @ y.T) + beta * values``.

    Parameters
    ----------
    p : sparse matrix, m × n
        Its pattern says which elements are computed; its values are not read. See :func:`spmm`.
    x, y : array, m × d and n × d
        As `b` of :func:`spmm`.
    alpha, beta : number
        Factors.
    values : array, nnz, optional
        What `beta` multiplies; `out` itself where not given.
    out : array, nnz, optional
        Where the result is written.
    threads, stream
        See :func:`spmm`.

    Returns
    -------
    array, nnz
        In the order of the entries of `p`, of the library of `x`, or `out`.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, gustav
    >>> p = sp.csr_array([[1.0, 0.0], [0.0, 1.0]])
    >>> gustav.sddmm(p, np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]]))
    array([3., 8.])
    """
    operand = _operands.of("p", p, reads_values=False)
    x, y = _families.checked("x", x), _families.checked("y", y)
    place = _device.place_of(stream, ("x", x), ("y", y), ("p", operand.indices))
    if place is not None:
        _no_threads(threads)
    first, second = _families.common_type(x, y)
    nnz, like = operand.indices.shape[0], first
    if operand.transposed:
        first, second = second, first
    if values is not None:
        values = vector("values", values, nnz)
    if out is not None:
        out = vector("out", _families.writable("out", out), nnz)
    if beta:
        expect_out("values or out", beta, out if values is None else values)
    # Where entries were sorted by rows, values are brought into their order and back.
    order = operand.order
    result = out if out is not None and order is None else _families.empty(like if out is None else out, (nnz,))
    before = out if values is None else values
    if order is not None and isinstance(result, _gustav.DeviceArray):
        raise NotImplementedError(
            f"p: entries in COO beside x of {type(x).__name__} on a GPU are not implemented; nearest that works: p in CSR"
        )
    if beta and before is not result:
        if isinstance(result, _gustav.DeviceArray):
            result.assign(_device.exported(before, place), place)
        else:
            result[:] = before if order is None else before[order]
    factors = (_integral(alpha, first), _integral(beta, first))
    pattern = operand.pattern_at(place)
    arrays = _device.exported(first, place), _device.exported(second, place), _device.written("out", result, place)
    _gustav.sddmm(pattern, *arrays, *factors, threads, place)
    _device.settle(place, operand.indptr, operand.indices, *pattern[:2], first, second, result, *arrays)
    if order is not None:
        _device.rejoin(place, result)
        sorted_values = result
        result = _families.empty(like, (nnz,)) if out is None else out
        result[order] = sorted_values
    return out if out is not None else _families.give_back(x, result)


def _integral(factor: Any, like: Any) -> Any:
    """A factor for values of `like`: 1.0 stands for 1 beside integers."""
    is_integer = getattr(factor, "is_integer", None)
    if is_integer is None or not _families.dtype_name(like).startswith("int"):
        return factor
    return int(factor) if is_integer() else factor


def _no_threads(threads: int | None) -> None:
    if threads is not None:
        raise ValueError("threads: products on a GPU have none; leave it out")


def _result(out: Any, beta: Any, dense: Any, shape: tuple[int, ...]) -> Any:
    expect_out("out", beta, out)
    return _families.empty(dense, shape) if out is None else _families.writable("out", out)


def expect_out(what: str, beta: Any, before: Any) -> None:
    """Refuses a `beta` with nothing `before` that it multiplies; `what` would be that."""
    if beta is not None and before is None:
        raise ValueError(f"beta: there is nothing that it multiplies; give {what}")


def vector(name: str, array: Any, length: int) -> Any:
    """`array`, checked as :func:`_families.checked` does, if it is a vector of `length` elements.

    Raises
    ------
    ValueError
        With both sizes.
    """
    array = _families.checked(name, array)
    if tuple(array.shape) != (length,):
        found = " x ".join(map(str, array.shape))
        raise ValueError(f"{name}: expected {length} elements, found {found}")
    return array


def _is_contiguous(out: Any) -> bool:
    """Whether the elements of a vector are neighbours, as SpMV writes them."""
    strides = getattr(out, "strides", None)
    if strides is not None and not callable(strides):
        return bool(strides == (out.itemsize,))
    stride = getattr(out, "stride", None)
    return bool(callable(stride) and stride() == (1,))


def _check_reduction(reduce: str, semiring: str) -> None:
    if reduce not in REDUCTIONS:
        raise ValueError(f"reduce: {reduce!r} is not known; {', '.join(REDUCTIONS)} are")
    if reduce != "sum" and semiring != "plus_times":
        raise ValueError(f"reduce: {reduce!r} needs the semiring plus_times, not {semiring!r}")


def _flipped(operand: Operand) -> Operand:
    """The same matrix as CSR arrays of its transpose."""
    rows, columns = operand.shape
    arrays = operand.indptr, operand.indices, operand.data
    other = Operand(operand.like, *arrays, (rows, columns), transposed=True).in_csr()
    return Operand(operand.like, other.indptr, other.indices, other.data, other.shape, transposed=True)


def _one_width(*operands: Operand | None) -> list[Any]:
    """The patterns of operands with index arrays of one type."""
    present = [operand for operand in operands if operand is not None]
    names = {_families.dtype_name(a) for o in present for a in (o.indptr, o.indices)}
    if len(names) <= 1:
        return [None if operand is None else operand.pattern for operand in operands]

    wide = _operands.widened
    return [
        None if o is None else (wide(o.indptr), wide(o.indices), o.shape) for o in operands
    ]
