"""Sparse matrices and patterns whose rows are spread over ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _device, _families, _gustav, _operands
from . import _arguments
from ._ranks import Ranks, expect_ranks


class DistPattern:
    """A pattern of which every rank has consecutive rows, and knows of every column which rank has it: the rank that
    has row j of a dense B, element j of x, and row j of a product with the transpose. Making it is collective.

    Parameters
    ----------
    ranks : Ranks
    local : sparse matrix, or (indptr, indices, data, shape)
        The rows of this rank, over all columns; rank 0 has the first rows, and so on. Its values are not read, and
        ``data`` may be ``None``. The arrays are copied, to host memory from a GPU.
    columns : sequence of int, optional
        How many columns every rank has; where not given as many as rows, for a square matrix, else evenly.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns over all ranks.
    nnz, local_nnz : int
        Nonzeros over all ranks, and of this one.
    row_offsets, column_offsets : list of int
        First rows and columns of the ranks, then their number.
    """

    def __init__(self, ranks: Ranks, local: Any, columns: Sequence[int] | None = None) -> None:
        self.ranks = expect_ranks(ranks)
        with self.ranks._preparing():
            operand = _operands.of("local", local, reads_values=False).in_csr()
            indptr, indices = (_to_host("local", array) for array in (operand.indptr, operand.indices))
            rows, width = operand.shape
            counts = None if columns is None else _arguments.counts("columns", columns)
        if counts is None:
            counts = _like_rows(self.ranks, rows, width)
        self._begin(_gustav.DistPattern(self.ranks._native, (indptr, indices, operand.shape), counts))

    def _begin(self, native: _gustav.DistPattern) -> None:
        self._native = native
        self.shape: tuple[int, int] = native.shape
        self.nnz, self.local_nnz = native.nnz, native.local_nnz
        self.row_offsets, self.column_offsets = native.row_offsets, native.column_offsets
        rank = self.ranks.rank
        self.local_rows = self.row_offsets[rank + 1] - self.row_offsets[rank]
        self.local_columns = self.column_offsets[rank + 1] - self.column_offsets[rank]
        self._plans: dict[tuple[Any, ...], Any] = {}

    @classmethod
    def _of_native(cls, ranks: Ranks, native: _gustav.DistPattern) -> DistPattern:
        pattern = cls.__new__(cls)
        pattern.ranks = ranks
        pattern._begin(native)
        return pattern

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"DistPattern({rows} x {columns}, {self.nnz} nonzeros, {self.local_nnz} on {self.ranks!r})"


class DistCsr:
    """A sparse matrix of which every rank has consecutive rows: a pattern, and the values of this rank. Making it is
    collective.

    Parameters
    ----------
    ranks, local, columns
        As of :class:`DistPattern`; values are those of `local`, in place where its arrays are in the order of rows.
        Where they are on a GPU, the rank computes there.

    Attributes
    ----------
    pattern : DistPattern
    data : array
        Values of this rank, which may change under the pattern.
    """

    def __init__(self, ranks: Ranks, local: Any, columns: Sequence[int] | None = None) -> None:
        ranks = expect_ranks(ranks)
        with ranks._preparing():
            operand = _operands.of("local", local).in_csr()
            if operand.data is None:
                raise TypeError("local: a matrix with values is taken; gustav.mpi.DistPattern takes one without")
            if tuple(operand.data.shape) != tuple(operand.indices.shape):
                values, indices = tuple(operand.data.shape), tuple(operand.indices.shape)
                raise ValueError(f"local: values of the shape {values} for column indices of the shape {indices}")
        arrays = (operand.indptr, operand.indices, None, operand.shape)
        self.pattern = DistPattern(ranks, arrays, columns)
        self.data = operand.data
        self._like = operand.like

    @classmethod
    def scatter(cls, ranks: Ranks, a: Any, order: str = "stored") -> tuple[DistCsr, Any]:
        """Sends the rows of a matrix that rank 0 has to the ranks, so that each has nearly the same number of nonzeros.
        Collective.

        Parameters
        ----------
        ranks : Ranks
        a : sparse matrix, or (indptr, indices, data, shape)
            On rank 0 the matrix, of which copies are made in host memory; ``None`` on others.
        order : str
            What rows are brought into, and columns as well where the matrix is square, so that neighbours are on one
            rank and fewer rows of a dense operand are sent: ``"reverse-cuthill-mckee"`` or ``"label-propagation"``, or
            another name of ``docs/orders``. ``"stored"`` leaves them.

        Returns
        -------
        matrix : DistCsr
            In host memory, of SciPy where it is installed. Of a square matrix columns are spread as rows, else evenly.
        rows : array of int64
            The number in `a` of each row of this rank: of a result the rank has those rows, and of a dense operand of
            a square matrix it gives them.

        Examples
        --------
        >>> import numpy as np, scipy.sparse as sp, gustav.mpi as gm
        >>> ranks, x = gm.Ranks.alone(), np.array([1.0, 10.0, 100.0])
        >>> whole = sp.csr_array([[0.0, 0.0, 2.0], [0.0, 3.0, 0.0], [1.0, 0.0, 0.0]])
        >>> a, rows = gm.DistCsr.scatter(ranks, whole if ranks.rank == 0 else None, order="reverse-cuthill-mckee")
        >>> y = np.empty(3)
        >>> y[rows] = gm.spmv(a, x[rows])
        >>> y
        array([200.,  30.,   1.])
        """
        ranks = expect_ranks(ranks)
        with ranks._preparing():
            order = _arguments.word("order", order, '"stored" or "reverse-cuthill-mckee"')
            whole = None
            if a is not None:
                operand = _operands.of("a", a).in_csr()
                indptr, indices, data = (
                    _to_host("a", array) for array in (operand.indptr, operand.indices, operand.data)
                )
                whole = ((indptr, indices, operand.shape), data)
        native, values, rows = _gustav.scatter(ranks._native, whole, order)
        pattern = DistPattern._of_native(ranks, native)
        return cls._of(pattern, _families.of_block(values), _of_numpy()), _families.of_block(rows)

    @classmethod
    def _of(cls, pattern: DistPattern, data: Any, like: Any) -> DistCsr:
        matrix = cls.__new__(cls)
        matrix.pattern, matrix.data, matrix._like = pattern, data, like
        return matrix

    @property
    def ranks(self) -> Ranks:
        """The ranks."""
        return self.pattern.ranks

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns over all ranks."""
        return self.pattern.shape

    @property
    def nnz(self) -> int:
        """Nonzeros over all ranks."""
        return self.pattern.nnz

    def local(self) -> Any:
        """The rows of this rank, over all columns, in CSR of the library that the matrix was made of."""
        native = self.pattern._native
        blocks = (native.indptr, native.indices)
        indptr, indices = (_beside(_families.of_block(block, self.data), self.data) for block in blocks)
        shape = (self.pattern.local_rows, self.shape[1])
        return _operands._made(self._like, indptr, indices, self.data, shape, False)

    def __repr__(self) -> str:
        return f"DistCsr of {_families.dtype_name(self.data)}, {self.pattern!r}"


def ranks_of(**operands: Any) -> Ranks:
    """The ranks of the first operand that has some: an error in another operand is reported to these.

    A rank that has none raises alone: it has no communicator.
    """
    for operand in operands.values():
        if isinstance(operand, (DistCsr, DistPattern)):
            return operand.ranks
    ((name, operand), *_) = operands.items()
    raise TypeError(f"{name}: {type(operand).__name__} is not taken; gustav.mpi.DistCsr(ranks, local) makes what is")


def expect_matrix(name: str, a: Any) -> DistCsr:
    """`a`, which has values."""
    if isinstance(a, DistCsr):
        return a
    raise TypeError(f"{name}: {type(a).__name__} is not taken; gustav.mpi.DistCsr(ranks, local) is, which has values")


def expect_pattern(name: str, a: Any) -> DistPattern:
    """`a`, which is a pattern."""
    if isinstance(a, DistPattern):
        return a
    raise TypeError(
        f"{name}: {type(a).__name__} is not taken; a gustav.mpi.DistPattern is, such as the `pattern` of a DistCsr"
    )


def _of_numpy() -> Any:
    """A matrix of the family that ranks get which have given none."""
    try:
        from .._scipy import csr_array
    except ModuleNotFoundError:
        return ()
    return csr_array((0, 0))


def _to_host(name: str, array: Any) -> Any:
    """A copy in host memory of an array on a GPU; another as it is."""
    if _device.number(array) is None:
        return array
    if _families.torch_of(array) is not None:
        return array.cpu()
    if _families.cupy_of(array) is not None:
        return array.get()
    raise NotImplementedError(
        f"{name}: arrays of {type(array).__name__} on a GPU are not copied to host memory; nearest that works: those "
        "of PyTorch and CuPy"
    )


def _beside(array: Any, like: Any) -> Any:
    """`array` on the GPU of `like`, which is of the same library, where that is on one."""
    if _device.number(like) is None:
        return array
    if _families.torch_of(like) is not None:
        return array.to(like.device)
    cupy = _families.cupy_of(like)
    if cupy is None:
        return array
    with like.device:
        return cupy.asarray(array)


def _like_rows(ranks: Ranks, rows: int, width: int) -> list[int] | None:
    """As many columns of every rank as it has rows, where both are as many."""
    # A rank that failed before is not there to say how many.
    ranks._native.check("a matrix over ranks without columns=")
    counts = [int(text) for text in ranks._native.gather_text(str(rows))]
    return counts if sum(counts) == width else None
