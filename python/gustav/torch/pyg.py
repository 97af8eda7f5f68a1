"""Message passing by the signature of PyTorch Geometric's ``torch_geometric.utils.spmm``, and graph attention.

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

from ._attention import WIDEST, attention
from ._functions import _expect, _expect_on, _one_type
from ._functions import spmm as _spmm
from ._graph_attention import operands
from ._layouts import expect_tensor
from ._operators import calls
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


def graph_attention(
    src: Tensor | Pattern,
    x: Tensor | tuple[Tensor, Tensor],
    att_src: Tensor,
    att_dst: Tensor,
    negative_slope: float = 0.2,
) -> Tensor:
    """The layer of a graph attention network (Veličković et al., 2018) behind its linear map, with gradients.

    Node i gathers Σⱼ wᵢⱼ·xⱼ from its neighbours j, with the softmax over them
    wᵢⱼ ∝ exp(leaky_relu(⟨att_src, xⱼ⟩ + ⟨att_dst, xᵢ⟩)). It is what ``torch_geometric.nn.GATConv`` computes of the
    features that its ``lin`` makes, without dropout; a loop at each node is one of the edges.

    Parameters
    ----------
    src : tensor or Pattern
        As in :func:`spmm`; values of a sparse tensor are not used.
    x : tensor, nodes × heads × features, or a pair of them
        Features of the nodes; of sources and of targets where these are different nodes.
    att_src, att_dst : tensor, heads × features or 1 × heads × features
        The vectors that make the scores, of sources and of targets.
    negative_slope : float
        Of the leaky ReLU.

    Returns
    -------
    tensor, targets × heads × features
        A node without neighbours has zeros.

    Notes
    -----
    Scores are made by one dense product, and the rest is :func:`gustav.torch.attention`: nothing of the size of the
    edges is stored. Gradients of gradients, and heads of more than 256 features, take its functions one by one.

    Examples
    --------
    >>> import torch
    >>> from gustav.torch.pyg import graph_attention
    >>> edge_index = torch.tensor([[1, 2, 0], [0, 0, 2]])
    >>> x = torch.tensor([[[1.0, 0.0]], [[2.0, 4.0]], [[6.0, 8.0]]])
    >>> graph_attention(edge_index, x, torch.zeros(1, 2), torch.zeros(1, 2)).squeeze(1)
    tensor([[4., 6.],
            [0., 0.],
            [1., 0.]])
    """
    of_sources, of_targets = x if isinstance(x, tuple) else (x, x)
    names = ("x", "x of the targets", "att_src", "att_dst")
    of_sources, of_targets, att_src, att_dst = _one_type(names, of_sources, of_targets, att_src, att_dst)
    for name, t in zip(names, (of_sources, of_targets), strict=False):
        if t.ndim != 3:
            raise ValueError(f"{name}: expected nodes x heads x features, found the shape {tuple(t.shape)}")
    heads, features = of_sources.shape[1:]
    _expect(names[1], of_targets, heads, -2)
    _expect(names[1], of_targets, features, -1)
    for name, t in (("att_src", att_src), ("att_dst", att_dst)):
        if t.numel() != heads * features or t.ndim not in (2, 3) or t.shape[-1] != features:
            raise ValueError(f"{name}: expected {heads} x {features}, found the shape {tuple(t.shape)}")
    if isinstance(src, Pattern):
        pattern = src
    else:
        expect_tensor("src", src)
        sizes = (of_targets.shape[0], of_sources.shape[0])
        pattern = _pattern(src, sizes if src.layout == torch.strided else None)
    _expect_on(pattern, "x", of_sources)
    att_src, att_dst = att_src.reshape(heads, features), att_dst.reshape(heads, features)
    if of_sources is of_targets and features <= WIDEST:
        _expect("x", of_sources, pattern.shape[0], 0)
        _expect("x", of_sources, pattern.shape[1], 0)
        o: Tensor = calls.graph_attention(
            pattern._handle, pattern.nnz, of_sources, att_src, att_dst, float(negative_slope)
        )[0]
        return o
    q, k = operands(of_sources, of_targets, att_src, att_dst)
    return attention(pattern, q, k, of_sources, scale=1.0, negative_slope=negative_slope)


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
