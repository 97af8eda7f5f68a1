"""Products of the Python package beside SciPy, sparse_dot_mkl and PyTorch, on the CPU, checked in the same run.

    python bench/python_speed.py [--threads N] [--seconds S] [--json FILE]
    python bench/python_speed.py --device cuda [--seconds S] [--json FILE] [GRAPH.npz ...]

The second is `python_speed_gpu.py`: beside CuPy, torch.sparse and PyG. FILE gets a line of JSON for every record;
`python_tables.py` makes the tables of the documentation of them.

Peers that are not installed are left out. Times are medians of calls in turns; a ratio is the peer's time over ours. At the
end there is the geometric mean for each peer, and what a call costs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import platform
import statistics
import time

# First: it sets what PyTorch and MKL read when they are loaded.
from python_turns import in_turns

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
        from sparse_dot_mkl import dot_product_mkl, mkl_set_num_threads
    except ImportError:
        pass
    else:
        mkl_set_num_threads(threads)
        matrix = sp.csr_matrix(a)
        yield "sparse_dot_mkl", lambda: dot_product_mkl(matrix, b)
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(threads)
    parts = (torch.from_numpy(part) for part in (a.indptr, a.indices, a.data))
    on_torch = torch.sparse_csr_tensor(*parts, size=a.shape)
    dense = torch.from_numpy(b)
    yield "torch", lambda: (on_torch @ dense).numpy()


def compare(seconds, threads, write):
    """Products of matrices, without a plan and with one, beside every peer."""
    rng = np.random.default_rng(0)
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
                        times = in_turns({"ours": ours, "theirs": theirs}, seconds)
                        write(
                            part="products",
                            matrix=name,
                            dtype=np.dtype(dtype).name,
                            columns=columns,
                            engine=way,
                            peer=peer,
                            seconds=times["ours"],
                            seconds_of_peer=times["theirs"],
                        )


def pairs(seconds, threads, write):
    """What programs do without gustav, and what they do with it, for the pages of the documentation."""
    try:
        import gustav.torch as gt
        import torch
        from gustav.torch.pyg import graph_attention
    except ImportError:
        return
    torch.set_num_threads(threads)
    n, edges, width = 50_000, 1_000_000, 64
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(0, n, (2, edges), generator=generator)
    weight = torch.rand(edges, generator=generator, requires_grad=True)
    x = torch.randn(n, width, generator=generator, requires_grad=True)
    pattern = gt.Pattern.from_edge_index(edge_index, (n, n))
    values = weight.detach()[pattern.permutation]
    coo = torch.sparse_coo_tensor(edge_index.flip(0), weight.detach(), (n, n)).coalesce()
    csr = coo.to_sparse_csr()
    plain, unique = x.detach(), gt.Pattern.from_sparse(csr)

    def step_ours():
        y = gt.spmm(pattern, weight[pattern.permutation], x)
        return torch.autograd.grad(y.sum(), (weight, x))

    def step_gathered():
        rows = weight[:, None] * x[edge_index[0]]
        y = torch.zeros(n, width).index_add(0, edge_index[1], rows)
        return torch.autograd.grad(y.sum(), (weight, x))

    half, half_x, half_values = csr.to(torch.bfloat16), plain.to(torch.bfloat16), values.to(torch.bfloat16)
    a16 = sp.csr_array((values.half().numpy(), pattern.col.numpy(), pattern.crow.numpy()), shape=(n, n))
    x16 = plain.half().numpy()
    pairs_of_nodes = torch.rand(2048, 2048, generator=generator) < 0.01
    few, (row, col) = gt.Pattern.from_sparse(pairs_of_nodes.float().to_sparse_csr()), pairs_of_nodes.nonzero().T
    q, k, v = (torch.randn(2048, 4, 64, generator=generator) for _ in range(3))

    def masked():
        mask = torch.full((2048, 2048), -torch.inf)
        mask[row, col] = 0.0
        o = torch.nn.functional.scaled_dot_product_attention(*(t.transpose(0, 1) for t in (q, k, v)), attn_mask=mask)
        return (o.transpose(0, 1),)

    heads = plain.view(n, 4, -1).clone().requires_grad_()
    vectors = [torch.randn(4, width // 4, generator=generator).requires_grad_() for _ in range(2)]

    def attended():
        y = graph_attention(pattern, heads, *vectors)
        return torch.autograd.grad(y.square().sum(), (heads, *vectors))

    def attended_by_edges():
        source, target = edge_index
        scores = (heads * vectors[0]).sum(-1)[source] + (heads * vectors[1]).sum(-1)[target]
        scores = torch.nn.functional.leaky_relu(scores, 0.2)
        most = torch.full((n, 4), -torch.inf)
        most = most.scatter_reduce(0, target[:, None].expand_as(scores), scores.detach(), "amax")
        weights = (scores - most[target]).exp()
        weights = weights / torch.zeros(n, 4).index_add(0, target, weights)[target]
        y = torch.zeros_like(heads).index_add(0, target, weights[..., None] * heads[source])
        return torch.autograd.grad(y.square().sum(), (heads, *vectors))

    small = uniform(20_000, 10, np.random.default_rng(1))
    cases = {
        "float16": (
            lambda: (gustav.spmm(a16, x16).astype(np.float32),),
            "scipy, converted to float32",
            lambda: (a16.astype(np.float32) @ x16.astype(np.float32),),
        ),
        "bfloat16": (
            lambda: (gt.spmm(pattern, half_values, half_x).float(),),
            "torch.sparse, converted to float32",
            lambda: (half.float() @ half_x.float(),),
        ),
        "gradients of weights and features": (step_ours, "gather and index_add", step_gathered),
        "gradients of features": (
            lambda: torch.autograd.grad(gt.spmm(pattern, values, x).sum(), x),
            "torch.sparse.mm",
            lambda: torch.autograd.grad(torch.sparse.mm(coo, x).sum(), x),
        ),
        "transpose": (
            lambda: (gt.spmm(pattern, values, plain, transpose=True),),
            "a.t().coalesce() @ g",
            lambda: (coo.t().coalesce() @ plain,),
        ),
        "max": (
            lambda: (gt.spmm(unique, csr.values(), plain, reduce="max"),),
            "torch.sparse.mm(a, x, 'amax')",
            lambda: (torch.sparse.mm(csr, plain, "amax"),),
        ),
        "attention": (lambda: (gt.attention(few, q, k, v),), "scaled_dot_product_attention, dense mask", masked),
        "graph attention": (attended, "gather, softmax over edges and index_add", attended_by_edges),
        "sparse times sparse": (
            lambda: (gustav.spgemm(small, small, sorted=False).sum(axis=1),),
            "scipy",
            lambda: ((small @ small).sum(axis=1),),
        ),
    }
    for name, (ours, peer, theirs) in cases.items():
        close = 3e-2 if name in ("float16", "bfloat16") else 1e-3
        try:
            for one, two in zip(ours(), theirs(), strict=True):
                one, two = torch.as_tensor(one), torch.as_tensor(two)
                # Gradients of vectors are sums over all edges, of both signs.
                size = max(1.0, float(two.detach().abs().max())) if name == "graph attention" else 1.0
                torch.testing.assert_close(one, two, rtol=close, atol=close * size)
        except (RuntimeError, NotImplementedError) as e:  # A failure of a peer is a result.
            write(part="pairs", name=name, peer=peer, message=" ".join(str(e).split())[:300])
            continue
        times = in_turns({"ours": ours, "theirs": theirs}, seconds)
        write(part="pairs", name=name, peer=peer, seconds=times["ours"], seconds_of_peer=times["theirs"])


def per_call(seconds, write):
    """Microseconds of calls on a matrix of four nonzeros, where nothing else takes time."""
    a, b, out = sp.eye_array(4, format="csr"), np.ones((4, 2)), np.ones((4, 2))
    plan, values = gustav.plan_spmm(a, 2), a.data
    calls = {
        "plan.execute(values, b, out) of numpy": lambda: plan.execute(values, b, out),
        "plan.execute(values, b) of numpy": lambda: plan.execute(values, b),
        "gustav.spmm(a, b) of scipy": lambda: gustav.spmm(a, b),
        "scipy a @ b": lambda: a @ b,
    }
    try:
        import torch
    except ImportError:
        pass
    else:
        import python_calls

        torch.set_num_threads(1)
        calls |= python_calls.of_torch("cpu")
    # The least of many rounds: a call that is interrupted says nothing of the call.
    least = dict.fromkeys(calls, math.inf)
    end = time.perf_counter() + 10 * seconds
    while time.perf_counter() < end:
        for name, call in calls.items():
            call()
            start = time.perf_counter()
            for _ in range(100):
                call()
            least[name] = min(least[name], (time.perf_counter() - start) / 100)
    for name, taken in least.items():
        write(part="overhead", call=name, microseconds=taken * 1e6)


def summary(records):
    """Geometric means of the peers' times by ours, and the worst."""
    for engine in ("spmm", "plan"):
        products = [r for r in records if r["part"] == "products" and r["engine"] == engine and r["columns"] >= 8]
        for peer in dict.fromkeys(r["peer"] for r in products):
            ratios = [r["seconds_of_peer"] / r["seconds"] for r in products if r["peer"] == peer]
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            print(f"{engine} beside {peer}, 8 columns and more: {mean:.2f}, worst {min(ratios):.2f}")
    for r in records:
        if r["part"] == "overhead":
            print(f"{r['call']}: {r['microseconds']:.2f} µs")


def versions():
    found = {"python": platform.python_version()}
    for name in ("numpy", "scipy", "sparse_dot_mkl", "torch"):
        try:
            found[name] = __import__(name).__version__
        except (ImportError, AttributeError):
            found[name] = None
    return found


def processor():
    """The name of the processor, where the system says it."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


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
    records = []
    file = open(options.json, "w") if options.json else None

    def write(**record):
        records.append(record)
        if file is not None:
            print(json.dumps(record), file=file, flush=True)
        if "seconds" in record:
            of = " ".join(str(record[key]) for key in ("matrix", "dtype", "columns", "engine", "name") if key in record)
            mine, other = record["seconds"], record["seconds_of_peer"]
            print(f"{of:45} {mine * 1e3:9.3f} ms   {record['peer']:32} {other * 1e3:9.3f} ms {other / mine:7.2f}")

    gustav.set_num_threads(options.threads)
    write(
        part="machine",
        cpu=processor(),
        cores=os.cpu_count(),
        load=os.getloadavg()[0],
        threads=options.threads,
        gustav=gustav.__version__,
        versions=versions(),
    )
    compare(options.seconds, options.threads, write)
    pairs(options.seconds, options.threads, write)
    gustav.set_num_threads(1)
    per_call(options.seconds, write)
    summary(records)


if __name__ == "__main__":
    main()
