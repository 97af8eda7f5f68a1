"""CUDA kernels of a shared library behind the benchmark's protocol (bench/PROTOCOL.md); kernel.h has its functions.

Times are those of events around one call, with cold caches, as in gpu_peers.py.
"""

import contextlib
import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_void_p

import numpy as np

import gpu_peers

OPERATIONS = {"spmm": 0, "spmv": 1, "spgemm": 2, "sddmm": 3}
TYPES = {"float16": 0, "float32": 1, "float64": 2}
# That of kernel.h.
INTERFACE = 2
# Whether B and C are column-major.
LAYOUTS = {"row-major": (False, False), "column-major": (True, True), "row-to-column-major": (False, True)}
UNSUPPORTED = 1


class Matrix(ctypes.Structure):
    _fields_ = [
        *((name, c_int64) for name in ("rows", "cols", "nnz")),
        *((name, c_void_p) for name in ("offsets", "indices", "values")),
        *((name, c_void_p) for name in ("host_offsets", "host_indices", "host_values")),
    ]


class Case(ctypes.Structure):
    _fields_ = [
        ("operation", c_int),
        ("type", c_int),
        ("columns", c_int64),
        ("sorted", c_int32),
        ("a", Matrix),
        ("b", Matrix),
        ("b_column_major", c_int32),
        ("c_column_major", c_int32),
    ]


class Result(ctypes.Structure):
    _fields_ = [("nnz", c_int64), *((name, c_void_p) for name in ("offsets", "indices", "values"))]


class Library:
    """The peer that a file holds."""

    def __init__(self, path):
        import cupy

        self.cupy = cupy
        # Caches are emptied by reading, as beside ours: after a write, kernels would wait for it to be written back.
        self.other = cupy.zeros(gpu_peers.FLUSH_BYTES // 4, dtype=np.float32)
        self.sum = cupy.zeros((), dtype=np.float32)
        self.lib = lib = ctypes.CDLL(path)
        message = POINTER(c_char_p)
        # Earlier headers had neither column-major matrices nor SDDMM.
        self.is_current = hasattr(lib, "gustav_peer_interface") and lib.gustav_peer_interface() >= INTERFACE
        self.layouts = tuple(LAYOUTS) if self.is_current else ("row-major",)
        lib.gustav_peer_version.restype = c_char_p
        lib.gustav_peer_prepare.argtypes = [POINTER(Case), POINTER(c_void_p), message]
        lib.gustav_peer_execute.argtypes = [c_void_p, c_void_p, c_void_p, message]
        lib.gustav_peer_product.argtypes = [c_void_p, POINTER(Result), message]
        for free in (lib.gustav_peer_drop, lib.gustav_peer_release):
            free.argtypes, free.restype = [c_void_p], None

    def versions(self):
        name, _, version = self.lib.gustav_peer_version().decode().partition(" ")
        return {name: version}

    def threads(self):
        return 1

    def call_ms(self):
        return 0.0

    def prepare(self, operation, a, b, pool, columns, order, layouts="row-major"):
        if operation not in OPERATIONS:
            raise NotImplementedError(f"a library has no {operation}")
        if not self.is_current and (operation == "sddmm" or layouts != "row-major"):
            raise NotImplementedError("it was built with an earlier kernel.h, which has row-major products without SDDMM")
        if a.dtype.__name__ not in TYPES:
            raise NotImplementedError(f"a library has no values of type {a.dtype.__name__}")
        with self.faults_are_final():
            if operation == "spgemm":
                return LibrarySparse(self, operation, a, b, 0, order)
            product = LibrarySampled if operation == "sddmm" else LibraryDense
            return product(self, operation, a, pool, columns, *LAYOUTS[layouts])

    def sampled(self, a, pool, columns):
        return self.prepare("sddmm", a, None, pool, columns, False)

    def empty_caches(self):
        self.other.sum(out=self.sum)

    @contextlib.contextmanager
    def faults_are_final(self):
        """Ends the process at an error of the device, which answers nothing more in it; the parent starts another."""
        try:
            yield
        except self.cupy.cuda.runtime.CUDARuntimeError as error:
            raise SystemExit(str(error))

    def call(self, function, *args):
        message = c_char_p()
        status = function(*args, byref(message))
        if status:
            # Raises if the failure was the device's.
            self.cupy.cuda.runtime.deviceSynchronize()
            words = (message.value or b"no words").decode(errors="replace")
            raise (NotImplementedError if status == UNSUPPORTED else RuntimeError)(words)
        return message.value and message.value.decode(errors="replace")


class LibraryProduct:
    state = None

    def __init__(self, peer, operation, a, b, columns, order=False, layouts=(False, False)):
        self.peer, self.held, self.rows, self.dtype = peer, [], a.rows, a.dtype
        left = self.matrix(a)
        right = Matrix() if b is None else left if b is a else self.matrix(b)
        case = Case(OPERATIONS[operation], TYPES[a.dtype.__name__], columns, order, left, right, *layouts)
        state = c_void_p()
        self.chosen = peer.call(peer.lib.gustav_peer_prepare, byref(case), byref(state))
        self.state = state
        try:
            self.execute()
        except Exception:
            self.release()
            raise

    def matrix(self, m):
        parts = m.offsets, m.indices, m.values
        there = [self.peer.cupy.asarray(part) for part in parts]
        self.held += [*parts, *there]
        addresses = [x.data.ptr for x in there] + [x.ctypes.data for x in parts]
        return Matrix(m.rows, m.cols, len(m.indices), *addresses)

    def execute(self):
        cuda, lib = self.peer.cupy.cuda, self.peer.lib
        with self.peer.faults_are_final():
            lib.gustav_peer_drop(self.state)
            start, end = cuda.Event(), cuda.Event()
            self.peer.empty_caches()
            start.record()
            self.peer.call(lib.gustav_peer_execute, self.state, *self.dense)
            end.record()
            end.synchronize()
            return cuda.get_elapsed_time(start, end)

    def drop(self):
        self.peer.lib.gustav_peer_drop(self.state)

    def release(self):
        if self.state is not None:
            self.peer.lib.gustav_peer_release(self.state)
        self.state, self.held, self.dense = None, [], None
        self.peer.cupy.get_default_memory_pool().free_all_blocks()


class LibraryDense(LibraryProduct):
    """C in memory of this process, as for users who multiply again and again."""

    def __init__(self, peer, operation, a, pool, columns, b_column_major, c_column_major):
        b = pool[: a.cols * columns]
        if b_column_major:
            b = np.ascontiguousarray(b.reshape(a.cols, columns).T)
        self.b = peer.cupy.asarray(b)
        self.c_column_major = c_column_major
        shape = (columns, a.rows) if c_column_major else (a.rows, columns)
        self.c = peer.cupy.zeros(shape, dtype=a.dtype)
        self.dense = self.b.data.ptr, self.c.data.ptr
        super().__init__(peer, operation, a, None, columns, layouts=(b_column_major, c_column_major))

    def poison(self):
        self.c.fill(np.nan)

    def result(self):
        with self.peer.faults_are_final():
            c = self.c.get()
        return np.ascontiguousarray(c.T) if self.c_column_major else c


class LibrarySampled(LibraryDense):
    """An SDDMM: Y and X follow one another in the pool, and C is the values at A's pattern."""

    def __init__(self, peer, operation, a, pool, columns, *_):
        self.a = a
        self.b = peer.cupy.asarray(pool[: (a.cols + a.rows) * columns])
        self.c = peer.cupy.zeros(len(a.indices), dtype=a.dtype)
        self.dense = self.b.data.ptr, self.c.data.ptr
        LibraryProduct.__init__(self, peer, operation, a, None, columns)

    def result(self):
        with self.peer.faults_are_final():
            return self.a.offsets, self.a.indices, self.c.get()


class LibrarySparse(LibraryProduct):
    dense = None, None

    poison = LibraryProduct.drop

    def result(self):
        found = Result()
        with self.peer.faults_are_final():
            self.peer.call(self.peer.lib.gustav_peer_product, self.state, byref(found))
            return (
                self.there(found.offsets, self.rows + 1, np.int32),
                self.there(found.indices, found.nnz, np.int32),
                self.there(found.values, found.nnz, self.dtype),
            )

    def there(self, address, count, dtype):
        out = np.empty(count, dtype)
        if count:
            to_host = self.peer.cupy.cuda.runtime.memcpyDeviceToHost
            self.peer.cupy.cuda.runtime.memcpy(out.ctypes.data, address, out.nbytes, to_host)
        return out
