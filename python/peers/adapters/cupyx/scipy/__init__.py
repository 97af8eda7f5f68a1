"""SciPy in the place of CuPy's SciPy, while gustav multiplies for it."""

import scipy.sparse as sparse

__all__ = ["sparse"]
