"""CuPy and PyTorch on a GPU behind the benchmark's protocol (bench/PROTOCOL.md).

Times are those of events around one call, with cold caches: a buffer larger than any L2 is filled
before each. PyTorch Geometric trains networks, on a GPU or on the CPU: its time is that of the clock around
all epochs, after the device has finished.
"""

import time

import numpy as np

FLUSH_BYTES = 256 << 20


class Cupy:
    def __init__(self):
        import cupy
        import cupyx.scipy.sparse

        self.cupy, self.sparse = cupy, cupyx.scipy.sparse
        self.flush = cupy.zeros(FLUSH_BYTES, dtype=np.uint8)

    def versions(self):
        return {"cupy": self.cupy.__version__}

    def threads(self):
        return 1

    def call_ms(self):
        return 0.0

    def csr(self, m):
        parts = tuple(self.cupy.asarray(x) for x in (m.values, m.indices, m.offsets))
        return self.sparse.csr_matrix(parts, shape=(m.rows, m.cols))

    def prepare(self, operation, a, b, pool, columns, order):
        left = self.csr(a)
        if operation == "spgemm":
            right = left if b is a else self.csr(b)
            return CupySpgemm(self, left, right, order)
        right = self.cupy.asarray(pool[: a.cols * columns].reshape(a.cols, columns))
        return CupyDense(self, left, right if operation == "spmm" else right[:, 0])


class CupyProduct:
    """A product that returns a new C every time."""

    def __init__(self, peer, a, b):
        self.peer, self.a, self.b, self.c = peer, a, b, None
        self.execute()

    def multiply(self):
        return self.a @ self.b

    def drop(self):
        self.c = None

    poison = drop

    def execute(self):
        cupy = self.peer.cupy
        self.drop()
        self.peer.flush.fill(1)
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        self.c = self.multiply()
        end.record()
        end.synchronize()
        return cupy.cuda.get_elapsed_time(start, end)

    def release(self):
        self.a = self.b = self.c = None
        self.peer.cupy.get_default_memory_pool().free_all_blocks()


class CupyDense(CupyProduct):
    def result(self):
        c = self.c.get()
        return np.ascontiguousarray(c.reshape(c.shape[0], -1))


class CupySpgemm(CupyProduct):
    def __init__(self, peer, a, b, order):
        self.order = order
        super().__init__(peer, a, b)

    def multiply(self):
        c = self.a @ self.b
        if self.order:
            c.sort_indices()
        return c

    def result(self):
        return self.c.indptr.get(), self.c.indices.get(), self.c.data.get()


class TorchCuda:
    def __init__(self):
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU")
        self.torch = torch
        self.flush = torch.zeros(FLUSH_BYTES, dtype=torch.uint8, device="cuda")

    def versions(self):
        return {"torch": self.torch.__version__, "cuda": str(self.torch.version.cuda)}

    def threads(self):
        return 1

    def call_ms(self):
        return 0.0

    def there(self, array):
        return self.torch.from_numpy(np.ascontiguousarray(array)).cuda()

    def csr(self, a, values):
        parts = self.there(a.offsets), self.there(a.indices), values
        return self.torch.sparse_csr_tensor(*parts, size=(a.rows, a.cols))

    def prepare(self, operation, a, b, pool, columns, order):
        if operation == "spgemm":
            raise NotImplementedError("the order of its rows is not promised")
        left = self.csr(a, self.there(a.values))
        right = self.there(pool[: a.cols * columns].reshape(a.cols, columns))
        return TorchDense(self, left, right)

    def operands(self, a, pool, columns, names):
        """The dense operands that follow one another in the pool."""
        found, first = {}, 0
        for name in names:
            rows = a.cols if name in "bkv" else a.rows
            found[name] = self.there(pool[first : first + rows * columns].reshape(rows, columns))
            first += rows * columns
        return found

    def fused(self, operation, a, pool, columns, heads, gradients):
        if operation == "spmm":
            operands = self.operands(a, pool, columns, "bg")
            return TorchGradients(self, self.csr(a, self.there(a.values)), **operands)
        if gradients or heads > 1:
            raise NotImplementedError("it is asked for the attention of one head, forward")
        operands = self.operands(a, pool, columns, "kqv")
        return TorchAttention(self, a, operands)


class TorchProduct:
    """A product that returns new results every time."""

    def __init__(self, peer):
        self.peer, self.c = peer, None
        self.execute()

    def drop(self):
        self.c = None

    poison = drop

    def execute(self):
        events = self.peer.torch.cuda.Event
        start, end = events(enable_timing=True), events(enable_timing=True)
        self.drop()
        self.peer.flush.fill_(1)
        start.record()
        self.c = self.multiply()
        end.record()
        end.synchronize()
        return start.elapsed_time(end)

    def result(self):
        return self.c.cpu().numpy()

    def release(self):
        self.__dict__ = {"peer": self.peer}
        self.peer.torch.cuda.empty_cache()


class TorchDense(TorchProduct):
    def __init__(self, peer, a, b):
        self.a, self.b = a, b
        super().__init__(peer)

    def multiply(self):
        return self.a @ self.b


class TorchGradients(TorchProduct):
    """The gradients of the values of A and of B, as autograd computes them."""

    def __init__(self, peer, a, b, g):
        self.a, self.b, self.g = a.requires_grad_(), b.requires_grad_(), g
        self.product = peer.torch.sparse.mm(self.a, self.b)
        super().__init__(peer)

    def multiply(self):
        wanted = self.a, self.b
        return self.peer.torch.autograd.grad(self.product, wanted, self.g, retain_graph=True)

    def result(self):
        of_a, of_b = self.c
        return np.concatenate([x.detach().cpu().numpy().ravel() for x in (of_a.values(), of_b)])


class TorchAttention(TorchProduct):
    """The scores by `sampled_addmm`, a softmax by segments, and a sparse product."""

    def __init__(self, peer, a, operands):
        torch = peer.torch
        self.operands, self.offsets = operands, peer.there(a.offsets.astype(np.int64))
        self.lengths = self.offsets.diff()
        zeros = torch.zeros(len(a.indices), dtype=operands["q"].dtype, device="cuda")
        self.pattern = peer.csr(a, zeros)
        super().__init__(peer)

    def multiply(self):
        torch, (k, q, v) = self.peer.torch, (self.operands[name] for name in "kqv")
        scale = q.shape[1] ** -0.5
        scores = torch.sparse.sampled_addmm(self.pattern, q, k.T, beta=0.0, alpha=scale).values()
        spread = lambda x: torch.repeat_interleave(x, self.lengths, output_size=len(scores))
        of_rows = lambda x, how: torch.segment_reduce(x, how, offsets=self.offsets, initial=0.0)
        # Weights do not depend on what is subtracted: an initial value above every score is as good.
        weights = torch.exp(scores - spread(of_rows(scores, "max")))
        weights = weights / spread(of_rows(weights, "sum"))
        parts = self.pattern.crow_indices(), self.pattern.col_indices(), weights
        return torch.sparse.mm(torch.sparse_csr_tensor(*parts, size=self.pattern.shape), v)


class Pyg(TorchCuda):
    """Networks of PyTorch Geometric's own layers on edge lists, and attention as those layers compose it: rows
    gathered for every edge, a softmax by destinations, messages scattered to them."""

    csr = False

    def __init__(self):
        super().__init__()
        import torch_geometric
        from torch_geometric.utils import scatter, softmax

        self.geometric, self.scatter, self.softmax = torch_geometric, scatter, softmax

    def versions(self):
        return super().versions() | {"torch_geometric": self.geometric.__version__}

    def prepare(self, operation, a, b, pool, columns, order):
        raise NotImplementedError("it is asked for attention and networks")

    def fused(self, operation, a, pool, columns, heads, gradients):
        if operation != "attention" or gradients:
            raise NotImplementedError("it is asked for attention, forward")
        operands = self.operands(a, pool, columns * heads, "kqv")
        return PygAttention(self, a, operands, heads)

    def network(self, message, a, load):
        return Network(self, message, a, load)


class PygAttention(TorchProduct):
    def __init__(self, peer, a, operands, heads):
        torch, self.rows = peer.torch, a.rows
        self.operands = {name: x.view(len(x), heads, -1) for name, x in operands.items()}
        self.source = peer.there(a.indices.astype(np.int64))
        lengths = peer.there(a.offsets.astype(np.int64)).diff()
        self.target = torch.repeat_interleave(torch.arange(a.rows, device="cuda"), lengths)
        super().__init__(peer)

    def multiply(self):
        k, q, v = (self.operands[name] for name in "kqv")
        scores = (q[self.target] * k[self.source]).sum(dim=-1) * q.shape[-1] ** -0.5
        weights = self.peer.softmax(scores, self.target, num_nodes=self.rows)
        messages = v[self.source] * weights.unsqueeze(-1)
        return self.peer.scatter(messages, self.target, dim=0, dim_size=self.rows, reduce="sum")

    def result(self):
        return self.c.reshape(self.rows, -1).cpu().numpy()


class PygCsr(Pyg):
    """The same layers on a CSR tensor of PyTorch, which they multiply as a sparse matrix."""

    csr = True

    def fused(self, operation, a, pool, columns, heads, gradients):
        raise NotImplementedError("it is asked for networks")


class Network:
    """Two layers, as their users write them, trained by Adam from parameters that are given."""

    RATE = 0.01

    def __init__(self, peer, message, a, load):
        torch, self.peer = peer.torch, peer
        there = lambda x: torch.from_numpy(np.ascontiguousarray(x)).to("cuda")
        shaped = lambda p: load(p["values"], np.float32).reshape(p["rows"], p["columns"])
        self.x = there(load(message["features"], np.float32).reshape(a.rows, message["columns"]))
        self.y = there(load(message["labels"], np.int32).astype(np.int64))
        self.first = [there(shaped(p)) for p in message["parameters"]]
        self.epochs = message["epochs"]
        rows = np.repeat(np.arange(a.rows, dtype=np.int64), np.diff(a.offsets))
        columns = a.indices.astype(np.int64)
        hidden = message["parameters"][0]["columns"]
        build = {"gcn-training": self.gcn, "gat-training": self.gat}
        if message["program"] not in build:
            raise NotImplementedError(f"it has no program {message['program']}")
        build[message["program"]](there, rows, columns, a, hidden, message["classes"])
        self.train()

    def gcn(self, there, rows, columns, a, hidden, classes):
        layer = self.peer.geometric.nn.GCNConv
        if self.peer.csr:
            # The weights of edges are given: a layer would fill a tensor of 64-bit indices anew.
            parts = a.offsets.astype(np.int64), columns, a.values
            shape = (a.rows, a.cols)
            self.edges = self.peer.torch.sparse_csr_tensor(*map(there, parts), size=shape)
            options = {"normalize": False}
        else:
            # The layer adds the edges from a vertex to itself, and keeps the weights.
            other = rows != columns
            self.edges = there(np.stack([columns[other], rows[other]]))
            options = {"cached": True}
        self.layers = [
            layer(self.x.shape[1], hidden, **options),
            layer(hidden, classes, **options),
        ]
        self.targets = [p for l in self.layers for p in (l.lin.weight, l.bias)]
        self.values = [w.t() if k % 2 == 0 else w[0] for k, w in enumerate(self.first)]
        self.ready()

    def gat(self, there, rows, columns, a, hidden, classes):
        if self.peer.csr:
            raise NotImplementedError("its attention takes edge lists")
        layer = self.peer.geometric.nn.GATConv
        self.edges = there(np.stack([columns, rows]))
        # The pattern has an edge from every vertex to itself.
        self.layers = [
            layer(self.x.shape[1], hidden, add_self_loops=False),
            layer(hidden, classes, add_self_loops=False),
        ]
        self.targets = [
            p for l in self.layers for p in (l.lin.weight, l.att_dst, l.att_src, l.bias)
        ]
        self.values = []
        for w, scores, bias in (self.first[:3], self.first[3:]):
            shape = (1, 1, w.shape[1])
            own, other = scores[:, 0].reshape(shape), scores[:, 1].reshape(shape)
            self.values += [w.t(), own, other, bias[0]]
        self.ready()

    def ready(self):
        for layer in self.layers:
            layer.to("cuda")
        self.optimizer = None

    def restart(self):
        torch = self.peer.torch
        with torch.no_grad():
            for target, value in zip(self.targets, self.values):
                target.copy_(value)
        self.optimizer = torch.optim.Adam(self.targets, lr=self.RATE, fused=True)

    def wait(self):
        self.peer.torch.cuda.synchronize()

    def train(self):
        """Milliseconds of all epochs, and their losses."""
        functional = self.peer.torch.nn.functional
        self.restart()
        losses = []
        self.wait()
        start = time.perf_counter()
        for _ in range(self.epochs):
            self.optimizer.zero_grad()
            h = functional.relu(self.layers[0](self.x, self.edges))
            loss = functional.cross_entropy(self.layers[1](h, self.edges), self.y)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.detach())
        self.wait()
        return (time.perf_counter() - start) * 1e3, [float(loss) for loss in losses]

    def release(self):
        self.x = self.y = self.edges = self.layers = self.targets = self.values = None
        self.first = self.optimizer = None
        self.peer.torch.cuda.empty_cache()


PEERS = {"cupy": Cupy, "torch-cuda": TorchCuda, "pyg": Pyg, "pyg-csr": PygCsr}
