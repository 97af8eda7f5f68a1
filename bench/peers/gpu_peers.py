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

    def prepare(self, operation, a, b, pool, columns, order):
        if operation == "spgemm":
            raise NotImplementedError("the order of its rows is not promised")
        there = lambda x: self.torch.from_numpy(np.ascontiguousarray(x)).cuda()
        parts = [there(x) for x in (a.offsets, a.indices, a.values)]
        left = self.torch.sparse_csr_tensor(*parts, size=(a.rows, a.cols))
        right = there(pool[: a.cols * columns].reshape(a.cols, columns))
        return TorchDense(self, left, right)


class TorchDense:
    """A product that returns a new C every time."""

    def __init__(self, peer, a, b):
        self.peer, self.a, self.b, self.c = peer, a, b, None
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
        self.c = self.a @ self.b
        end.record()
        end.synchronize()
        return start.elapsed_time(end)

    def result(self):
        return self.c.cpu().numpy()

    def release(self):
        self.a = self.b = self.c = None
        self.peer.torch.cuda.empty_cache()


class Pyg:
    """Networks of PyTorch Geometric's own layers, on edge lists."""

    csr = False

    def __init__(self):
        import torch
        import torch_geometric

        self.torch, self.geometric = torch, torch_geometric
        self.device = "cuda" if torch.cuda.is_available() else "cpu"

    def versions(self):
        torch = self.torch.__version__
        return {"torch_geometric": self.geometric.__version__, "torch": torch, "on": self.device}

    def threads(self):
        return self.torch.get_num_threads()

    def call_ms(self):
        return 0.0

    def prepare(self, operation, a, b, pool, columns, order):
        raise NotImplementedError("it is measured in its own networks")

    def network(self, message, a, load):
        return Network(self, message, a, load)


class PygCsr(Pyg):
    """The same layers on a CSR tensor of PyTorch, which they multiply as a sparse matrix."""

    csr = True


class Network:
    """Two layers, as their users write them, trained by Adam from parameters that are given."""

    RATE = 0.01

    def __init__(self, peer, message, a, load):
        torch, self.peer = peer.torch, peer
        there = lambda x: torch.from_numpy(np.ascontiguousarray(x)).to(peer.device)
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
            layer.to(self.peer.device)
        self.optimizer = None

    def restart(self):
        torch = self.peer.torch
        with torch.no_grad():
            for target, value in zip(self.targets, self.values):
                target.copy_(value)
        self.optimizer = torch.optim.Adam(self.targets, lr=self.RATE, fused=self.peer.device == "cuda")

    def wait(self):
        if self.peer.device == "cuda":
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
        if self.peer.device == "cuda":
            self.peer.torch.cuda.empty_cache()


PEERS = {"cupy": Cupy, "torch-cuda": TorchCuda, "pyg": Pyg, "pyg-csr": PygCsr}
