"""Files of SciPy and NumPy for the tests, and a second opinion on ours.

scipy_files.py write FOLDER    writes matrices, and beside each NAME its triples as NAME.triples
scipy_files.py read FILE       prints the triples of a matrix
"""

import sys
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp


def triples(matrix):
    """The shape, then one line for every nonzero, by row and column."""
    matrix = sp.coo_array(matrix)
    order = np.lexsort((matrix.col, matrix.row))
    lines = [f"{matrix.shape[0]} {matrix.shape[1]}"]
    for k in order:
        lines.append(f"{matrix.row[k]} {matrix.col[k]} {float(matrix.data[k])!r}")
    return "\n".join(lines) + "\n"


def keep(folder, name, matrix):
    (folder / f"{name}.triples").write_text(triples(matrix))


def write(folder):
    random = np.random.default_rng(7)
    for dtype in ["f4", "f8", "i4", "i8", "u1", "bool", ">f8"]:
        dense = random.integers(0 if dtype == "u1" else -9, 9, (23, 17))
        dense = np.where(random.random((23, 17)) < 0.3, dense, 0)
        dense = (dense / 7 if "f" in dtype else dense).astype(dtype)
        # Sparse matrices have the byte order of the machine.
        for kind in ["csr", "csc", "coo"] if dtype != ">f8" else []:
            for index in ["int32", "int64"]:
                matrix = getattr(sp, f"{kind}_array")(dense)
                for part in ["indptr", "indices"] if kind != "coo" else []:
                    setattr(matrix, part, getattr(matrix, part).astype(index))
                name = f"{kind}-{dtype.replace('>', 'big-')}-{index}.npz"
                sp.save_npz(folder / name, matrix, compressed=index == "int32")
                keep(folder, name, matrix)
        for order in "CF":
            name = f"dense-{dtype.replace('>', 'big-')}-{order}.npy"
            np.save(folder / name, np.asarray(dense, order=order))
            keep(folder, name, dense.astype("f8"))
    square = sp.random_array((19, 19), density=0.2, rng=random)
    for symmetry, matrix in [
        ("general", square),
        ("symmetric", square + square.T),
        ("skew-symmetric", square - square.T),
    ]:
        path = folder / f"{symmetry}.mtx"
        scipy.io.mmwrite(path, sp.coo_array(matrix), symmetry=symmetry, precision=17)
        keep(folder, f"{symmetry}.mtx", matrix)
    scipy.io.mmwrite(folder / "pattern.mtx", square, field="pattern", symmetry="general")
    keep(folder, "pattern.mtx", (square != 0).astype("f8"))
    scipy.io.mmwrite(folder / "array.mtx", square.toarray(), precision=17)
    keep(folder, "array.mtx", square)
    for name, shape in [("no-rows.npz", (0, 5)), ("no-columns.npz", (5, 0)), ("empty.npz", (4, 6))]:
        sp.save_npz(folder / name, sp.csr_array(shape))
        keep(folder, name, sp.csr_array(shape))
    for kind in ["bsr", "dia"]:
        sp.save_npz(folder / f"refused-{kind}.npz", getattr(sp, f"{kind}_array")(np.eye(4)))
    np.save(folder / "refused-pickle.npy", np.array([[None]], dtype=object), allow_pickle=True)


def read(path):
    if path.endswith(".npz"):
        return sp.load_npz(path)
    return np.load(path) if path.endswith(".npy") else scipy.io.mmread(path)


if sys.argv[1] == "write":
    write(Path(sys.argv[2]))
else:
    print(triples(read(sys.argv[2])), end="")
