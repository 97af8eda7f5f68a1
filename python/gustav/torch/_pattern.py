"""Patterns of PyTorch's programs."""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import _device, _families, _gustav, _operands
from ._eager import products_of
from ._layouts import as_one, expect_tensor, exported, flat, for_module
from ._transforms import without_transforms

# Plans that one pattern keeps, the oldest dropped first.
_MOST_PLANS = 64

# Operators take tensors and numbers; a pattern reaches them by its number, which no other ever has.
_numbers = itertools.count(1)
_patterns: weakref.WeakValueDictionary[int, Pattern] = weakref.WeakValueDictionary()


def _begin_child() -> None:
    """Drops plans that a thread of the parent may have been executing. Those on a GPU stay: a child refuses them."""
    for pattern in list(_patterns.values()):
        if pattern._gpu is None:
            pattern._plans.clear()
            pattern._masked.clear()
            if pattern._eager is not None:
                pattern._eager.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)


def of_handle(handle: int) -> Pattern:
    """The pattern with this number.

    Raises
    ------
    RuntimeError
        When the program has dropped it, as only a compiled function can find it.
    """
    pattern = _patterns.get(handle)
    if pattern is None:
        raise RuntimeError(
            "the Pattern of this product is gone; keep it until the backward pass of a compiled "
            "function has run"
        )
    return pattern


def concrete_pattern(handle: Any) -> Pattern | None:
    """The pattern, for a backward pass to find; a traced function has a symbol in place of its number."""
    return of_handle(handle) if isinstance(handle, int) else None


class Pattern:
    """Where the nonzeros of a sparse matrix are; keeps the plans of its products.

    Parameters
    ----------
    crow : tensor of int32 or int64, rows + 1
        Row offsets.
    col : tensor of the same type, nnz
        Column indices. They may repeat, except in :func:`spgemm`.
    size : tuple of int
        Rows and columns.
    copy : bool
        ``False`` reads the tensors where they are, by the promise that nobody writes to or resizes them.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    nnz : int
        Number of nonzeros.
    device : torch.device
        Where the pattern is, and the tensors of its products.
    permutation : tensor or None
        For each nonzero the position of its value in the order that the pattern was made from, where that is
        another: ``values = weights[P.permutation]``.

    Notes
    -----
    A pattern never changes; a deep copy is the pattern itself. It can be pickled, and used in forked
    processes, on the CPU.

    On a GPU work goes to PyTorch's current stream. Making a pattern or a plan, as the first product of a kind
    does, waits for the device; later ones do not, and can be captured by ``torch.cuda.graph``. A graph keeps what its
    products need. While it is replayed on one stream, other products of the pattern must not run on another one.

    Examples
    --------
    >>> import torch, gustav.torch as gt
    >>> P = gt.Pattern(torch.tensor([0, 2, 3]), torch.tensor([0, 2, 1]), (2, 3))
    >>> P
    Pattern(2 x 3, 3 nonzeros)
    """

    @without_transforms
    def __init__(
        self, crow: Tensor, col: Tensor, size: tuple[int, int], *, copy: bool = True
    ) -> None:
        size = _operands.sizes("size", size)
        expect_tensor("crow", crow)
        expect_tensor("col", col)
        crow, col = crow.detach(), col.detach()
        if crow.device != col.device:
            raise ValueError(f"crow is on {crow.device} and col on {col.device}; give both on one")
        place = place_of(crow.device)
        if place is not None and crow.dtype == torch.int32 and col.dtype == torch.int64:
            crow = crow.to(torch.int64)
        crow, col = (_device.exported(t, place) for t in (crow, col))
        self._adopt(_gustav.Pattern(crow, col, size, copy, place))

    def _adopt(self, native: _gustav.Pattern) -> None:
        self._native = native
        self.shape = native.shape
        self.nnz = native.nnz
        self._gpu = native.gpu
        self.device = torch.device("cpu") if native.gpu is None else torch.device("cuda", native.gpu)
        self.permutation: Tensor | None = None
        self._plans: dict[Any, Any] = {}
        #: Finds plans of products of plain tensors.
        self._eager = products_of(native.gpu, native.shape, native.nnz)
        self._transpose: tuple[Pattern, Tensor] | None = None
        # By the other operand, and by mask and other operand, of SpGEMM.
        self._products: weakref.WeakKeyDictionary[Pattern, Any] = weakref.WeakKeyDictionary()
        self._masked: weakref.WeakKeyDictionary[Pattern, Any] = weakref.WeakKeyDictionary()
        self._handle = next(_numbers)
        _patterns[self._handle] = self

    @classmethod
    def _of(cls, native: _gustav.Pattern) -> Pattern:
        pattern = cls.__new__(cls)
        pattern._adopt(native)
        return pattern

    @classmethod
    @without_transforms
    def from_sparse(cls, t: Tensor) -> Pattern:
        """The pattern of a sparse tensor.

        Parameters
        ----------
        t : tensor in torch.sparse_csr, sparse_csc or sparse_coo
            A COO tensor is coalesced. The values of the pattern are ``t.values()`` for CSR and
            ``t.coalesce().values()`` for COO; for CSC they are ``t.values()[P.permutation]``.

        Examples
        --------
        >>> import torch, gustav.torch as gt
        >>> gt.Pattern.from_sparse(torch.eye(3).to_sparse())
        Pattern(3 x 3, 3 nonzeros)
        """
        expect_tensor("t", t)
        t = t.detach()
        if t.layout == torch.sparse_coo:
            t = t.coalesce()
            row, col = t.indices()
            return cls(_offsets(row, t.shape[0]), col, (t.shape[0], t.shape[1]))
        if t.layout == torch.sparse_csr:
            return cls(t.crow_indices(), t.col_indices(), (t.shape[0], t.shape[1]))
        if t.layout == torch.sparse_csc:
            of_transpose = cls(t.ccol_indices(), t.row_indices(), (t.shape[1], t.shape[0]))
            pattern, permutation = of_transpose.transposed()
            pattern.permutation = permutation
            return pattern
        raise TypeError(f"a tensor of layout {t.layout} is not taken; sparse CSR, CSC and COO are")

    @classmethod
    @without_transforms
    def from_edge_index(
        cls, edge_index: Tensor, size: tuple[int, int] | None = None
    ) -> Pattern:
        """The pattern that gathers at targets what comes from sources, of edges (source, target).

        Parameters
        ----------
        edge_index : tensor of int64, 2 × edges
            Sources and targets, in any order; edges may repeat.
        size : tuple of int, optional
            Number of targets and of sources, else one more than the largest index of both.

        Returns
        -------
        Pattern
            ``spmm(P, weights[P.permutation], x)`` sums the weighted x of the sources at each target.

        Examples
        --------
        >>> import torch, gustav.torch as gt
        >>> P = gt.Pattern.from_edge_index(torch.tensor([[1, 2, 0], [0, 0, 2]]))
        >>> gt.spmm(P, None, torch.tensor([[1.0], [10.0], [100.0]])).ravel()
        tensor([110.,   0.,   1.])
        """
        expect_tensor("edge_index", edge_index)
        if edge_index.dtype not in (torch.int32, torch.int64):
            raise TypeError(f"edge_index: indices of type {edge_index.dtype} are not taken; int64 and int32 are")
        if size is not None:
            size = _operands.sizes("size", size)
        if edge_index.ndim != 2 or edge_index.shape[0] != 2:
            raise ValueError(f"edge_index: expected 2 x edges, found {tuple(edge_index.shape)}")
        source, target = edge_index.detach()
        if size is None:
            n = int(edge_index.max()) + 1 if edge_index.numel() else 0
            size = (n, n)
        if target.numel() and (int(target.min()) < 0 or int(target.max()) >= size[0]):
            raise ValueError(
                f"edge_index: targets from {int(target.min())} to {int(target.max())}, expected 0 to "
                f"{size[0] - 1}"
            )
        permutation = torch.argsort(target, stable=True)
        pattern = cls(_offsets(target, size[0]), source[permutation], size)
        pattern.permutation = permutation
        return pattern

    @property
    def crow(self) -> Tensor:
        """Row offsets, a copy."""
        return self._arrays()[0]

    @property
    def col(self) -> Tensor:
        """Column indices, a copy."""
        return self._arrays()[1]

    @without_transforms
    def _arrays(self) -> tuple[Tensor, Tensor]:
        return arrays_of(self._native, self.device)

    @without_transforms
    def to(self, device: torch.device | str | int) -> Pattern:
        """The pattern on a device: itself if it is there, else a new one.

        Examples
        --------
        >>> import torch, gustav.torch as gt
        >>> P = gt.Pattern(torch.tensor([0, 2, 3]), torch.tensor([0, 2, 1]), (2, 3))
        >>> P.to("cpu") is P
        True
        """
        where = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        if where.type == "cuda" and where.index is None:
            where = torch.device("cuda", torch.cuda.current_device())
        if where == self.device:
            return self
        crow, col = (t.to(where) for t in self._arrays())
        moved = Pattern(crow, col, self.shape)
        moved.permutation = None if self.permutation is None else self.permutation.to(where)
        return moved

    def cuda(self, device: int | None = None) -> Pattern:
        """The pattern on a GPU, the current one where none is named; see :meth:`to`."""
        return self.to("cuda" if device is None else device)

    def cpu(self) -> Pattern:
        """The pattern in host memory; see :meth:`to`."""
        return self.to("cpu")

    def place(self) -> _device.Place:
        """Where products are queued: on a GPU, in the order of PyTorch's current stream."""
        gpu = self._gpu
        return None if gpu is None else (gpu, _device.torch_stream(torch, gpu), None)

    @without_transforms
    def transposed(self) -> tuple[Pattern, Tensor]:
        """The pattern of the transpose, and for each of its nonzeros the position of the same nonzero here.

        Made once. Products of the transpose need it not: they take ``transpose=True``.
        """
        if self._transpose is None:
            if self._gpu is not None:
                crow, col, index = _operands.transposed_on_gpu(*self._arrays(), self.shape)
                self._transpose = (Pattern(crow, col, self.shape[::-1]), index)
            else:
                native, permutation = self._native.transposed()
                index = torch.from_numpy(np.array(permutation)).to(torch.int64)
                self._transpose = (Pattern._of(native), index)
        return self._transpose

    def is_unique(self) -> bool:
        """Whether no two nonzeros are in one position."""
        unique: bool = self.cached("unique", self._count_positions)
        return unique

    def _count_positions(self) -> bool:
        if self._gpu is not None:
            columns = torch.unique(self.inner_indices(False))
            return int(torch.unique(self.positions(columns)).numel()) == self.nnz
        return self._native.is_canonical() or self._native.transposed()[0].is_canonical()

    def cached_permutation(self) -> Any:
        """The permutation, which a graph that is being captured keeps."""
        if torch.compiler.is_compiling():
            return self.permutation
        return self.cached("permutation", lambda: self.permutation)

    def positions(self, columns: Tensor) -> Tensor:
        """The :func:`positions` of the nonzeros, whose columns are among these."""
        return positions(self.shape[0], columns, self.inner_indices(True), self.inner_indices(False))

    def ones(self, dtype: torch.dtype) -> Tensor:
        """As many ones as there are nonzeros. They are kept, and must not be written."""
        ones: Tensor = self.cached(("ones", dtype), lambda: torch.ones(self.nnz, dtype=dtype, device=self.device))
        return ones

    def cached(self, key: Any, make: Callable[[], Any]) -> Any:
        """The plan or tensor that is cached under `key`, made if there is none."""
        found = self._plans.get(key)
        if self._gpu is not None and torch.cuda.is_current_stream_capturing():
            if found is None:
                # What a graph makes is the graph's.
                return without_transforms(make)()
            _gustav.keep_for_capture(self.place(), found)
        if found is None:
            found = without_transforms(make)()
            # A copy of the keys, as other threads may change the dictionary.
            for oldest in list(self._plans)[: max(0, len(self._plans) - _MOST_PLANS + 1)]:
                self._plans.pop(oldest, None)
            self._plans[key] = found
        return found

    def plan(self, key: Any, make: Callable[[], Any]) -> Any:
        """The plan that is cached under `key`, made if there is none; executing it, a graph that is captured holds it."""
        plan = self._plans.get(key)
        return self.cached(key, make) if plan is None else plan

    def threads(self) -> int:
        """The number of threads that plans on the CPU are made for."""
        return _gustav.get_num_threads() if self._gpu is None else 0

    def _spmm_plan(
        self, columns: int, dtype: torch.dtype, transpose: bool, reduce: str, batch: int = 1
    ) -> Any:
        threads = self.threads()
        key = (columns, dtype, transpose, reduce, batch, threads)
        plan = self._plans.get(key)
        if plan is not None:
            self._let_find(plan, key)
            return plan
        name = _families.dtype_name(dtype)

        def make() -> _gustav.SpmmPlan:
            return _gustav.SpmmPlan(
                self._native,
                columns,
                name,
                1000,
                transpose,
                "plus_times",
                False,
                None,
                reduce,
                self.place(),
                batch,
            )

        plan = self.cached(key, make)
        # A plan that was made within a capture is the graph's alone.
        if self._plans.get(key) is plan:
            self._let_find(plan, key)
        return plan

    def _let_find(self, plan: Any, key: tuple[Any, ...]) -> None:
        """Lets products of plain tensors find a plan of sums."""
        _, _, transpose, reduce, batch, threads = key
        if self._eager is not None and reduce == "sum" and batch == 1:
            self._eager.add(plan, transpose, threads)

    def spmm_extremum(
        self, values: Tensor | None, x: Tensor, transpose: bool, reduce: str
    ) -> tuple[Tensor, Tensor]:
        """The largest or smallest products of rows, and the positions of the values that they have."""
        plan = self._spmm_plan(x.shape[1], x.dtype, transpose, reduce)
        out = x.new_empty((plan.output_rows, x.shape[1]))
        winners = torch.empty(out.shape, dtype=torch.int64, device=x.device)
        if values is None:
            values = self.ones(x.dtype)
        operands = (exported(values), exported(x), for_module(out))
        plan.execute_into(*operands, None, None, for_module(winners), self.place())
        return out, winners

    def inner_indices(self, transpose: bool) -> Tensor:
        """For each nonzero the row of x that it is multiplied by."""

        def make() -> Tensor:
            if not transpose:
                return self.col.to(torch.int64)
            rows = torch.arange(self.shape[0], device=self.device)
            return rows.repeat_interleave(self.crow.diff(), output_size=self.nnz)

        indices: Tensor = self.cached(("inner indices", transpose), make)
        return indices

    def product(self, values: Tensor | None, x: Tensor, transpose: bool) -> Tensor:
        """op(A) @ x of one matrix, without gradients: in one call of the module where it has the plan."""
        if self._eager is not None:
            if values is None:
                values = self.ones(x.dtype)
            y: Tensor | None = self._eager.compute(values, x, transpose)
            if y is not None:
                return y
        return self.spmm(values, x, transpose, ())

    def spmm(
        self, values: Tensor | None, x: Tensor, transpose: bool, batches: tuple[int, ...]
    ) -> Tensor:
        """op(A) @ x, of `batches` at once if there are such, without gradients."""
        columns, dtype = x.shape[-1], x.dtype
        out = x.new_empty((*batches, self.shape[1 if transpose else 0], columns))
        if 0 in batches:
            return out
        plan = self._spmm_plan(columns, dtype, transpose, "sum", batches[0] if batches else 1)
        if values is None:
            values = self.ones(dtype)
        if batches:
            operands = exported(flat(values)), exported(as_one(x, batches)), for_module(as_one(out))
        else:
            operands = exported(values), exported(x), for_module(out)
        plan.execute_into(*operands, None, None, None, self.place())
        return out

    def sddmm(self, q: Tensor, k: Tensor, batches: tuple[int, ...]) -> Tensor:
        """⟨q of the row, k of the column⟩ at every nonzero, of `batches` at once, without gradients."""
        out = q.new_empty((*batches, self.nnz))
        if 0 in batches:
            return out
        depth, dtype = q.shape[-1], q.dtype

        def make() -> _gustav.SddmmPlan:
            return _gustav.SddmmPlan(self._native, depth, _families.dtype_name(dtype), 1000, self.place(), *batches)

        plan = self.plan(("sddmm", depth, dtype, batches, self.threads()), make)
        if batches:
            q, k = as_one(q, batches), as_one(k, batches)
        plan.execute_into(exported(q), exported(k), for_module(flat(out)), None, None, self.place())
        return out

    def _softmax_plan(self, heads: int, dtype: torch.dtype) -> Any:
        def make() -> _gustav.SoftmaxPlan:
            return _gustav.SoftmaxPlan(self._native, heads, _families.dtype_name(dtype), self.place())

        return self.plan(("softmax", heads, dtype, self.threads()), make)

    def softmax(self, scores: Tensor) -> Tensor:
        """The softmax of scores, nnz or heads × nnz, over every row, without gradients."""
        weights = torch.empty_like(scores, memory_format=torch.contiguous_format)
        if scores.numel():
            plan = self._softmax_plan(scores.numel() // self.nnz, scores.dtype)
            plan.execute_into(*(exported(t.reshape(-1)) for t in (scores, weights)), self.place())
        return weights

    def softmax_gradient(self, weights: Tensor, g: Tensor) -> Tensor:
        """The gradient with respect to the scores, given that with respect to the weights."""
        of_scores = torch.empty_like(weights, memory_format=torch.contiguous_format)
        if weights.numel():
            plan = self._softmax_plan(weights.numel() // self.nnz, weights.dtype)
            tensors = (exported(t.reshape(-1)) for t in (weights, g, of_scores))
            plan.gradient_into(*tensors, self.place())
        return of_scores

    def __reduce__(self) -> Any:
        return _restored, (*self._arrays(), self.shape, self.permutation)

    def __copy__(self) -> Pattern:
        return self

    def __deepcopy__(self, memo: Any) -> Pattern:
        return self

    def __repr__(self) -> str:
        rows, columns = self.shape
        where = "" if self._gpu is None else f", {self.device}"
        return f"Pattern({rows} x {columns}, {self.nnz} nonzeros{where})"


def positions(rows: int, columns: Tensor, row: Tensor, col: Tensor) -> Tensor:
    """A number for the position of each entry, in the order of rows and columns.

    Parameters
    ----------
    rows
        Number of rows.
    columns
        The columns that entries may have, sorted and without repetition: a matrix may have more columns than can be
        counted together with its rows.
    row, col
        Of the entries, int64.

    Raises
    ------
    NotImplementedError
        Where int64 does not count rows × columns.
    """
    if rows * len(columns) > torch.iinfo(torch.int64).max:
        raise NotImplementedError(
            f"int64 does not count the positions of {rows} rows and {len(columns)} columns with nonzeros, which the "
            "gradients of spgemm need; nearest that works: spgemm of values without gradients, as detach() gives"
        )
    return row * len(columns) + torch.searchsorted(columns, col)


def _restored(crow: Tensor, col: Tensor, size: tuple[int, int], permutation: Tensor | None) -> Pattern:
    pattern = Pattern(crow, col, size)
    pattern.permutation = permutation
    return pattern


def _offsets(row: Tensor, rows: int) -> Tensor:
    """Row offsets of entries in these rows."""
    crow = torch.zeros(rows + 1, dtype=row.dtype, device=row.device)
    crow[1:] = torch.bincount(row, minlength=rows).cumsum(0)
    return crow


def place_of(device: torch.device) -> _device.Place:
    """Where work on tensors of a device goes: on a GPU, to the current stream."""
    if device.type == "cpu":
        return None
    if device.type != "cuda":
        raise NotImplementedError(
            f"tensors on {device} are not taken; nearest that works: on the CPU or on cuda"
        )
    # The stream is one of a pool that PyTorch never destroys.
    return (device.index, _device.torch_stream(torch, device.index), None)


def arrays_of(native: _gustav.Pattern, device: torch.device) -> tuple[Tensor, Tensor]:
    """Row offsets and column indices of a pattern of the module, copies."""
    place = place_of(device)
    if place is None:
        return torch.from_numpy(np.array(native.indptr)), torch.from_numpy(np.array(native.indices))
    of_offsets, of_indices = (getattr(torch, name) for name in native.index_types)
    crow = torch.empty(native.shape[0] + 1, dtype=of_offsets, device=device)
    col = torch.empty(native.nnz, dtype=of_indices, device=device)
    native.copy_into(for_module(crow), for_module(col), place)
    return crow, col
