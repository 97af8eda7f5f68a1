"""Message passing by the signature of PyTorch Geometric's ``torch_geometric.utils.spmm``, and two layers: graph
convolution and graph attention.

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
from ._functions import _expect, _expect_batches, _expect_on, _one_type, number
from ._functions import spmm as _spmm
from ._graph_attention import operands
from ._graph_convolution import is_product_first, of_plain
from ._layouts import expect_tensor
from ._operators import calls
from ._pattern import Pattern
from ._transforms import without_transforms


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
    edge_weight : tensor, edges or batch × edges, optional
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
    pattern, values = _matrix(src, other, edge_weight, size)
    return _spmm(pattern, values, other, reduce=reduce)


def graph_convolution(
    src: Tensor | Pattern,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    edge_weight: Tensor | None = None,
    size: tuple[int, int] | None = None,
) -> Tensor:
    """The layer of a graph convolutional network (Kipf and Welling, 2017), with gradients.

    It is ``spmm(src, x @ weight.T, edge_weight=edge_weight) + bias``, which ``torch_geometric.nn.GCNConv(normalize=False)`` computes; the
    normalised weights of edges are for the caller to make, once.

    Parameters
    ----------
    src, edge_weight, size
        As in :func:`spmm`.
    x : tensor, sources × features, or batch × sources × features
        Features of the nodes.
    weight : tensor, out × features
        Of the linear map, as ``torch.nn.Linear`` has it.
    bias : tensor, out, optional
        Added to the features of each node.

    Returns
    -------
    tensor, targets × out, or batch × targets × out

    Notes
    -----
    Without a batch this is one step of autograd. The sum over neighbours comes before the linear map where that saves
    time: where `x` has fewer columns than the result, and where it has fewer than twice as many and no gradient, as in a
    first layer, since the gradient of the weight then needs no other sum. Beside the operands that the gradients need, the
    sums are saved in this order, and in the other one the mapped features if the weights of edges have a gradient. The
    two orders round differently.

    Examples
    --------
    >>> import torch
    >>> from gustav.torch.pyg import graph_convolution
    >>> edge_index = torch.tensor([[1, 2, 0], [0, 0, 2]])
    >>> layer = torch.nn.Linear(4, 2)
    >>> graph_convolution(edge_index, torch.ones(3, 4), layer.weight, layer.bias).shape
    torch.Size([3, 2])
    """
    found = of_plain(src, edge_weight, x, weight, bias)
    if found is not None:
        return found
    expect_tensor("x", x)
    expect_tensor("weight", weight)
    if x.ndim not in (2, 3):
        raise ValueError(f"x: expected nodes x features, or a batch of them, found the shape {tuple(x.shape)}")
    pattern, values = _matrix(src, x, edge_weight, size)
    _expect_on(pattern, "x", x)
    given = {"x": x, "weight": weight}
    given |= {name: t for name, t in (("edge_weight", values), ("bias", bias)) if t is not None}
    given = dict(zip(given, _one_type(tuple(given), *given.values()), strict=True))
    x, weight, values, bias = given["x"], given["weight"], given.get("edge_weight"), given.get("bias")
    if not x.is_floating_point():
        raise TypeError(f"x: {x.dtype} is not taken; floating-point types are")
    _expect("x", x, pattern.shape[1], -2)
    if weight.shape[1:] != x.shape[-1:]:
        raise ValueError(f"weight: expected out x {x.shape[-1]}, found the shape {tuple(weight.shape)}")
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(f"bias: expected {weight.shape[0]} elements, found the shape {tuple(bias.shape)}")
    if values is not None:
        _expect("edge_weight", values, pattern.nnz, -1)
        _expect_batches(("x", x, 2), ("edge_weight", values, 1))
    if x.ndim == 3 or (values is not None and values.ndim == 2):
        features = _spmm(pattern, values, torch.nn.functional.linear(x, weight))
        return features if bias is None else features + bias
    product_first = is_product_first(x, weight)
    y: Tensor = calls.graph_convolution(pattern._handle, pattern.shape[0], values, x, weight, bias, product_first)[0]
    return y


def _matrix(
    src: Tensor | Pattern, other: Tensor, edge_weight: Tensor | None, size: tuple[int, int] | None
) -> tuple[Pattern, Tensor | None]:
    """The pattern and the values that `src` and the weights stand for."""
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
        values = values[..., pattern.cached_permutation()]
    return pattern, values


def graph_attention(
    src: Tensor | Pattern,
    x: Tensor | tuple[Tensor, Tensor] | list[Tensor],
    att_src: Tensor,
    att_dst: Tensor,
    negative_slope: float = 0.2,
) -> Tensor:
    """The layer of a graph attention network (Veličković et al., 2018) behind its linear map, with gradients.

    Node i gathers Σⱼ wᵢⱼ·xⱼ from its neighbours j, with the softmax over them
    wᵢⱼ ∝ exp(leaky_relu(⟨att_src, xⱼ⟩ + ⟨att_dst, xᵢ⟩)). It is what ``torch_geometric.nn.GATConv`` computes of the
    features that its ``lin`` makes, but for dropout, its bias, and the loop that it adds at each node
    (``torch_geometric.utils.add_self_loops``); its heads are concatenated by ``flatten(1)``.

    Parameters
    ----------
    src : tensor or Pattern
        As in :func:`spmm`; values of a sparse tensor are not used.
    x : tensor, nodes × heads × features, or a pair of them
        Features of the nodes; of sources and of targets where these are different nodes.
    att_src, att_dst : tensor, heads × features or 1 × heads × features
        The vectors that make the scores, of sources and of targets.
    negative_slope : float
        Of the leaky ReLU. It has no gradient.

    Returns
    -------
    tensor, targets × heads × features
        A node without neighbours has zeros.

    Notes
    -----
    This is :func:`gustav.torch.attention` with scores that are made by one dense product; what is said there of memory,
    of gradients of gradients and of wide heads is true here.

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
    slope = number("negative_slope", negative_slope)
    if isinstance(x, (tuple, list)):
        if len(x) != 2:
            raise ValueError(f"x: expected a tensor, or those of sources and of targets, found {len(x)}")
        of_sources, of_targets = x
        expect_tensor("x of the targets", of_targets)
    else:
        of_sources, of_targets = x, None
    expect_tensor("x", of_sources)
    if of_sources.ndim != 3:
        raise ValueError(f"x: expected nodes x heads x features, found the shape {tuple(of_sources.shape)}")
    if isinstance(src, Pattern):
        pattern = src
    else:
        expect_tensor("src", src)
        sizes = ((of_sources if of_targets is None else of_targets).shape[0], of_sources.shape[0])
        pattern = _pattern(src, sizes if src.layout == torch.strided else None)
    _expect_on(pattern, "x", of_sources)
    if of_targets is None:
        of_sources, att_src, att_dst = _one_type(("x", "att_src", "att_dst"), of_sources, att_src, att_dst)
        _expect("x", of_sources, pattern.shape[0], 0)
    else:
        names = ("x", "x of the targets", "att_src", "att_dst")
        of_sources, of_targets, att_src, att_dst = _one_type(names, of_sources, of_targets, att_src, att_dst)
        _expect("x of the targets", of_targets, pattern.shape[0], 0)
    _expect("x", of_sources, pattern.shape[1], 0)
    if not of_sources.is_floating_point():
        raise TypeError(f"x: {of_sources.dtype} is not taken; floating-point types are")
    _, heads, features = of_sources.shape
    if of_targets is not None and of_targets.shape[1:] != of_sources.shape[1:]:
        raise ValueError(
            f"x of the targets: expected nodes x {heads} x {features}, found the shape {tuple(of_targets.shape)}"
        )
    for name, t in (("att_src", att_src), ("att_dst", att_dst)):
        if t.shape not in ((heads, features), (1, heads, features)):
            raise ValueError(f"{name}: expected {heads} x {features}, found the shape {tuple(t.shape)}")
    if att_src.ndim != att_dst.ndim:
        att_src, att_dst = att_src.view(heads, features), att_dst.view(heads, features)
    if 0 in (heads, features):
        return (of_sources if of_targets is None else of_targets).clone()
    if of_targets is None and features <= WIDEST:
        o: Tensor = calls.graph_attention(
            pattern._handle, pattern.nnz, of_sources, att_src, att_dst, 1.0 if slope is None else slope
        )[0]
        return o
    att_src, att_dst = att_src.view(heads, features), att_dst.view(heads, features)
    q, k = operands(of_sources, of_sources if of_targets is None else of_targets, att_src, att_dst)
    return attention(pattern, q, k, of_sources, scale=1.0, negative_slope=slope)


@torch.compiler.disable  # type: ignore[untyped-decorator]
@without_transforms
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
