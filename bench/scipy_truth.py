#!/usr/bin/env python3
"""Multiplies every matrix of a folder with SciPy and compares gustav's output files.

SpMM (32 columns), SpMV and SpGEMM (A·A, or A·Aᵀ when A is not square; up to 2·10⁸ products),
in f32 and f64. SciPy reads the files itself, so that reading is compared too. An element is
right when it differs by at most (terms + 4)·u·(|A|·|B|), u the unit roundoff of the type; the
pattern of a sparse product must be the same to the entry.

Exit status: 0 all right, 1 something is wrong, 2 nothing was compared.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

COLUMNS = 32
MOST_PRODUCTS = 200_000_000


def stop(reason):
    print(f"skipped: {reason}; nothing was compared", file=sys.stderr)
    sys.exit(2)


try:
    import numpy as np
    import scipy.io
    import scipy.sparse as sp
except ImportError as missing:
    stop(f"{missing.name} is not installed")


def read(path, folder):
    """The matrix as SciPy reads it, in canonical CSR."""
    plain = path
    if path.suffix == ".zst":
        plain = folder / "a.mtx"
        with path.open("rb") as packed, plain.open("wb") as out:
            subprocess.run(["zstd", "-dc"], stdin=packed, stdout=out, check=True)
    a = sp.csr_array(scipy.io.mmread(plain))
    a.sum_duplicates()
    return a


def worst(found, expected, bound):
    """Largest ratio of error to bound; infinite where a value is NaN or should be exact."""
    if found.size == 0:
        return 0.0
    error = np.abs(found - expected)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(error == 0, 0.0, error / bound)
    return float(np.max(np.where(np.isnan(ratio), np.inf, ratio)))


class Comparison:
    """One matrix in one scalar type."""

    def __init__(self, gustav, path, a, dtype, folder):
        self.gustav, self.path, self.folder = gustav, path, folder
        self.name = {"f32": np.float32, "f64": np.float64}[dtype]
        self.dtype = dtype
        # What both sides multiply is A rounded to the type; SciPy then works in f64.
        self.a = a.astype(self.name).astype(np.float64)
        self.unit = float(np.finfo(self.name).eps)
        self.random = np.random.default_rng(1)

    def run(self, verb, output, *words):
        output = self.folder / output
        output.unlink(missing_ok=True)
        command = [self.gustav, verb, self.path, "--dtype", self.dtype, "--quiet", *words]
        subprocess.run([str(w) for w in command] + ["-o", str(output)], check=True)
        return output

    def operand(self, *shape):
        values = self.random.uniform(-1.0, 1.0, shape).astype(self.name)
        path = self.folder / "b.npy"
        np.save(path, values)
        return path, values.astype(np.float64)

    def bound(self, terms, magnitude):
        # f64 is compared with f64: both sides round.
        return 2.0 * (terms + 4) * self.unit * magnitude

    def dense(self, found, b):
        found = np.load(found).astype(np.float64).reshape(-1, b.shape[1])
        terms = np.diff(self.a.indptr)[:, None]
        ratio = worst(found, self.a @ b, self.bound(terms, abs(self.a) @ np.abs(b)))
        return "" if ratio <= 1.0 else f"error is {ratio:.3g} times its bound"

    def spmm(self):
        path, b = self.operand(self.a.shape[1], COLUMNS)
        return self.dense(self.run("spmm", "c.npy", "--b", path), b)

    def spmv(self):
        path, x = self.operand(self.a.shape[1])
        return self.dense(self.run("spmv", "y.npy", "--x", path), x[:, None])

    def spgemm(self):
        a = self.a
        b = a if a.shape[0] == a.shape[1] else sp.csr_array(a.T)
        products = int(np.diff(b.indptr)[a.indices].sum(dtype=np.int64))
        if products > MOST_PRODUCTS:
            return None
        found = sp.csr_array(sp.load_npz(self.run("spgemm", "c.npz")))
        ones = [sp.csr_array((np.ones(m.nnz), m.indices, m.indptr), m.shape) for m in (a, b)]
        terms = sp.csr_array(ones[0] @ ones[1])
        terms.sort_indices()
        same = (
            found.shape == terms.shape
            and np.array_equal(found.indptr, terms.indptr)
            and np.array_equal(found.indices, terms.indices)
        )
        if not same:
            return f"the pattern differs ({found.nnz} entries, {terms.nnz} expected)"

        # Sums that cancel belong to the pattern, whether SciPy stores their zeros or not.
        def places(m):
            m = sp.coo_array(m)
            return m.row.astype(np.int64) * m.shape[1] + m.col

        stored = places(terms)

        def values(m):
            data = np.zeros(terms.nnz)
            data[np.searchsorted(stored, places(m))] = m.data
            return data

        bound = self.bound(terms.data, values(abs(a) @ abs(b)))
        ratio = worst(found.data.astype(np.float64), values(a @ b), bound)
        return "" if ratio <= 1.0 else f"error is {ratio:.3g} times its bound"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus", nargs="?", type=pathlib.Path, default=root / "../shared/corpus")
    parser.add_argument("--gustav", default=root / "target/release/gustav", type=pathlib.Path)
    parser.add_argument("--dtype", choices=["f32", "f64"], help="one type in place of both")
    args = parser.parse_args()

    files = sorted(p for p in args.corpus.glob("*.mtx*"))
    if not files:
        stop(f"there are no matrices in {args.corpus}")
    if not args.gustav.exists():
        stop(f"{args.gustav} does not exist (cargo build --release -p gustav-cli)")
    unpacker = shutil.which("zstd")

    compared = failed = skipped = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for path in files:
            if path.suffix == ".zst" and not unpacker:
                print(f"{path.name}: skipped, the command zstd is missing")
                skipped += 1
                continue
            a = read(path, folder)
            for dtype in [args.dtype] if args.dtype else ["f32", "f64"]:
                comparison = Comparison(args.gustav, path, a, dtype, folder)
                for operation in ("spmm", "spmv", "spgemm"):
                    try:
                        fault = getattr(comparison, operation)()
                    except subprocess.CalledProcessError as error:
                        fault = f"gustav ended with status {error.returncode}"
                    if fault is None:
                        skipped += 1
                        print(f"{path.name} {dtype} {operation}: skipped, too many products")
                        continue
                    compared += 1
                    failed += bool(fault)
                    print(f"{path.name} {dtype} {operation}: {fault or 'right'}", flush=True)
    print(f"{compared} products compared, {failed} wrong, {skipped} skipped")
    sys.exit(1 if failed else 0 if compared else 2)


if __name__ == "__main__":
    main()
