"""Products of the Python package beside SciPy, sparse_dot_mkl and PyTorch, on the CPU, checked in the same run.

    python bench/python_speed.py [--threads N] [--seconds S] [--json FILE]
    python bench/python_speed.py --device cuda [--seconds S] [--json FILE] [GRAPH.npz ...]

The second is `python_speed_gpu.py`: beside CuPy, torch.sparse and PyG, as JSON lines.

Peers that are not installed are left out. Each line has the median times of both, taken in turns, and the
ratio of the peer's time to ours; at the end the geometric mean for each peer, and what a call costs.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time

import gustav
import numpy as np

try:
    import scipy.sparse as sp
except ImportError:
    sp = None


def matrices(rng):
    """Matrices with rows of one length, of few and of many nonzeros, and with hubs."""
    yield "200000 rows of 5", uniform(200_000, 5, rng)
    yield "20000 rows of 100", uniform(20_000, 100, rng)
    n, nnz = 50_000, 1_000_000
    row = (n * rng.random(nnz) ** 3).astype(np.int32)
    column = rng.integers(0, n, nnz, np.int32)
    hubs = sp.coo_array((rng.standard_normal(nnz), (row, column)), shape=(n, n)).tocsr()
    yield "50000 rows with hubs", hubs


def uniform(n, length, rng):
    indices = np.sort(rng.integers(0, n, (n, length), np.int32), axis=1).ravel()
    indptr = np.arange(0, n * length + 1, length, np.int32)
    return sp.csr_array((rng.standard_normal(n * length), indices, indptr), shape=(n, n))


def peers(a, b, threads):
    """What else multiplies these, by name, each as a function of no arguments."""
    yield "scipy", lambda: a @ b
    try:
        from sparse_dot_mkl import dot_product_mkl
    except ImportError:
        pass
    else:
        yield "sparse_dot_mkl", lambda: dot_product_mkl(sp.csr_matrix(a), b)
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(threads)
    parts = (torch.from_numpy(part) for part in (a.indptr, a.indices, a.data))
    on_torch = torch.sparse_csr_tensor(*parts, size=a.shape)
    dense = torch.from_numpy(b)
    yield "torch", lambda: (on_torch @ dense).numpy()


def in_turns(ours, theirs, seconds):
    """Median seconds of both, one after the other until the time is over."""
    times = ([], [])
    end = time.perf_counter() + seconds
    while len(times[0]) < 5 or time.perf_counter() < end:
        for work, taken in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            work()
            taken.append(time.perf_counter() - start)
    return tuple(statistics.median(taken) for taken in times)


def compare(seconds, threads):
    gustav.set_num_threads(threads)
    rng = np.random.default_rng(0)
    records = []
    for name, matrix in matrices(rng):
        for dtype in (np.float32, np.float64):
            a = matrix.astype(dtype)
            for columns in (1, 8, 32, 128):
                b = rng.standard_normal((a.shape[1], columns)).astype(dtype)
                plan = gustav.plan_spmm(a, columns)
                for way, ours in (
                    ("spmm", lambda a=a, b=b: gustav.spmm(a, b)),
                    ("plan", lambda plan=plan, b=b: plan.execute(None, b)),
                ):
                    for peer, theirs in peers(a, b, threads):
                        np.testing.assert_allclose(ours(), theirs(), rtol=1e-3, atol=1e-3)
                        mine, other = in_turns(ours, theirs, seconds)
                        record = dict(
                            matrix=name,
                            dtype=np.dtype(dtype).name,
                            columns=columns,
                            threads=threads,
                            ours=way,
                            peer=peer,
                            seconds=mine,
                            seconds_of_peer=other,
                        )
                        records.append(record)
                        print(
                            f"{name:22} {record['dtype']} x{columns:<4} {way} {mine * 1e3:9.3f} ms   "
                            f"{peer:14} {other * 1e3:9.3f} ms   {other / mine:6.2f}",
                            flush=True,
                        )
    return records


def training(seconds, threads):
    """A step of a graph convolution, forward and backward, beside what PyTorch has for it."""
    try:
        import gustav.torch as gt
        import torch
    except ImportError:
        return []
    torch.set_num_threads(threads)
    n, edges, width = 50_000, 1_000_000, 64
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(0, n, (2, edges), generator=generator)
    weight = torch.rand(edges, generator=generator, requires_grad=True)
    x = torch.randn(n, width, generator=generator, requires_grad=True)
    pattern = gt.Pattern.from_edge_index(edge_index, (n, n))

    def ours():
        y = gt.spmm(pattern, weight[pattern.permutation], x)
        return torch.autograd.grad(y.sum(), (weight, x))

    def gathered():
        rows = weight[:, None] * x[edge_index[0]]
        y = torch.zeros(n, width).index_add(0, edge_index[1], rows)
        return torch.autograd.grad(y.sum(), (weight, x))

    def of_features():
        values = weight.detach()[pattern.permutation]
        return torch.autograd.grad(gt.spmm(pattern, values, x).sum(), x)

    a = torch.sparse_coo_tensor(edge_index.flip(0), weight.detach(), (n, n)).coalesce()
    pairs = [
        ("weights and features", ours, "gather and index_add", gathered),
        ("features", of_features, "torch.sparse.mm", lambda: torch.autograd.grad(torch.sparse.mm(a, x).sum(), x)),
    ]
    records = []
    for gradients, mine, peer, theirs in pairs:
        for one, two in zip(mine(), theirs(), strict=True):
            torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-3)
        taken, of_peer = in_turns(mine, theirs, seconds)
        records.append(dict(gradients=gradients, peer=peer, seconds=taken, seconds_of_peer=of_peer))
        print(
            f"training step, gradients of {gradients}: {taken * 1e3:.1f} ms, {peer} {of_peer * 1e3:.1f} ms, "
            f"{of_peer / taken:.2f}"
        )
    return records


def per_call(seconds):
    """Microseconds of calls on a matrix of four nonzeros, where nothing else takes time."""
    a, b, out = sp.eye_array(4, format="csr"), np.ones((4, 2)), np.ones((4, 2))
    plan, values = gustav.plan_spmm(a, 2), a.data
    calls = {
        "plan.execute(values, b, out)": lambda: plan.execute(values, b, out),
        "plan.execute(values, b)": lambda: plan.execute(values, b),
        "gustav.spmm(a, b)": lambda: gustav.spmm(a, b),
        "scipy a @ b": lambda: a @ b,
    }
    return {name: in_turns(call, lambda: None, seconds)[0] * 1e6 for name, call in calls.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=gustav.get_num_threads())
    parser.add_argument("--seconds", type=float, default=0.3, help="for each pair")
    parser.add_argument("--json", help="where the records go")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("graphs", nargs="*", help="files of SciPy's npz, beside generated graphs (cuda)")
    options = parser.parse_args()
    if options.device == "cuda":
        import python_speed_gpu

        return python_speed_gpu.run(options)
    records = compare(options.seconds, options.threads)
    print()
    for way in ("spmm", "plan"):
        for peer in dict.fromkeys(r["peer"] for r in records):
            ratios = [
                r["seconds_of_peer"] / r["seconds"]
                for r in records
                if r["peer"] == peer and r["ours"] == way and r["columns"] >= 8
            ]
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            print(f"{way} beside {peer}, 8 columns and more: {mean:.2f}, worst {min(ratios):.2f}")
    steps = training(options.seconds, options.threads)
    microseconds = per_call(options.seconds)
    for name, value in microseconds.items():
        print(f"{name}: {value:.2f} µs")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"products": records, "training": steps, "microseconds": microseconds}, file, indent=1)


if __name__ == "__main__":
    main()
