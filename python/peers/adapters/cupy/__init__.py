"""NumPy under the name of CuPy, whose tests compare it with NumPy: the other side multiplies by gustav."""

import sys
from types import SimpleNamespace

from numpy import *  # noqa: F403
from numpy import complex64, complex128, float32, float64, ndarray  # noqa: F401

import cupy.testing

# NumPy has a module of this name too.
testing = sys.modules["cupy.testing"]
cuda = SimpleNamespace(runtime=SimpleNamespace(runtimeGetVersion=lambda: 13000))
