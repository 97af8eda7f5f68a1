"""Message passing by the signature of PyTorch Geometric's ``torch_geometric.utils.spmm``.

>>> import torch
>>> from gustav.torch.pyg import spmm
>>> edge_index = torch.tensor([[1, 2, 0], [0, 0, 2]])
>>> spmm(edge_index, torch.tensor([[1.0], [10.0], [100.0]])).ravel()
tensor([110.,   0.,   1.])
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor

from ._functions import spmm as _spmm
from ._layouts import expect_tensor
from ._pattern import Pattern


class _Learnt:
    """The pattern of a tensor, and how often the tensor had been written to, as PyTorch counts."""

    __slots__ = ("pattern", "tensor", "version")

    def __init__(self, tensor: Tensor, pattern: Pattern) -> None:
        self.tensor = weakref.ref(tensor)
        self.version = tensor._version
        self.pattern = pattern


# By the identity of the tensor and the size; an entry goes with its tensor.
_learnt: dict[tuple[int, tuple[int, int] | None], _Learnt] = {}


def spmm(
    src: Tensor | Pattern,
    other: Tensor,
    reduce: str = "sum",
    *,
    edge_weight: Tensor | None = None,
    size: tuple[int, int] | None = None,
) -> Tensor:
    """What each node gathers from its neighbours, with gradients with respect to weights and features.

    Parameters
    ----------
    src : tensor or Pattern
        An ``edge_index`` of 2 × edges with sources and targets; or the transposed adjacency matrix, as
        ``torch_geometric.utils.spmm`` takes it: a sparse tensor in CSR, CSC or COO, or a
        :class:`gustav.torch.Pattern`. What is learnt of an ``edge_index`` or a sparse tensor is kept as long as it
        lives, until a write to it that PyTorch counts: not one through ``.data``, or to an array of NumPy that
        shares its memory. EdgeIndex is a tensor and is taken; ``torch_sparse.SparseTensor`` by its
        ``to_torch_sparse_csr_tensor()``.
    other : tensor, sources × features
        Features.
    reduce : str
        ``sum``, ``add``, ``mean``, ``max`` or ``min``.
    edge_weight : tensor, edges, optional
        Weights in the order of the edges, beside an ``edge_index`` or a pattern.
    size : tuple of int, optional
        Number of targets and of sources; as many of both as `other` has rows where not given.

    Returns
    -------
    tensor, targets × features

    Raises
    ------
    NotImplementedError
        For gradients with respect to the values of a sparse tensor, for which an ``edge_index`` with weights
        is the nearest thing that works.

    Examples
    --------
    >>> import torch
    >>> from gustav.torch.pyg import spmm
    >>> edge_index = torch.tensor([[1, 2, 0], [0, 0, 2]])
    >>> weight = torch.tensor([1.0, 0.5, 3.0], requires_grad=True)
    >>> y = spmm(edge_index, torch.ones(3, 1), "mean", edge_weight=weight)
    >>> y.sum().backward()
    >>> weight.grad
    tensor([0.5000, 0.5000, 1.0000])
    """
    reduce = "sum" if reduce == "add" else reduce
    expect_tensor("other", other)
    if not isinstance(src, Pattern):
        expect_tensor("src", src)
    if isinstance(src, Pattern):
        pattern, values = src, edge_weight
    elif src.layout == torch.strided:
        pattern = _pattern(src, size or (other.shape[-2], other.shape[-2]))
        values = edge_weight
    else:
        if edge_weight is not None:
            raise ValueError("edge_weight: a sparse tensor has its own values")
        if src.requires_grad and torch.is_grad_enabled():
            raise NotImplementedError(
                "gradients with respect to the values of a sparse tensor are not implemented; nearest "
                "that works: an edge_index with edge_weight"
            )
        # COO tensors that are not coalesced would be so in every call.
        src = src.coalesce() if src.layout == torch.sparse_coo else src
        pattern, values = _pattern(src, None), src.values()
    if values is not None and pattern.permutation is not None:
        values = values[pattern.kept_permutation()]
    return _spmm(pattern, values, other, reduce=reduce)


def _pattern(tensor: Tensor, size: tuple[int, int] | None) -> Pattern:
    key = (id(tensor), size)
    known = _learnt.get(key)
    if (
        known is not None
        and not tensor.is_inference()
        and known.tensor() is tensor
        and known.version == tensor._version
    ):
        return known.pattern
    if size is None:
        pattern = Pattern.from_sparse(tensor)
    else:
        pattern = Pattern.from_edge_index(tensor.as_subclass(Tensor), size)
    if tensor.is_inference():
        # It does not say when it was written to.
        return pattern
    _learnt[key] = _Learnt(tensor, pattern)
    weakref.finalize(tensor, _forget, key)
    return pattern


def _forget(key: Any) -> None:
    _learnt.pop(key, None)
