"""Products over the ranks of an MPI program: each rank has consecutive rows of a sparse matrix.

Every function here is collective: all ranks call it, in the same order, with the same options. What a rank gives and
gets are its own rows, as arrays in host memory or on a GPU.

>>> import numpy as np, scipy.sparse as sp, gustav.mpi as gm
>>> ranks = gm.Ranks.alone()                        # in a job: gm.Ranks(mpi4py.MPI.COMM_WORLD)
>>> rows = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [0.0, 0.0, 1.0]])
>>> a = gm.DistCsr(ranks, rows)                     # the rows of this rank, over all columns
>>> gm.spmv(a, np.array([1.0, 10.0, 100.0]))        # x where the rank has columns, y where it has rows
array([201.,  30., 100.])

`gustav.mpi.torch` has the same with gradients.
"""

from ._matrix import DistCsr, DistPattern
from ._plans import SddmmPlan, SpgemmPlan, SpmmPlan, plan_sddmm, plan_spgemm, plan_spmm
from ._products import sddmm, spgemm, spmm, spmv
from ._ranks import Ranks

__all__ = [
    "DistCsr",
    "DistPattern",
    "Ranks",
    "SddmmPlan",
    "SpgemmPlan",
    "SpmmPlan",
    "plan_sddmm",
    "plan_spgemm",
    "plan_spmm",
    "sddmm",
    "spgemm",
    "spmm",
    "spmv",
]
