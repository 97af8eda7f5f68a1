"""Products over ranks beside PETSc's, in one MPI job, checked in the same run.

    mpirun -n 2 --bind-to core python3 bench/mpi_speed.py [--csv FILE] [--seconds S] MATRIX ...

Needs petsc4py and mpi4py of the MPI that `mpirun` belongs to, SciPy, and gustav on Python's path. For each matrix, in f64
and with one thread a rank: SpMV (`MatMult`) and SpMM of 64 columns (`MatMatMult` with reuse). Rows are spread alike for
both, by nonzeros. Both are interleaved, with a barrier before each; a time is that of the slowest rank, and a line has
the medians. B is in rows for gustav and in columns for PETSc, as each prefers. Bytes are what one execution sends:
counted by gustav's plan, and for PETSc a value or row of B for every column that a rank has nonzeros in and another rank
has. A wrong result is printed as WRONG and never as a time.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
import sys
from pathlib import Path

import gustav
import gustav.mpi as gm
import numpy as np
import petsc4py
import scipy.sparse as sp
from mpi4py import MPI

petsc4py.init([sys.argv[0]])
from petsc4py import PETSc  # noqa: E402

COLUMNS = 64
COMM = MPI.COMM_WORLD


def partition(a):
    """First rows of the ranks, balanced by nonzeros and row starts."""
    items = a.indptr.astype(np.int64) + np.arange(a.shape[0] + 1)
    targets = items[-1] * np.arange(1, COMM.size) // COMM.size
    return np.concatenate([[0], np.searchsorted(items, targets), [a.shape[0]]])


def right(found, expected, magnitude):
    """Whether every element is within the bound of a sum in f64."""
    fits = np.all(np.abs(found - expected) <= 1e-13 * magnitude + 1e-300)
    return COMM.allreduce(bool(fits), MPI.LAND)


def interleaved(works, seconds):
    """Median seconds of each, of the slowest rank, after two that warm up."""
    times = {name: [] for name in works}
    start, round_ = MPI.Wtime(), 0
    while COMM.bcast(round_ < 9 or MPI.Wtime() - start < seconds):
        for name, work in works.items():
            COMM.Barrier()
            begin = MPI.Wtime()
            work()
            taken = COMM.allreduce(MPI.Wtime() - begin, MPI.MAX)
            if round_ >= 2:
                times[name].append(taken)
        round_ += 1
    return {name: statistics.median(taken) for name, taken in times.items()}, round_ - 2


def measure(ranks, a, seconds):
    """A line for each operation."""
    rows = partition(a)
    square = a.shape[0] == a.shape[1]
    columns = rows if square else np.arange(COMM.size + 1) * a.shape[1] // COMM.size
    (first, last), (left, behind) = (p[COMM.rank : COMM.rank + 2] for p in (rows, columns))
    local = a[first:last]
    matrix = gm.DistCsr(ranks, local, np.diff(columns))
    sizes = ((last - first, a.shape[0]), (behind - left, a.shape[1]))
    theirs = PETSc.Mat().createAIJ(sizes, csr=(local.indptr, local.indices, local.data), comm=COMM)
    used = np.unique(local.indices)
    ghosts = COMM.allreduce(int(np.count_nonzero((used < left) | (used >= behind))))

    rng = np.random.default_rng(0)
    b = rng.standard_normal((a.shape[1], COLUMNS))
    magnitude = abs(local) @ np.abs(b)
    for operation, n in (("spmv", 1), ("spmm", COLUMNS)):
        whole = np.ascontiguousarray(b[:, 0] if n == 1 else b)
        expected, bound = local @ whole, magnitude[:, 0] if n == 1 else magnitude
        mine = whole[left:behind].copy()
        plan = gm.plan_spmm(matrix, n, threads=1)
        of_rows = gm.plan_spmm(matrix, n, threads=1, communication="rows-of-b")
        out, other = np.full_like(expected, np.nan), np.full_like(expected, np.nan)
        if n == 1:
            x = PETSc.Vec().createWithArray(mine.copy(), size=(behind - left, a.shape[1]), comm=COMM)
            y = theirs.createVecLeft()
            product, result = (lambda: theirs.mult(x, y)), (lambda: y.array)
        else:
            packed = np.asfortranarray(mine)
            dense = PETSc.Mat().createDense(((behind - left, a.shape[1]), (None, n)), array=packed, comm=COMM)
            dense.assemble()
            c = theirs.matMult(dense)
            product, result = (lambda: theirs.matMult(dense, c)), c.getDenseArray
        works = {
            "gustav": lambda: plan.execute(matrix.data, mine, out),
            "petsc": product,
            "gustav, rows of B": lambda: of_rows.execute(matrix.data, mine, other),
        }
        for work in works.values():
            work()
        checks = {"gustav": out, "petsc": np.asarray(result()), "gustav, rows of B": other}
        wrong = [name for name, found in checks.items() if not right(found.reshape(expected.shape), expected, bound)]
        medians, rounds = interleaved(works, seconds)
        again = right(out, expected, bound) and right(other, expected, bound)
        yield {
            "operation": operation,
            "columns": n,
            "rows": a.shape[0],
            "nnz": a.nnz,
            "ranks": COMM.size,
            "gustav_ms": medians["gustav"] * 1e3,
            "gustav_rows_of_b_ms": medians["gustav, rows of B"] * 1e3,
            "petsc_ms": medians["petsc"] * 1e3,
            "ratio": medians["petsc"] / medians["gustav"],
            "gustav_bytes": plan.sent_bytes,
            "petsc_bytes": ghosts * n * 8,
            "rounds": rounds,
            "status": "ok" if again and not wrong else f"WRONG: {', '.join(wrong) or 'gustav'}",
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("matrices", nargs="+", type=Path)
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    ranks = gm.Ranks(COMM)
    gustav.set_num_threads(1)
    lines = []
    for path in options.matrices:
        a = sp.csr_matrix(gustav.read(path), dtype=np.float64)
        # PETSc wants sorted columns, none twice; values must not cancel.
        a.sum_duplicates()
        a.data[:] = np.random.default_rng(1).standard_normal(a.nnz)
        if a.indices.dtype != np.int32 or a.nnz == 0:
            continue
        for line in measure(ranks, a, options.seconds):
            line = {"folder": path.parent.name, "matrix": path.name.partition(".")[0], **line}
            lines.append(line)
            if COMM.rank == 0:
                share = line["gustav_bytes"] / max(1, line["petsc_bytes"])
                print(
                    f"{line['matrix']:<32.32} {line['operation']}  {line['ratio']:5.2f} x  bytes {share:4.2f}  "
                    f"{line['status']}",
                    flush=True,
                )
        PETSc.garbage_cleanup() if hasattr(PETSc, "garbage_cleanup") else None
    if COMM.rank != 0:
        return
    for folder in dict.fromkeys(line["folder"] for line in lines):
        for operation in ("spmv", "spmm"):
            of = [x for x in lines if (x["folder"], x["operation"], x["status"]) == (folder, operation, "ok")]
            if not of:
                continue
            ratios = [x["ratio"] for x in of]
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            more = sum(x["gustav_bytes"] > x["petsc_bytes"] for x in of)
            print(
                f"{folder} {operation}: geometric mean {mean:.2f}, worst {min(ratios):.2f}, best {max(ratios):.2f}, "
                f"slower on {sum(r < 1 for r in ratios)} of {len(of)}, more bytes on {more}"
            )
    if options.csv:
        with options.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, lines[0], lineterminator="\n")
            writer.writeheader()
            for line in lines:
                writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in line.items()})


if __name__ == "__main__":
    main()
