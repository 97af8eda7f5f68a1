"""The products of a training step on the CPU: SDDMM beside PyTorch's and beside SpMM, and a step beside its forward
product. Checked in the same run.

    python bench/python_training.py [--threads N] [--seconds S] [--json FILE] FOLDER ...

FOLDERs hold matrices in files that `gustav.read` takes; those of fewer than 20,000 nonzeros are left out. Times are
medians of calls in turns, each after caches were emptied (cold) or not (hot). FILE gets a line of JSON for every record.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import statistics
import time

# First: it sets what PyTorch reads when it is loaded.
from python_turns import in_turns

import gustav
import gustav.torch as gt
import numpy as np
import torch

LEAST_NONZEROS = 20_000
# Bytes that are written before each call, so that operands are not in caches: several times those of a server's core.
EVICTING = 2**27
DEPTHS = (32, 64, 128)


def check(name, found, row, column, left, right):
    """Inner products in f64 are the truth, up to what a sum of so many terms in f32 may be off."""
    left, right = left.double()[row], right.double()[column]
    off = (found.double() - (left * right).sum(1)).abs()
    bound = 2.0**-23 * left.shape[1] * (left * right).abs().sum(1)
    if not bool((off <= bound).all()):
        raise ArithmeticError(f"{name} is wrong by {float((off - bound).max()):.3g}")


def products(a, depth):
    """Functions that multiply, by name."""
    rows, columns = a.shape
    generator = torch.Generator().manual_seed(0)
    crow, col = (torch.from_numpy(part.astype(np.int32)) for part in (a.indptr, a.indices))
    values, x, y, g = (
        torch.randn(size, generator=generator)
        for size in ((a.nnz,), (rows, depth), (columns, depth), (rows, depth))
    )
    pattern = gt.Pattern(crow, col, a.shape)
    sparse = torch.sparse_csr_tensor(crow, col, values, size=a.shape)
    row = torch.repeat_interleave(torch.arange(rows), crow.diff())
    of_torch = lambda: torch.sparse.sampled_addmm(sparse, x, y.t(), beta=0.0)
    check("gustav's SDDMM", gt.sddmm(pattern, x, y), row, col, x, y)
    check("PyTorch's SDDMM", of_torch().values(), row, col, x, y)
    learnt, moved = values.clone().requires_grad_(), y.clone().requires_grad_()
    step = lambda: torch.autograd.grad(gt.spmm(pattern, learnt, moved), (learnt, moved), g)
    check("the gradient of the values", step()[0], row, col, g, y)
    return {
        "spmm": lambda: gt.spmm(pattern, values, y),
        "sddmm": lambda: gt.sddmm(pattern, x, y),
        "torch sddmm": of_torch,
        "step": step,
    }


# What is said of a record: names of two of its times, and what their ratio is called.
RATIOS = (
    ("torch sddmm", "sddmm", "PyTorch's SDDMM over ours"),
    ("sddmm", "spmm", "our SDDMM over our SpMM"),
    ("step", "spmm", "a step over its forward product"),
)


def summary(records):
    for caches, times in (("cold", "seconds"), ("hot", "hot_seconds")):
        for depth in DEPTHS:
            own = [r[times] for r in records if r["depth"] == depth]
            for over, under, name in RATIOS:
                ratios = [seconds[over] / seconds[under] for seconds in own]
                if ratios:
                    mean = math.exp(statistics.fmean(map(math.log, ratios)))
                    span = f"{min(ratios):.2f} to {max(ratios):.2f}, of {len(ratios)}"
                    print(f"{caches}, {depth}: {name}: {mean:.2f}, {span}")

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=0.3, help="for each comparison")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    gustav.set_num_threads(arguments.threads)
    records, written = [], np.zeros(EVICTING // 8)
    for folder in arguments.folders:
        for path in sorted(p for p in folder.iterdir() if ".mtx" in p.name):
            a = gustav.read(path)
            if a.nnz < LEAST_NONZEROS:
                continue
            for depth in DEPTHS:
                works = products(a, depth)
                record = {
                    "folder": folder.name,
                    "matrix": path.name.partition(".")[0],
                    "nonzeros": int(a.nnz),
                    "depth": depth,
                    "threads": arguments.threads,
                    "seconds": in_turns(works, arguments.seconds, lambda: written.fill(1.0)),
                    "hot_seconds": in_turns(works, arguments.seconds),
                }
                records.append(record)
                if arguments.json:
                    with arguments.json.open("a") as file:
                        file.write(json.dumps(record) + "\n")
    summary(records)


if __name__ == "__main__":
    main()
