"""Sparse operands of every library, as the arrays of CSR."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from . import _families
from ._gustav import Pattern as NativePattern

TAKEN = (
    "scipy.sparse csr, csc and coo arrays and matrices, torch.sparse_csr, sparse_csc and sparse_coo "
    "tensors, and tuples (indptr, indices, data, shape)"
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
    def pattern(self) -> Any:
        """What the module takes as a pattern."""
        return (self.indptr, self.indices, self.shape)

    def in_csr(self) -> Operand:
        """The matrix itself in CSR: transposed arrays are brought into order, with a copy."""
        if not self.transposed:
            return self
        pattern, permutation = NativePattern(self.indptr, self.indices, self.shape, copy=False).transposed()
        data = self.data[_families.of_block(permutation, self.data)]
        indptr, indices = (_families.of_block(b, self.data) for b in (pattern.indptr, pattern.indices))
        return Operand(self.like, indptr, indices, data, pattern.shape)


def of(name: str, a: Any) -> Operand:
    """The arrays of `a`.

    Parameters
    ----------
    name
        Stands in errors.
    a
        A sparse matrix, see :data:`TAKEN`.

    Raises
    ------
    TypeError
        For anything else, naming what is taken.
    """
    scipy_format = getattr(a, "format", None)
    if scipy_format is not None and _is_scipy(a):
        return _of_scipy(name, a, scipy_format)
    if type(a).__module__.partition(".")[0] == "cupyx":
        raise NotImplementedError(
            f"{name}: matrices in the memory of a GPU are not taken yet; nearest that works: its method get()"
        )
    if isinstance(a, tuple):
        if len(a) != 4:
            raise TypeError(f"{name}: a tuple of {len(a)} is not taken; (indptr, indices, data, shape) is")
        indptr, indices, data, shape = a
        # Its own mask or gradients would be lost; SDDMM reads no values.
        data = data if data is None else _families.checked("data", data)
        return Operand(a, indptr, indices, data, (int(shape[0]), int(shape[1])))
    if _families.torch_of(a) is not None:
        return _of_torch(name, a)
    raise TypeError(f"{name}: {type(a).__name__} is not taken as a sparse matrix; {TAKEN} are")


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
        f"{name}: a matrix of SciPy's format {scipy_format!r} is not taken; its method tocsr() gives "
        "one that is"
    )


def _of_triplets(a: Any, row: Any, col: Any, data: Any, shape: tuple[int, int]) -> Operand:
    """Entries in the order of rows; entries of one position stay separate."""
    if len(row) and (row.min() < 0 or row.max() >= shape[0]):
        wrong = int(np.flatnonzero((row < 0) | (row >= shape[0]))[0])
        raise ValueError(
            f"entry {wrong}: row index {row[wrong]} is out of range (must be from 0 to {shape[0] - 1})"
        )
    indptr = np.zeros(shape[0] + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=shape[0]), out=indptr[1:])
    order = np.argsort(row, kind="stable")
    indptr = indptr.astype(col.dtype, copy=False)
    return Operand(a, indptr, col[order], data[order], shape, order=order)


def _of_torch(name: str, a: Any) -> Operand:
    torch = sys.modules["torch"]
    if a.ndim != 2:
        raise ValueError(f"{name}: expected two dimensions, found {a.ndim}")
    if a.requires_grad and torch.is_grad_enabled():
        raise TypeError(
            f"{name}: the tensor requires gradients, which this function does not compute; "
            "gustav.torch does, or give its detach()"
        )
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


def result(like: Any, indptr: Any, indices: Any, data: Any, shape: tuple[int, int], csc: bool) -> Any:
    """A sparse matrix of the family of `like`, from blocks of the library: in CSC if `csc`, else CSR."""
    torch = _families.torch_of(like)
    arrays = [_families.of_block(block, like) for block in (indptr, indices, data)]
    if torch is not None:
        make = torch.sparse_csc_tensor if csc else torch.sparse_csr_tensor
        return make(*arrays, size=shape, check_invariants=False)
    indptr, indices, data = arrays
    if isinstance(like, tuple):
        return Csr(indptr, indices, data, shape)
    container = like._csc_container if csc else like._csr_container
    return container((data, indices, indptr), shape=shape, copy=False)
