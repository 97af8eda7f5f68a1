"""Matrices as users have them: empty, with unsorted and repeated entries, in every format and width."""

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

FORMATS = ("csr", "csc", "coo")


@st.composite
def sparse(draw, rows=None, columns=None, dtype=np.float64, formats=FORMATS, unique=False):
    """A SciPy array or matrix; with entries of one position unless `unique`."""
    rows = draw(st.integers(0, 12)) if rows is None else rows
    columns = draw(st.integers(0, 12)) if columns is None else columns
    most = rows * columns
    nnz = draw(st.integers(0, min(3 * max(rows, columns), 40))) if most else 0
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if unique:
        positions = rng.permutation(most)[: min(nnz, most)]
    else:
        positions = rng.integers(0, max(most, 1), nnz)
    row, column = np.divmod(positions, max(columns, 1))
    index = draw(st.sampled_from([np.int32, np.int64]))
    # CSR made by hand, so that neither order nor repetitions are put right.
    order = np.argsort(row, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows))]).astype(index)
    indices = column[order].astype(index)
    data = _values(rng, len(positions), dtype)
    container = draw(st.sampled_from([sp.csr_array, sp.csr_matrix]))
    a = container((data, indices, indptr), shape=(rows, columns), copy=False)
    kind = draw(st.sampled_from(formats))
    if kind == "csc":
        return _as_csc(a)
    if kind == "coo":
        return a.tocoo(copy=True)
    return a


def _as_csc(a):
    """The matrix in CSC, every entry for itself."""
    coo = a.tocoo()
    order = np.argsort(coo.col, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(coo.col, minlength=a.shape[1]))])
    container = sp.csc_array if isinstance(a, sp.sparray) else sp.csc_matrix
    arrays = (coo.data[order], coo.row[order].astype(a.indices.dtype), indptr.astype(a.indptr.dtype))
    return container(arrays, shape=a.shape, copy=False)


def _values(rng, count, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "i":
        return rng.integers(-9, 10, count).astype(dtype)
    return rng.standard_normal(count).astype(dtype)


@st.composite
def dense(draw, rows, columns, dtype=np.float64):
    """A matrix in either order, a block of a larger one, or with steps that have to be copied."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def made(rows, columns):
        return _values(rng, rows * columns, dtype).reshape(rows, columns)

    match draw(st.sampled_from(["C", "F", "block", "F block", "steps", "reversed", "read-only"])):
        case "C":
            return made(rows, columns)
        case "F":
            return np.asfortranarray(made(rows, columns))
        case "block":
            return made(rows + 2, columns + 3)[1 : rows + 1, 2 : columns + 2]
        case "F block":
            return made(columns + 3, rows + 2)[2 : columns + 2, 1 : rows + 1].T
        case "steps":
            return made(rows, 2 * columns)[:, ::2]
        case "reversed":
            return made(rows, columns)[::-1]
        case _:
            b = made(rows, columns)
            b.flags.writeable = False
            return b
