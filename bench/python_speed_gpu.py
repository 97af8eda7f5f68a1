"""The part of python_speed.py on a GPU: products, training steps and calls beside CuPy, torch.sparse and PyG.

Every engine's result is checked in the same run against torch.sparse in float64, and what fails is recorded as a
failure. Engines are interleaved; a time is that of one call in a loop without waiting between calls, the median of the
rounds.
"""

from __future__ import annotations

import gc
import itertools
import json
import math
import pathlib
import statistics
import sys
import time

import gustav
import gustav.torch as gt
import numpy as np
import python_calls
import torch
from gustav.torch.pyg import graph_attention, graph_convolution

WIDTH = 128
HEADS = 4
# What an error may be beside the size of a result.
CLOSE = 1e-4


def graphs(files):
    """Unseen graphs in files of SciPy's npz, and generated ones, as (name, indptr, indices, shape)."""
    for file in files:
        parts = np.load(file)
        name = pathlib.Path(file).name.removesuffix(".npz")
        yield name, parts["indptr"], parts["indices"], tuple(int(n) for n in parts["shape"])
    rng = np.random.default_rng(0)
    for name, n, edges, power in [
        ("uniform: 200000 nodes, 2000000 edges", 200_000, 2_000_000, 1),
        ("with hubs: 100000 nodes, 3000000 edges", 100_000, 3_000_000, 3),
    ]:
        row = (n * rng.random(edges) ** power).astype(np.int64)
        column = (n * rng.random(edges) ** power).astype(np.int64)
        position = np.unique(row * n + column)
        row, column = position // n, position % n
        indptr = np.zeros(n + 1, np.int64)
        np.cumsum(np.bincount(row, minlength=n), out=indptr[1:])
        yield name, indptr.astype(np.int32), column.astype(np.int32), (n, n)


class Case:
    """A graph on the GPU with values, in the forms that engines take."""

    def __init__(self, name, indptr, indices, shape, seed=0):
        self.name, self.shape = name, shape
        generator = torch.Generator("cuda").manual_seed(seed)
        self.crow, self.col = (torch.from_numpy(np.asarray(a, np.int32)).cuda() for a in (indptr, indices))
        self.nnz = len(self.col)
        self.values = torch.rand(self.nnz, device="cuda", generator=generator) + 0.1
        self.row = torch.arange(shape[0], device="cuda").repeat_interleave(self.crow.diff())
        # Sources are columns and targets rows.
        self.edge_index = torch.stack([self.col.long(), self.row])
        self.generator = generator

    def csr(self, dtype=torch.float32):
        return torch.sparse_csr_tensor(self.crow, self.col, self.values.to(dtype), size=self.shape)

    def random(self, *shape):
        return torch.randn(*shape, device="cuda", generator=self.generator)

    def integers(self, *shape):
        """Integers from -2 to 2."""
        return torch.randint(-2, 3, shape, device="cuda", generator=self.generator).float()


def measured(engines, seconds):
    """Median seconds of a call of each engine; engines are interleaved."""
    repeats, times = {}, {name: [] for name in engines}
    for name, call in engines.items():
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        once = (time.perf_counter() - start) / 3
        repeats[name] = max(1, min(200, round(seconds / 7 / max(once, 1e-6))))
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(7):
        for name, call in engines.items():
            call()
            begin.record()
            for _ in range(repeats[name]):
                call()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) / 1e3 / repeats[name])
    return {name: statistics.median(taken) for name, taken in times.items()}


#: Why steps of a part and an engine cannot be captured. Each is tried until it fails: PyTorch keeps the memory of a
#: capture that failed.
NOT_CAPTURED = {}


def compared(part, case, engines, expected, size, seconds, write, **fields):
    """Checks every engine, times those that are right, and writes a record of each.

    `engines` make functions, whose results are close to `expected` where their error is small beside `size`.
    """
    # Captured graphs of the part before hold memory until they are collected.
    gc.collect()
    torch.cuda.empty_cache()
    common = dict(part=part, graph=case.name, rows=case.shape[0], columns=case.shape[1], nnz=case.nnz, **fields)
    right = {}

    def checked(results):
        error = max(
            float(((found.double() - exact).abs() / bound.clamp(min=1e-30)).max())
            for found, exact, bound in zip(results, expected, size, strict=True)
        )
        if not error < CLOSE:
            raise ArithmeticError(f"the result is wrong by {error:.3g}")
        return error

    for name, make in engines.items():
        try:
            call = make()
            error = checked(call())
        except Exception as e:  # A failure of a peer is a result.
            write(dict(**common, engine=name, status="failed", message=described(e)))
            torch.cuda.empty_cache()
            continue
        right[name] = (call, error)
    calls = {name: call for name, (call, _) in right.items()}
    # Of steps, gradients are computed in PyTorch's own thread for them, which is its default, and in the caller's; a
    # captured graph is replayed without PyTorch.
    for autograd in ("own thread", "calling thread", "captured graph") if part.endswith(" step") else (None,):
        of_step = {} if autograd is None else {"autograd": autograd}
        timed = dict(calls)
        if autograd == "captured graph":
            for name, call in calls.items():
                message = NOT_CAPTURED.get((part, name))
                if message is None:
                    try:
                        timed[name] = captured(call, checked)
                        continue
                    except Exception as e:
                        message = described(e)
                        NOT_CAPTURED[part, name] = f"not tried after {case.name}: {message}"
                del timed[name]
                write(dict(**common, **of_step, engine=name, status="failed", message=message))
        with torch.autograd.set_multithreading_enabled(autograd != "calling thread"):
            times = measured(timed, seconds)
        for name in timed:
            write(dict(**common, **of_step, engine=name, status="ok", seconds=times[name], error=right[name][1]))
        del timed


def described(error):
    """An error in a line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def captured(step, checked):
    """What replays the work that a step queues."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = step()
    graph.replay()
    checked(results)
    return graph.replay


def forward(case, columns, seconds, write):
    b = case.random(case.shape[1], columns)
    exact = case.csr(torch.float64) @ b.double()
    size = case.csr(torch.float64) @ b.double().abs()
    values = case.values

    def plan():
        made = gustav.plan_spmm((case.crow, case.col, values, case.shape), columns)
        return lambda: (made.execute(values, b),)

    def operator():
        pattern = gt.Pattern(case.crow, case.col, case.shape)
        return lambda: (gt.spmm(pattern, values, b),)

    def learnt():
        a = case.csr()
        for _ in range(9):
            gustav.spmm(a, b)
        return lambda: (gustav.spmm(a, b),)

    def of_torch():
        a = case.csr()
        return lambda: (a @ b,)

    def of_cupy():
        import cupy
        from cupyx.scipy import sparse

        arrays = (cupy.from_dlpack(t) for t in (values, case.col, case.crow))
        a, x = sparse.csr_matrix(tuple(arrays), shape=case.shape), cupy.from_dlpack(b)

        def call():
            # On the stream that the times are taken on.
            with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
                return (torch.from_dlpack(a @ x),)

        return call

    def edge_index():
        from torch_geometric import EdgeIndex

        edges = EdgeIndex(case.edge_index.flip(0), sparse_size=case.shape, sort_order="row")
        edges.fill_cache_()
        return lambda: (edges.matmul(b, values),)

    def scattered():
        from torch_geometric.utils import scatter

        source, target = case.edge_index
        rows = case.shape[0]
        return lambda: (scatter(values[:, None] * b.index_select(0, source), target, 0, rows, "sum"),)

    engines = {
        "gustav plan": plan,
        "gustav.torch": operator,
        "gustav.spmm": learnt,
        "torch.sparse csr": of_torch,
        "cupy csr": of_cupy,
        "pyg EdgeIndex": edge_index,
        "pyg edge_index": scattered,
    }
    compared("spmm", case, engines, (exact,), (size,), seconds, write, width=columns)


def normalised(case):
    """Values of D^-1/2 A D^-1/2, of in-degrees, as GCNConv has them without loops."""
    degree = torch.zeros(case.shape[0], device="cuda").index_add(0, case.row, torch.ones_like(case.values))
    root = degree.clamp(min=1e-30).rsqrt() * (degree > 0)
    return root[case.row] * root[case.col.long()]


def stepped(module, x, g, work):
    """A training step's work: forward and backward, with gradients to x and the parameters."""
    parameters = [x, *module.parameters()]

    def step():
        y = work()
        return (y.detach(), *torch.autograd.grad(y, parameters, g))

    return step


def gcn(case, seconds, write):
    """A graph convolution of 128 to 128 features, forward and backward."""
    values = normalised(case)
    x = case.random(case.shape[0], WIDTH).requires_grad_()
    g = case.random(case.shape[0], WIDTH)
    linear = torch.nn.Linear(WIDTH, WIDTH, bias=False, device="cuda")
    csr = torch.sparse_csr_tensor(case.crow, case.col, values, size=case.shape)
    # In float64, by the products that a step is made of.
    a64, x64, w64 = csr.double(), x.detach().double(), linear.weight.detach().double()
    at64 = torch.sparse_coo_tensor(case.edge_index, values.double(), case.shape[::-1]).coalesce().to_sparse_csr()

    def step64(x, w, g):
        y = a64 @ (x @ w.T)
        of_h = at64 @ g
        return y, of_h @ w, of_h.T @ x

    expected = step64(x64, w64, g.double())
    size = step64(x64.abs(), w64.abs(), g.double().abs())

    def ours():
        pattern = gt.Pattern(case.crow, case.col, case.shape)
        return stepped(linear, x, g, lambda: graph_convolution(pattern, x, linear.weight, edge_weight=values))

    def of_products():
        pattern = gt.Pattern(case.crow, case.col, case.shape)
        return stepped(linear, x, g, lambda: gt.spmm(pattern, values, linear(x)))

    def of_torch():
        return stepped(linear, x, g, lambda: csr @ linear(x))

    def convolution(**options):
        from torch_geometric.nn import GCNConv

        made = GCNConv(WIDTH, WIDTH, add_self_loops=False, bias=False, **options).cuda()
        made.lin.weight = linear.weight
        return made

    def of_pyg():
        made = convolution(cached=True)
        return stepped(linear, x, g, lambda: made(x, case.edge_index))

    def of_pyg_csr():
        made = convolution(normalize=False)
        return stepped(linear, x, g, lambda: made(x, csr))

    def edges_of_pyg():
        from torch_geometric import EdgeIndex

        # As messages go: sorted by targets.
        edges = EdgeIndex(case.edge_index, sparse_size=case.shape[::-1], sort_order="col")
        edges.fill_cache_()
        return edges

    def of_pyg_edges():
        made, edges = convolution(normalize=False), edges_of_pyg()
        return stepped(linear, x, g, lambda: made(x, edges, values))

    def of_pyg_matmul():
        edges = edges_of_pyg()
        return stepped(linear, x, g, lambda: edges.matmul(linear(x), values, transpose=True))

    def of_sparse_tensor():
        from torch_sparse import SparseTensor

        made = convolution(normalize=False)
        adjacency = SparseTensor(rowptr=case.crow.long(), col=case.col.long(), value=values, sparse_sizes=case.shape)
        return stepped(linear, x, g, lambda: made(x, adjacency))

    engines = {
        "gustav.torch": ours,
        "gustav.torch.spmm": of_products,
        "torch.sparse csr": of_torch,
        "pyg GCNConv edge_index cached": of_pyg,
        "pyg GCNConv csr": of_pyg_csr,
        "pyg GCNConv EdgeIndex": of_pyg_edges,
        "pyg EdgeIndex.matmul": of_pyg_matmul,
        "pyg GCNConv SparseTensor": of_sparse_tensor,
    }
    compared("gcn step", case, engines, expected, size, seconds, write, width=WIDTH)


def exact_gat(edge_index, n, x, g, weight, of_source, of_target):
    """The step of :func:`gat` in float64 with the scores of every edge."""
    source, target = edge_index
    exact = [p.detach().double().requires_grad_() for p in (x, weight, of_source, of_target)]
    h = (exact[0] @ exact[1].T).view(n, HEADS, -1)
    scores = (h * exact[2]).sum(-1)[source] + (h * exact[3]).sum(-1)[target]
    scores = torch.nn.functional.leaky_relu(scores, 0.2)
    most = torch.full((n, HEADS), -math.inf, device=x.device, dtype=torch.float64)
    most = most.scatter_reduce(0, target[:, None].expand_as(scores), scores.detach(), "amax")
    weights = (scores - most[target]).exp()
    sums = torch.zeros_like(most).index_add(0, target, weights)
    y = torch.zeros_like(h).index_add(0, target, (weights / sums[target])[..., None] * h[source])
    y = y.reshape(n, -1)
    return (y.detach(), *torch.autograd.grad(y, exact, g.double()))


class Gat(torch.nn.Module):
    """Graph attention (Veličković et al. 2018)."""

    def __init__(self, weight, of_source, of_target):
        super().__init__()
        self.weight, self.of_source, self.of_target = weight, of_source, of_target

    def forward(self, pattern, x):
        n = x.shape[0]
        h = torch.nn.functional.linear(x, self.weight).view(n, HEADS, -1)
        return graph_attention(pattern, h, self.of_source, self.of_target).reshape(n, -1)


def gat_of_torch(layer, row, col, x):
    """The layer by products of torch.sparse, a head after the other; its softmax takes COO alone."""
    n = x.shape[0]
    h = torch.nn.functional.linear(x, layer.weight).view(n, HEADS, -1)
    scores = (h * layer.of_source).sum(-1)[col] + (h * layer.of_target).sum(-1)[row]
    scores = torch.nn.functional.leaky_relu(scores, 0.2)
    positions = torch.stack((row, col))
    of_heads = []
    for head in range(HEADS):
        attention = torch.sparse_coo_tensor(positions, scores[:, head], (n, n), is_coalesced=True)
        of_heads.append(torch.sparse.mm(torch.sparse.softmax(attention, dim=1), h[:, head]))
    return torch.cat(of_heads, 1)


def gat(case, seconds, write):
    """A graph attention of 128 features to 4 heads of 32, forward and backward.

    The slope of a leaky ReLU jumps at zero, and with it the gradient: a score that rounding moves to the other side
    would make a difference that no bound of rounding holds. So features, weights and vectors are small integers over
    powers of two, of which scores are exact in float32 in whatever order they are summed.
    """
    x = case.integers(case.shape[0], WIDTH).requires_grad_()
    g = case.random(case.shape[0], WIDTH)
    weight = torch.nn.Parameter(case.integers(WIDTH, WIDTH) / 16)
    of_source, of_target = (torch.nn.Parameter(case.integers(1, HEADS, WIDTH // HEADS) / 8) for _ in range(2))
    layer = Gat(weight, of_source, of_target)

    def ours():
        pattern = gt.Pattern(case.crow, case.col, case.shape)
        return stepped(layer, x, g, lambda: layer(pattern, x))

    def of_pyg():
        from torch_geometric.nn import GATConv

        made = GATConv(WIDTH, WIDTH // HEADS, heads=HEADS, add_self_loops=False, bias=False).cuda()
        made.lin.weight, made.att_src, made.att_dst = weight, of_source, of_target
        return stepped(layer, x, g, lambda: made(x, case.edge_index))

    def of_torch():
        return stepped(layer, x, g, lambda: gat_of_torch(layer, case.row, case.col.long(), x))

    expected = exact_gat(case.edge_index, case.shape[0], x, g, weight, of_source, of_target)
    # Gradients are sums of both signs over rows and edges: their error is beside the largest.
    size = tuple(torch.full_like(t, float(t.abs().max()) or 1.0) for t in expected)
    engines = {"gustav.torch": ours, "torch.sparse coo": of_torch, "pyg GATConv edge_index": of_pyg}
    compared("gat step", case, engines, expected, size, seconds, write, width=WIDTH, heads=HEADS)


def overheads(seconds, write):
    """Microseconds that the host takes for a call on four nonzeros."""
    calls = python_calls.of_torch("cuda")
    try:
        import cupy
        from cupyx.scipy import sparse

        of_cupy = sparse.csr_matrix(cupy.eye(4, dtype="float32"))
        dense, result = cupy.ones((4, 2), "float32"), cupy.ones((4, 2), "float32")
        planned = gustav.plan_spmm(of_cupy, 2)
        calls["plan.execute(values, b, out) of cupy"] = lambda: planned.execute(None, dense, result)
        calls["cupy csr @ b"] = lambda: of_cupy @ dense
    except ImportError:
        pass
    taken = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(50):
            call()
    end = time.perf_counter() + seconds * len(calls)
    for turn in itertools.count():
        if turn >= 5 and time.perf_counter() > end:
            break
        for name, call in calls.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(100):
                call()
            taken[name].append((time.perf_counter() - start) / 100)
    for name, times in taken.items():
        write(dict(part="overhead", call=name, status="ok", microseconds=statistics.median(times) * 1e6))


def summary(records):
    """Geometric means of the peers' times by ours, and the worst."""
    ours = {"spmm": "gustav plan", "gcn step": "gustav.torch", "gat step": "gustav.torch"}
    timed = ((r["part"], r.get("autograd")) for r in records if r["part"] in ours and r["status"] == "ok")
    for part, autograd in dict.fromkeys(timed):
        mine = ours[part]
        of_part = [r for r in records if r["part"] == part and r.get("autograd", autograd) == autograd]
        for peer in dict.fromkeys(r["engine"] for r in of_part if r["engine"] != mine):
            ratios, failed = [], 0
            for r in of_part:
                if r["engine"] != peer:
                    continue
                key = ("graph", "width")
                beside = [o for o in of_part if o["engine"] == mine and all(o[k] == r[k] for k in key)]
                if r["status"] == "ok" and beside and beside[0]["status"] == "ok":
                    ratios.append(r["seconds"] / beside[0]["seconds"])
                else:
                    failed += 1
            text = "no common case"
            if ratios:
                mean = math.exp(statistics.fmean(map(math.log, ratios)))
                text = f"{mean:.2f} times, worst {min(ratios):.2f}, of {len(ratios)}"
            name = part if autograd is None else f"{part}, {autograd}"
            print(f"{name}, {mine} beside {peer}: {text}" + (f"; {failed} failed" if failed else ""))
    for r in records:
        if r["part"] == "overhead":
            print(f"{r['call']}: {r['microseconds']:.2f} µs")


def versions():
    found = {}
    for name in ("torch", "cupy", "torch_geometric", "torch_sparse"):
        try:
            found[name] = __import__(name).__version__
        except Exception:
            found[name] = None
    return found


def run(options):
    torch.backends.cuda.matmul.allow_tf32 = False
    records = []
    file = open(options.json, "w") if options.json else None

    def write(record):
        records.append(record)
        if file is not None:
            print(json.dumps(record), file=file, flush=True)
        if record.get("status") == "failed":
            print(f"{record['part']} {record['graph']} {record['engine']}: {record['message']}", file=sys.stderr)

    write(dict(part="machine", gpu=torch.cuda.get_device_name(0), gustav=gustav.__version__, versions=versions()))
    overheads(min(options.seconds, 0.2), write)
    for graph in graphs(options.graphs):
        case = Case(*graph)
        for columns in (32, WIDTH):
            forward(case, columns, options.seconds, write)
        if case.shape[0] == case.shape[1]:
            gcn(case, options.seconds, write)
            gat(case, options.seconds, write)
        del case
        torch.cuda.empty_cache()
    summary(records)
