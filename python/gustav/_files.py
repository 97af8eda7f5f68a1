"""Files, and what this machine has."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from . import _families, _gustav, _operands


class Device(NamedTuple):
    """One line of :func:`devices`.

    Attributes
    ----------
    name
        ``cpu`` or ``cuda:K``.
    available
        Whether products can run there.
    description
        What it is, or what is missing.
    """

    name: str
    available: bool
    description: str


def devices() -> list[Device]:
    """The CPU and every GPU of this machine; where there is none, what is missing for one.

    Examples
    --------
    >>> import gustav
    >>> gustav.devices()[0].name
    'cpu'
    """
    return [Device(*device) for device in _gustav.devices()]


def read(path: str | os.PathLike[str], dtype: Any = None) -> Any:
    """The matrix in a file: Matrix Market, SciPy's npz, npy or smtx, plain, .gz or .zst.

    Parameters
    ----------
    path
        The file, whose content says its format.
    dtype : dtype, optional
        Type of the values, else int64 for files of integers and float64 for others.

    Returns
    -------
    csr_array or Csr
        A :class:`gustav.csr_array` where SciPy 1.14 or newer is installed, else a :class:`gustav.Csr`.

    Raises
    ------
    OSError
        For a file that cannot be read.
    ValueError
        For one that is damaged, with line and column.

    Examples
    --------
    >>> import os, tempfile, numpy as np, scipy.sparse as sp, gustav
    >>> path = os.path.join(tempfile.mkdtemp(), "a.npz")
    >>> sp.save_npz(path, sp.csr_array([[1.0, 0.0], [0.0, 2.0]]))
    >>> gustav.read(path) @ np.ones(2)
    array([1., 2.])
    """
    name = None if dtype is None else _families.dtype_name(dtype)
    *blocks, shape = _gustav.read(path, name)
    indptr, indices, data = map(_families.of_block, blocks)
    try:
        from ._scipy import csr_array
    except ModuleNotFoundError:
        return _operands.Csr(indptr, indices, data, shape)
    return csr_array((data, indices, indptr), shape=shape, copy=False)


def write(path: str | os.PathLike[str], a: Any) -> None:
    """Writes a sparse matrix to a file; the name says the format: .mtx, .npz, .smtx, then .gz or .zst.

    The file appears whole or not at all.

    Examples
    --------
    >>> import os, tempfile, scipy.sparse as sp, gustav
    >>> path = os.path.join(tempfile.mkdtemp(), "a.mtx.gz")
    >>> gustav.write(path, sp.csr_array([[1.0, 0.0], [0.0, 2.0]]))
    >>> gustav.read(path).toarray()
    array([[1., 0.],
           [0., 2.]])
    """
    operand = _operands.of("a", a).in_csr()
    _gustav.write(os.fspath(path), operand.pattern, operand.data)
