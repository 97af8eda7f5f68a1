"""CuPy and PyTorch on a GPU behind the benchmark's protocol (bench/PROTOCOL.md).

Times are those of events around one call, with cold caches: a buffer larger than any L2 is filled
before each.
"""

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


PEERS = {"cupy": Cupy, "torch-cuda": TorchCuda}
