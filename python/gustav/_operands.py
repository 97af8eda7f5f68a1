"""Sparse operands of every library, as the arrays of CSR."""

from __future__ import annotations

import operator
import sys
from typing import Any, NamedTuple

import numpy as np

from . import _device, _families
from ._gustav import Pattern as NativePattern

TAKEN = (
    "csr, csc and coo matrices of scipy.sparse and cupyx.scipy.sparse, torch.sparse_csr, sparse_csc and "
    "sparse_coo tensors, and tuples (indptr, indices, data, shape)"
)


class Csr(NamedTuple):
    """A sparse matrix in CSR, where SciPy is not installed or its arrays were given as a tuple.

    Attributes
    ----------
    indptr
        Row offsets, one more than there are rows.
    indices
        Column indices.
    data
        Values.
    shape
        Rows and columns.
    """

    indptr: Any
    indices: Any
    data: Any
    shape: tuple[int, int]


class Operand:
    """A sparse matrix as CSR arrays of it or of its transpose.

    Attributes
    ----------
    indptr, indices, data
        The arrays, in place where the operand has such.
    shape
        Of the stored arrays.
    transposed
        Whether they are those of the transpose.
    order
        For each stored entry its position in the operand's own order, or ``None`` where that is the same.
    like
        The operand, for results of its family.
    """

    __slots__ = ("data", "indices", "indptr", "like", "order", "shape", "transposed")

    def __init__(
        self,
        like: Any,
        indptr: Any,
        indices: Any,
        data: Any,
        shape: tuple[int, int],
        transposed: bool = False,
        order: Any = None,
    ) -> None:
        self.like = like
        self.indptr, self.indices, self.data = indptr, indices, data
        self.shape = shape
        self.transposed = transposed
        self.order = order

    @property
    def pattern(self) -> tuple[Any, Any, tuple[int, int]]:
        """What the module takes as a pattern."""
        return (self.indptr, self.indices, self.shape)

    def pattern_at(self, place: _device.Place) -> tuple[Any, Any, tuple[int, int]]:
        """The same for arrays at a place, for one call."""
        indptr = self.indptr
        if place is not None and (_width(indptr), _width(self.indices)) == ("32", "64"):
            indptr = widened(indptr)
        return (_device.exported(indptr, place), _device.exported(self.indices, place), self.shape)

    def in_csr(self) -> Operand:
        """The matrix itself in CSR: transposed arrays are brought into order, with a copy."""
        if not self.transposed:
            return self
        if _device.number(self.indices) is not None:
            indptr, indices, order = transposed_on_gpu(self.indptr, self.indices, self.shape)
            return Operand(self.like, indptr, indices, self.data[order], self.shape[::-1])
        pattern, permutation = NativePattern(self.indptr, self.indices, self.shape, copy=False).transposed()
        data = self.data[_families.of_block(permutation, self.data)]
        indptr, indices = (_families.of_block(b, self.data) for b in (pattern.indptr, pattern.indices))
        return Operand(self.like, indptr, indices, data, pattern.shape)


def of(name: str, a: Any, reads_values: bool = True) -> Operand:
    """The arrays of `a`.

    Parameters
    ----------
    name
        Stands in errors.
    a
        A sparse matrix, see :data:`TAKEN`.
    reads_values
        Whether its values are needed, not its pattern alone.

    Raises
    ------
    TypeError
        For anything else, naming what is taken.
    """
    scipy_format = getattr(a, "format", None)
    if scipy_format is not None and _is_scipy(a):
        return _of_scipy(name, a, scipy_format)
    if scipy_format is not None and type(a).__module__.partition(".")[0] == "cupyx":
        return _of_scipy(name, a, scipy_format)
    if isinstance(a, tuple):
        if len(a) != 4:
            raise TypeError(f"{name}: a tuple of {len(a)} is not taken; (indptr, indices, data, shape) is")
        indptr, indices, data, shape = a
        if data is None and reads_values:
            raise TypeError(f"{name}: the data of the tuple are None; give an array of the values")
        # Its own mask or gradients would be lost.
        data = data if data is None else _families.checked("data", data)
        return Operand(a, indptr, indices, data, sizes("shape", shape))
    if _families.torch_of(a) is not None:
        return _of_torch(name, a)
    raise TypeError(f"{name}: {type(a).__name__} is not taken as a sparse matrix; {TAKEN} are")


def sizes(name: str, shape: Any) -> tuple[int, int]:
    """Rows and columns, as Python's integers.

    Raises
    ------
    TypeError
        For what is not two integers.
    ValueError
        For integers that are negative or that 64 bits do not hold.
    """
    try:
        rows, columns = (operator.index(n) for n in shape)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: expected two integers, rows and columns, found {shape!r}") from None
    for n in (rows, columns):
        if n < 0:
            raise ValueError(f"{name}: {n} is negative, expected two sizes")
        if n > sys.maxsize:
            raise ValueError(f"{name}: {n} is too large, expected sizes of at most {sys.maxsize}")
    return rows, columns


def _is_scipy(a: Any) -> bool:
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(a)


def _of_scipy(name: str, a: Any, scipy_format: str) -> Operand:
    if len(a.shape) != 2:
        raise ValueError(f"{name}: expected two dimensions, found {len(a.shape)}")
    if scipy_format == "csr":
        return Operand(a, a.indptr, a.indices, a.data, a.shape)
    if scipy_format == "csc":
        return Operand(a, a.indptr, a.indices, a.data, a.shape[::-1], transposed=True)
    if scipy_format == "coo":
        return _of_triplets(a, a.row, a.col, a.data, a.shape)
    raise TypeError(
        f"{name}: a matrix of the format {scipy_format!r} is not taken; its method tocsr() gives one that is"
    )


def _of_triplets(a: Any, row: Any, col: Any, data: Any, shape: tuple[int, int]) -> Operand:
    """Entries in the order of rows; entries of one position stay separate."""
    xp = _families.namespace(row)
    if len(row) and (row.min() < 0 or row.max() >= shape[0]):
        wrong = int(xp.flatnonzero((row < 0) | (row >= shape[0]))[0])
        raise ValueError(
            f"entry {wrong}: row index {row[wrong]} is out of range (must be from 0 to {shape[0] - 1})"
        )
    indptr = xp.zeros(shape[0] + 1, np.int64)
    indptr[1:] = xp.cumsum(xp.bincount(row, minlength=shape[0]))
    order = xp.argsort(row, kind="stable")
    if len(col) <= np.iinfo(col.dtype).max:
        indptr = indptr.astype(col.dtype, copy=False)
    return Operand(a, indptr, col[order], data[order], shape, order=order)


def _of_torch(name: str, a: Any) -> Operand:
    torch = sys.modules["torch"]
    if a.ndim != 2:
        raise ValueError(f"{name}: expected two dimensions, found {a.ndim}")
    _families.refuse_gradients(name, a)
    like, a = a, a.detach()
    shape = tuple(a.shape)
    if a.layout == torch.sparse_csr:
        return Operand(like, a.crow_indices(), a.col_indices(), a.values(), shape)
    if a.layout == torch.sparse_csc:
        indptr, indices = a.ccol_indices(), a.row_indices()
        return Operand(like, indptr, indices, a.values(), shape[::-1], transposed=True)
    if a.layout == torch.sparse_coo:
        csr = a.coalesce().to_sparse_csr()
        return Operand(like, csr.crow_indices(), csr.col_indices(), csr.values(), shape)
    raise TypeError(f"{name}: a dense tensor is not taken as a sparse matrix; {TAKEN} are")


def _width(array: Any) -> str:
    return _families.dtype_name(array)[-2:]


def widened(array: Any) -> Any:
    """Indices as integers of 64 bits."""
    torch = _families.torch_of(array)
    return array.to(torch.int64) if torch is not None else _families.namespace(array).asarray(array, np.int64)


def transposed_on_gpu(indptr: Any, indices: Any, shape: tuple[int, int]) -> tuple[Any, Any, Any]:
    """Row offsets and column indices of the transpose, and for each of its entries the position of the same before."""
    rows, columns = shape
    torch = _families.torch_of(indices)
    if torch is not None:
        order = torch.argsort(indices, stable=True)
        of_entries = torch.arange(rows, dtype=indices.dtype, device=indices.device)
        row = of_entries.repeat_interleave(indptr.diff(), output_size=len(indices))
        offsets = torch.zeros(columns + 1, dtype=indptr.dtype, device=indices.device)
        offsets[1:] = torch.bincount(indices, minlength=columns).cumsum(0)
        return offsets, row[order], order
    xp = _families.namespace(indices)
    order = xp.argsort(indices, kind="stable")
    row = xp.searchsorted(indptr, xp.arange(len(indices), dtype=indptr.dtype), side="right") - 1
    offsets = xp.zeros(columns + 1, indptr.dtype)
    offsets[1:] = xp.cumsum(xp.bincount(indices, minlength=columns))
    return offsets, row.astype(indices.dtype)[order], order


def result_on_gpu(operand: Operand, pattern: Any, values: Any, csc: bool, place: _device.Place) -> Any:
    """As :func:`result`, of a pattern and values of the library on a GPU, which are copied."""
    like, (rows, columns) = operand.data, pattern.shape
    of_offsets, of_indices = pattern.index_types
    indptr = _families.empty_vector(like, rows + 1, of_offsets)
    indices = _families.empty_vector(like, pattern.nnz, of_indices)
    pattern.copy_into(*(_device.exported(array, place) for array in (indptr, indices)), place)
    _device.settle(place, indptr, indices)
    arrays = indptr, indices, _families.copied(values, like, place)
    indptr, indices, data = (_families.give_back(like, array) for array in arrays)
    return _made(operand.like, indptr, indices, data, (columns, rows) if csc else (rows, columns), csc)


def result(like: Any, indptr: Any, indices: Any, data: Any, shape: tuple[int, int], csc: bool) -> Any:
    """A sparse matrix of the family of `like`, from blocks of the library: in CSC if `csc`, else CSR."""
    indptr, indices, data = (_families.of_block(block, like) for block in (indptr, indices, data))
    return _made(like, indptr, indices, data, shape, csc)


def _made(like: Any, indptr: Any, indices: Any, data: Any, shape: tuple[int, int], csc: bool) -> Any:
    arrays = indptr, indices, data
    torch = _families.torch_of(like)
    if torch is not None:
        make = torch.sparse_csc_tensor if csc else torch.sparse_csr_tensor
        return make(*arrays, size=shape, check_invariants=False)
    if isinstance(like, tuple):
        return Csr(indptr, indices, data, shape)
    if type(like).__module__.partition(".")[0] == "cupyx":
        from cupyx.scipy import sparse  # type: ignore[import-not-found,unused-ignore]

        of_cupy = sparse.csc_matrix if csc else sparse.csr_matrix
        return of_cupy((data, indices, indptr), shape=shape)
    container = like._csc_container if csc else like._csr_container
    return container((data, indices, indptr), shape=shape, copy=False)
