"""SciPy's CSR and CSC arrays whose products are gustav's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import scipy.sparse as sp
from scipy import __version__ as _version
from scipy.sparse import _compressed

from . import _products

# The class of SciPy whose methods compute the products of its csr and csc containers.
_BASE: Any = _compressed._cs_matrix
# Its methods that multiply, by the kind of the other operand.
_METHODS = ("_matmul_vector", "_matmul_multivector", "_matmul_sparse")
if not all(hasattr(_BASE, method) for method in _METHODS):
    # As if there were none: files are then read into gustav's own class.
    raise ModuleNotFoundError(
        f"SciPy {_version} is too old: gustav's arrays replace the products of SciPy 1.14 and newer; "
        "`pip install 'scipy>=1.14'`, or give gustav's functions SciPy's own arrays"
    )


def _dense(a: Any, b: Any) -> Any:
    return _products.spmm(a, b)


def _sparse(a: Any, b: Any) -> Any:
    # SciPy's own answer to an operand in COO or DIA is the format of the first.
    return _products.spgemm(a, b if b.format == a.format else b.asformat(a.format))


def _or_scipy(product: Callable[[Any, Any], Any], method: str, scipy: Callable[..., Any]) -> Callable[..., Any]:
    """`product`, or SciPy's where the types are not ours: complex numbers, integers of 8 bits, sparse vectors."""
    dimensions = (2,) if method == "_matmul_sparse" else (1, 2)

    def multiply(self: Any, other: Any) -> Any:
        if self.ndim != 2 or other.ndim not in dimensions:
            return scipy(self, other)
        try:
            return product(self, other)
        except TypeError:
            return scipy(self, other)

    multiply.__name__ = method
    return multiply


_OURS = {
    "_matmul_vector": _or_scipy(_dense, "_matmul_vector", _BASE._matmul_vector),
    "_matmul_multivector": _or_scipy(_dense, "_matmul_multivector", _BASE._matmul_multivector),
    "_matmul_sparse": _or_scipy(_sparse, "_matmul_sparse", _BASE._matmul_sparse),
}


class _Products:
    """Products of ours in place of SciPy's, and transposes that keep them."""

    _matmul_vector = _OURS["_matmul_vector"]
    _matmul_multivector = _OURS["_matmul_multivector"]
    _matmul_sparse = _OURS["_matmul_sparse"]

    @property
    def _csr_container(self) -> type:
        return csr_array

    @property
    def _csc_container(self) -> type:
        return csc_array


class csr_array(_Products, sp.csr_array):  # type: ignore[misc]
    """A ``scipy.sparse.csr_array`` whose every ``@`` is gustav's, that of ``.T`` included.

    Parameters
    ----------
    arg1, shape, dtype, copy
        As of ``scipy.sparse.csr_array``.

    Notes
    -----
    Products of types that gustav does not take, such as complex numbers, are SciPy's.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, gustav
    >>> a = gustav.csr_array(sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    >>> a @ np.ones(3)
    array([3., 3.])
    >>> a.T @ np.ones(2)
    array([1., 3., 2.])
    >>> type(a.T).__module__.split(".")[0], type(a @ a.T).__module__.split(".")[0]
    ('gustav', 'gustav')
    """


class csc_array(_Products, sp.csc_array):  # type: ignore[misc]
    """A ``scipy.sparse.csc_array`` whose every ``@`` is gustav's; what :class:`csr_array`'s ``.T`` is.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, gustav
    >>> gustav.csc_array(sp.csc_array([[1.0, 0.0], [2.0, 3.0]])) @ np.ones(2)
    array([1., 5.])
    """


_lock = threading.Lock()
_depth = 0
_originals: dict[str, Any] = {}


@contextmanager
def patched() -> Iterator[None]:
    """Products of SciPy's own csr and csc containers are gustav's within the block, in every thread.

    Blocks nest; the last one that ends restores SciPy.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, gustav
    >>> a = sp.csr_matrix([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    >>> with gustav.patched():
    ...     y = a @ np.ones(3)
    >>> y
    array([3., 3.])
    """
    global _depth
    with _lock:
        if _depth == 0:
            for name in _METHODS:
                _originals[name] = getattr(_BASE, name)
                setattr(_BASE, name, _OURS[name])
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                for name in _METHODS:
                    setattr(_BASE, name, _originals.pop(name))
