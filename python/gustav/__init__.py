"""Products on sparse patterns: sparse × dense, sparse × vector, sparse × sparse, dense × dense at the
nonzeros of a pattern.

Operands are those of NumPy, SciPy, PyTorch and what else has DLPack, read where they are:

>>> import numpy as np, scipy.sparse as sp, gustav
>>> a = sp.random_array((1000, 1000), density=0.01, format="csr", rng=0)
>>> b = np.ones((1000, 8))
>>> np.allclose(gustav.spmm(a, b), a @ b)
True

`gustav.torch` has the same with gradients.
"""

from typing import TYPE_CHECKING, Any

from ._files import Device, devices, read, write
from ._gustav import __version__
from ._operands import Csr
from ._plans import SpmmPlan, plan_spmm
from ._products import sddmm, spgemm, spmm, spmv
from ._threads import get_num_threads, set_num_threads

if TYPE_CHECKING:
    from ._scipy import csc_array, csr_array, patched

__all__ = [
    "Csr",
    "Device",
    "SpmmPlan",
    "__version__",
    "csc_array",
    "csr_array",
    "devices",
    "get_num_threads",
    "patched",
    "plan_spmm",
    "read",
    "sddmm",
    "set_num_threads",
    "spgemm",
    "spmm",
    "spmv",
    "write",
]

# What needs SciPy, which is imported when a program asks for it.
_OF_SCIPY = ("csc_array", "csr_array", "patched")


def __getattr__(name: str) -> Any:
    if name in _OF_SCIPY:
        from . import _scipy

        return getattr(_scipy, name)
    raise AttributeError(f"module 'gustav' has no attribute {name!r}")
