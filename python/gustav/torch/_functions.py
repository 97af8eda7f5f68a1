"""The functions of the package: checks, and calls of operators."""

from __future__ import annotations

import torch
from torch import Tensor

from . import _spgemm, _transforms
from ._calls import is_autocast_on
from ._layouts import expect_tensor
from ._operators import calls, record_spmm
from ._pattern import Pattern

_REDUCTIONS = ("sum", "mean", "max", "min")
_is_compiling = torch.compiler.is_compiling


def spmm(
    pattern: Pattern,
    values: Tensor | None,
    x: Tensor,
    *,
    reduce: str = "sum",
    transpose: bool = False,
) -> Tensor:
    """``op(A) @ x``, with gradients with respect to `values` and `x`.

    Parameters
    ----------
    pattern : Pattern, m × k
        Where A has nonzeros.
    values : tensor, nnz or batch × nnz, or None
        Values of A; ``None`` stands for ones.
    x : tensor, k × n or batch × k × n, or k
        The dense operand, of the type of `values`. A batch is read in place where its matrices lie one above
        the other or side by side; an operand without one is taken for each.
    reduce : str
        ``sum``; ``mean``, over the number of entries of the row; ``max`` or ``min``, where NaN wins, of equal
        products the first, and the gradient goes to the one that won. Rows without entries give 0.
    transpose : bool
        Multiplies Aᵀ; `x` then has m rows. The transpose is planned once for a pattern.

    Returns
    -------
    tensor, m × n or batch × m × n, or m

    Examples
    --------
    >>> import torch, gustav.torch as gt
    >>> P = gt.Pattern(torch.tensor([0, 2, 3]), torch.tensor([0, 2, 1]), (2, 3))
    >>> values = torch.tensor([1.0, 2.0, 3.0])
    >>> gt.spmm(P, values, torch.tensor([1.0, 10.0, 100.0]))
    tensor([201.,  30.])
    >>> gt.spmm(P, None, torch.tensor([1.0, 10.0, 100.0]), reduce="mean")
    tensor([50.5000, 10.0000])
    >>> gt.spmm(P, values, torch.tensor([1.0, 10.0]), transpose=True)
    tensor([ 1., 30.,  2.])

    Two matrices of one pattern at once:

    >>> gt.spmm(P, torch.stack([values, 10 * values]), torch.ones(3, 1)).squeeze(-1)
    tensor([[ 3.,  3.],
            [30., 30.]])
    """
    if reduce == "sum" and type(pattern) is Pattern and not _is_compiling() and pattern._eager is not None:
        # Most products were planned before, and their tensors are nothing but memory.
        found: Tensor | None = pattern._eager.product(values, x, bool(transpose), pattern, record_spmm)
        if found is not None:
            return found
    if reduce not in _REDUCTIONS:
        raise ValueError(f"reduce: {reduce!r} is not known; {', '.join(_REDUCTIONS)} are")
    _expect_on(pattern, "x", x)
    if values is not None:
        expect_tensor("values", values)
        if values.dtype != x.dtype or values.device != x.device or is_autocast_on(x):
            values, x = _one_type(("values", "x"), values, x)
        _expect("values", values, pattern.nnz, -1)
    else:
        (x,) = _cast(x)
    rows, inner = pattern.shape[::-1] if transpose else pattern.shape
    is_vector = x.ndim == 1
    if is_vector:
        x = x.unsqueeze(1)
    _expect("x", x, inner, -2)
    if values is None:
        _expect_batches(("x", x, 2))
    elif x.ndim != 2 or values.ndim != 1:
        _expect_batches(("x", x, 2), ("values", values, 1))
    if reduce in ("max", "min"):
        y = _extremum(pattern, rows, values, x, transpose, reduce)
    else:
        y = calls.spmm(pattern._handle, rows, values, x, transpose)
    if reduce == "mean":
        y = y * calls.inverse_lengths(pattern._handle, rows, x, transpose).unsqueeze(1)
    return y.squeeze(-1) if is_vector else y


def _extremum(
    pattern: Pattern, rows: int, values: Tensor | None, x: Tensor, transpose: bool, reduce: str
) -> Tensor:
    batch = x if x.ndim == 3 else values if values is not None and values.ndim == 2 else None
    if batch is None:
        y, _ = calls.spmm_extremum(
            pattern._handle, rows, pattern.nnz, values, x, transpose, reduce
        )
        taken: Tensor = y
        return taken
    if batch.shape[0] == 0:
        return x.new_empty((0, rows, x.shape[-1]))
    return torch.stack(
        [
            _extremum(
                pattern,
                rows,
                values[k] if values is not None and values.ndim == 2 else values,
                x[k] if x.ndim == 3 else x,
                transpose,
                reduce,
            )
            for k in range(batch.shape[0])
        ]
    )


def sddmm(pattern: Pattern, q: Tensor, k: Tensor) -> Tensor:
    """⟨row i of `q`, row j of `k`⟩ at every nonzero (i, j), with gradients with respect to both.

    Parameters
    ----------
    pattern : Pattern, m × n
        Where the inner products are computed.
    q, k : tensor, m × d and n × d, either with a leading batch
        The dense operands.

    Returns
    -------
    tensor, nnz or batch × nnz
        Values of the pattern.

    Examples
    --------
    >>> import torch, gustav.torch as gt
    >>> P = gt.Pattern(torch.tensor([0, 1, 2]), torch.tensor([1, 0]), (2, 2))
    >>> gt.sddmm(P, torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0], [4.0]]))
    tensor([4., 6.])
    """
    _expect_on(pattern, "q", q)
    expect_tensor("k", k)
    if q.dtype != k.dtype or q.device != k.device or is_autocast_on(q):
        q, k = _one_type(("q", "k"), q, k)
    _expect("q", q, pattern.shape[0], -2)
    _expect("k", k, pattern.shape[1], -2)
    _expect("k", k, q.shape[-1], -1)
    if q.ndim != 2 or k.ndim != 2:
        _expect_batches(("q", q, 2), ("k", k, 2))
    values: Tensor = calls.sddmm(pattern._handle, pattern.nnz, q, k)
    return values


def spgemm(
    pattern_a: Pattern, values_a: Tensor, pattern_b: Pattern, values_b: Tensor
) -> tuple[Pattern, Tensor]:
    """A·B as a pattern and values, with gradients with respect to the values of A and of B.

    Parameters
    ----------
    pattern_a, values_a : Pattern, m × k, and tensor
        A. For gradients its entries must be unique.
    pattern_b, values_b : Pattern, k × n, and tensor
        B, likewise.

    Returns
    -------
    Pattern, tensor
        Of A·B. The pattern is made once for both operands; where they meet in later calls, it is the
        same object.

    Examples
    --------
    >>> import torch, gustav.torch as gt
    >>> P = gt.Pattern(torch.tensor([0, 1, 2]), torch.tensor([1, 0]), (2, 2))
    >>> gt.spgemm(P, torch.tensor([2.0, 3.0]), P, torch.tensor([5.0, 7.0]))
    (Pattern(2 x 2, 2 nonzeros), tensor([14., 15.]))
    """
    _expect_on(pattern_a, "values_a", values_a)
    _expect_on(pattern_b, "values_b", values_b)
    values_a, values_b = _one_type(("values_a", "values_b"), values_a, values_b)
    _expect("values_a", values_a, pattern_a.nnz, -1)
    _expect("values_b", values_b, pattern_b.nnz, -1)
    for name, operand, pattern in (("a", values_a, pattern_a), ("b", values_b, pattern_b)):
        if _transforms.is_differentiated(operand) and not pattern.is_unique():
            raise ValueError(f"pattern_{name}: two entries are in one position; gradients and transforms need one")
    product = _spgemm.pattern_of(pattern_a, pattern_b)
    values: Tensor = calls.spgemm_at(
        product._handle,
        product.nnz,
        pattern_a._handle,
        values_a,
        False,
        pattern_b._handle,
        values_b,
        False,
    )
    return product, values


def number(name: str, value: float | None) -> float | None:
    """A number that has no gradient, as a float."""
    if value is None:
        return None
    if isinstance(value, Tensor) and _transforms.is_differentiated(value):
        raise NotImplementedError(f"{name}: gradients with respect to it are not implemented; nearest that works: float")
    if isinstance(value, str):
        raise TypeError(f"{name}: expected a number, found a str")
    return float(value)


def _cast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Floating-point tensors in the type of autocast, where it is on; float64 stays, as in PyTorch's products."""
    if is_autocast_on(tensors[0]):
        dtype = torch.get_autocast_dtype(tensors[0].device.type)
        return tuple(t.to(dtype) if _is_cast(t) else t for t in tensors)
    return tensors


def _is_cast(t: Tensor) -> bool:
    return t.is_floating_point() and t.dtype != torch.float64


def _one_type(names: tuple[str, ...], *tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors, in the type of autocast where it is on; of one type on one device."""
    device = tensors[0].device
    for other, t in zip(names, tensors, strict=True):
        expect_tensor(other, t)
        if t.device != device:
            raise ValueError(f"{names[0]} is on {device} and {other} on {t.device}; give all on one")
    tensors = _cast(*tensors)
    for other, t in zip(names, tensors, strict=True):
        if t.dtype != tensors[0].dtype:
            raise TypeError(f"{names[0]} is of {tensors[0].dtype} and {other} of {t.dtype}; give all in one type")
    return tensors


def _expect_on(pattern: Pattern, name: str, t: Tensor) -> None:
    """`t` is a tensor where the pattern is."""
    if not isinstance(pattern, Pattern):
        raise TypeError(
            f"expected a gustav.torch.Pattern before {name}, found {type(pattern).__name__}; Pattern.from_sparse and "
            "Pattern.from_edge_index make one"
        )
    expect_tensor(name, t)
    if t.device != pattern.device:
        if t.device.type not in ("cpu", "cuda"):
            raise NotImplementedError(
                f"{name}: tensors on {t.device} are not taken; nearest that works: on the CPU or on cuda"
            )
        raise ValueError(
            f"{name} is on {t.device} and the pattern on {pattern.device}; P.to({str(t.device)!r}) is there"
        )


def _expect_batches(*operands: tuple[str, Tensor, int]) -> None:
    """Operands, given with their dimensions without a batch, have one batch dimension of one size, or none."""
    of: tuple[str, int] | None = None
    for name, t, dimensions in operands:
        if t.ndim not in (dimensions, dimensions + 1):
            raise ValueError(
                f"{name}: expected {dimensions} dimensions, or {dimensions + 1} with a batch first; found the "
                f"shape {tuple(t.shape)}"
            )
        if t.ndim == dimensions:
            continue
        if of is not None and of[1] != t.shape[0]:
            raise ValueError(
                f"{name}: expected a batch of {of[1]}, as {of[0]} has, or none; found {t.shape[0]}"
            )
        of = (name, t.shape[0])


def _expect(name: str, t: Tensor, length: int, dimension: int) -> None:
    if t.layout != torch.strided:
        raise TypeError(f"{name}: expected a dense tensor, found one in the layout {t.layout}; to_dense() makes one")
    if t.ndim < -dimension or t.shape[dimension] != length:
        raise ValueError(
            f"{name}: expected {length} in dimension {dimension}, found the shape {tuple(t.shape)}"
        )
