"""torch-sparse's functions that multiply, by gustav."""

from .matmul import spmm, spspmm
from .tensor import SparseTensor

__all__ = ["SparseTensor", "spmm", "spspmm"]
