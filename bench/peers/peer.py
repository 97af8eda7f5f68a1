"""One peer library behind the benchmark's protocol (bench/PROTOCOL.md).

Started as `python peer.py NAME [LIBRARY]`; reads one JSON object per line from standard input and
answers each with one JSON object on one line of standard output. NAME is a key of PEERS at the end,
or of gpu_peers.py, or what a run calls the shared library LIBRARY, which library.py drives.
"""

import ctypes
import glob
import json
import os
import statistics
import sys
import time

import numpy as np

# Idle threads of the OpenMP runtimes spin this long (see bench/METHODOLOGY.md, "Two processes,
# one set of cores"); the answer to `run` waits until they sleep.
SETTLE_S = 0.003
clock = time.perf_counter_ns


def empty(count, dtype):
    """An uninitialised array that starts on a cache line."""
    size = count * np.dtype(dtype).itemsize
    raw = np.empty(size + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype)


def load(path, dtype):
    """A raw little-endian file as an aligned array in this process's own memory."""
    count = os.path.getsize(path) // np.dtype(dtype).itemsize
    array = empty(count, dtype)
    with open(path, "rb") as file:
        file.readinto(memoryview(array).cast("B"))
    return array


def duplicate(array):
    other = empty(len(array), array.dtype)
    other[:] = array
    return other


def timed(call, args):
    start = clock()
    call(*args)
    return (clock() - start) / 1e6


def numpy_type(name):
    types = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
    if name not in types:
        raise RuntimeError(f"values of type {name} are not measured here: {', '.join(types)} are")
    return types[name]


class Csr:
    """A matrix as it came: offsets and indices of 32 bits, values of the case's type."""

    def __init__(self, message):
        self.rows, self.cols = message["rows"], message["cols"]
        self.dtype = numpy_type(message["dtype"])
        self.offsets = load(message["offsets"], np.int32)
        self.indices = load(message["indices"], np.int32)
        self.values = load(message["values"], self.dtype)

    def copy(self):
        """The same in memory of its own."""
        other = Csr.__new__(Csr)
        other.rows, other.cols, other.dtype = self.rows, self.cols, self.dtype
        parts = self.offsets, self.indices, self.values
        other.offsets, other.indices, other.values = map(duplicate, parts)
        return other


class Dense:
    """C = A·B or y = A·x into memory of this process: `call(*args)` is one execution."""

    def __init__(self, a, pool, columns):
        self.b = pool[: a.cols * columns]
        self.c = empty(a.rows * columns, a.dtype)
        self.columns = columns
        self.shape = (a.rows, columns)

    def poison(self):
        self.c.fill(np.nan)

    def take(self, values):
        """Another B in the place of the last."""
        self.b[:] = values

    def before(self):
        """Untimed work before every execution."""

    def execute(self):
        self.before()
        return timed(self.call, self.args)

    def result(self):
        return self.c.reshape(self.shape)

    def drop(self):
        """Frees a C that the library made; C of this class is one block for all executions."""

    def release(self):
        pass


class Sparse:
    """C = A·B with a new sparse C in every execution; the old one is freed outside the timing."""

    def poison(self):
        pass

    def result(self):
        """(offsets, indices, values) of the last C."""
        raise NotImplementedError

    def drop(self):
        """Frees the last C."""
        raise NotImplementedError


# ---------------------------------------------------------------- MKL


class MklDescr(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int)]


class Mkl:
    GENERAL = MklDescr(20, 40, 50)
    NON_TRANSPOSE, ROW_MAJOR, CALLS = 10, 101, 1000

    def __init__(self):
        places = [os.path.join(p, "lib") for p in (sys.prefix, sys.base_prefix)]
        found = [f for p in places for f in sorted(glob.glob(os.path.join(p, "libmkl_rt.so*")))]
        self.lib = ctypes.CDLL((found + ["libmkl_rt.so"])[0])
        self.lib.MKL_Set_Interface_Layer(0)

    def versions(self):
        text = ctypes.create_string_buffer(200)
        self.lib.MKL_Get_Version_String(text, 200)
        return {"mkl": text.value.decode().strip()}

    def threads(self):
        return self.lib.MKL_Get_Max_Threads()

    def call_ms(self):
        return call_overhead(self.lib.MKL_Get_Max_Threads, [ctypes.c_int(0)] * 10)

    def check(self, status, what):
        if status:
            raise RuntimeError(f"{what}: status {status}")

    def handle(self, m):
        handle = ctypes.c_void_p()
        create = getattr(self.lib, f"mkl_sparse_{letter(m)}_create_csr")
        at = lambda array, k=0: ctypes.c_void_p(array.ctypes.data + k * array.itemsize)
        self.check(
            create(
                ctypes.byref(handle), 0, m.rows, m.cols,
                at(m.offsets), at(m.offsets, 1), at(m.indices), at(m.values),
            ),
            "mkl_sparse_create_csr",
        )
        return handle

    def prepare(self, operation, a, b, pool, columns, order):
        if operation == "spgemm":
            return MklSpgemm(self, a, b, order)
        return MklDense(self, operation, a, pool, columns)


class MklDense(Dense):
    def __init__(self, mkl, operation, a, pool, columns):
        super().__init__(a, pool, columns)
        self.mkl, self.keep = mkl, a
        self.handle = mkl.handle(a)
        lib, one, zero = mkl.lib, *(real(a)(v) for v in (1.0, 0.0))
        b, c = (ctypes.c_void_p(x.ctypes.data) for x in (self.b, self.c))
        if operation == "spmv":
            hint = lib.mkl_sparse_set_mv_hint(
                self.handle, mkl.NON_TRANSPOSE, mkl.GENERAL, mkl.CALLS
            )
            self.call = getattr(lib, f"mkl_sparse_{letter(a)}_mv")
            self.args = (mkl.NON_TRANSPOSE, one, self.handle, mkl.GENERAL, b, zero, c)
        else:
            hint = lib.mkl_sparse_set_mm_hint(
                self.handle, mkl.NON_TRANSPOSE, mkl.GENERAL, mkl.ROW_MAJOR, columns, mkl.CALLS
            )
            self.call = getattr(lib, f"mkl_sparse_{letter(a)}_mm")
            self.args = (
                mkl.NON_TRANSPOSE, one, self.handle, mkl.GENERAL, mkl.ROW_MAJOR,
                b, columns, columns, zero, c, columns,
            )
        # Status 6: no hint for this kind; optimisation then goes by the matrix alone.
        if hint not in (0, 6):
            mkl.check(hint, "mkl_sparse_set_hint")
        mkl.check(lib.mkl_sparse_optimize(self.handle), "mkl_sparse_optimize")
        mkl.check(self.call(*self.args), "mkl_sparse product")

    def release(self):
        self.mkl.lib.mkl_sparse_destroy(self.handle)


class MklSpgemm(Sparse):
    def __init__(self, mkl, a, b, order):
        self.mkl, self.a, self.b, self.order = mkl, a, b, order
        self.ha, self.hb = mkl.handle(a), mkl.handle(b)
        self.hc = ctypes.c_void_p()
        self.args = (mkl.NON_TRANSPOSE, self.ha, self.hb, ctypes.byref(self.hc))
        mkl.check(mkl.lib.mkl_sparse_spmm(*self.args), "mkl_sparse_spmm")

    def drop(self):
        self.mkl.lib.mkl_sparse_destroy(self.hc)
        self.hc.value = None
        self.mkl.lib.mkl_free_buffers()

    def execute(self):
        lib = self.mkl.lib
        lib.mkl_sparse_destroy(self.hc)
        multiply, order, hc, args = lib.mkl_sparse_spmm, lib.mkl_sparse_order, self.hc, self.args
        start = clock()
        multiply(*args)
        if self.order:
            order(hc)
        return (clock() - start) / 1e6

    def result(self):
        rows, cols, base = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        pointers = [ctypes.c_void_p() for _ in range(4)]
        export = getattr(self.mkl.lib, f"mkl_sparse_{letter(self.a)}_export_csr")
        refs = [ctypes.byref(x) for x in (base, rows, cols, *pointers)]
        self.mkl.check(export(self.hc, *refs), "mkl_sparse_export_csr")
        m = self.a.rows
        starts, ends = (view(p, m, np.int32) for p in pointers[:2])
        offsets = np.concatenate([starts[:1], ends]) if m else np.zeros(1, np.int32)
        nnz = int(offsets[-1]) - base.value
        indices = view(pointers[2], nnz, np.int32)
        return offsets - base.value, indices - base.value, view(pointers[3], nnz, self.a.dtype)

    def release(self):
        for handle in (self.hc, self.ha, self.hb):
            self.mkl.lib.mkl_sparse_destroy(handle)


def letter(m):
    return "s" if m.dtype == np.float32 else "d"


def real(m):
    return ctypes.c_float if m.dtype == np.float32 else ctypes.c_double


def view(pointer, count, dtype):
    """Memory of the library as an array."""
    if count == 0:
        return np.empty(0, dtype)
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(pointer.value), dtype)


# ---------------------------------------------------------------- SuiteSparse:GraphBLAS


class GraphBlas:
    """The C interface through cffi: a call costs about what one from C does."""

    semirings = ("plus-times", "min-plus")

    def __init__(self):
        import suitesparse_graphblas as package

        package.initialize(memory_manager="c")
        self.lib, self.ffi = package.lib, package.ffi

    def versions(self):
        numbers = ("MAJOR", "MINOR", "SUB")
        parts = (getattr(self.lib, f"GxB_IMPLEMENTATION_{n}") for n in numbers)
        return {"suitesparse_graphblas": ".".join(map(str, parts))}

    def threads(self):
        value = self.ffi.new("int32_t *")
        self.lib.GxB_Global_Option_get_INT32(self.lib.GxB_GLOBAL_NTHREADS, value)
        return value[0]

    def call_ms(self):
        handle = self.ffi.new("GrB_Matrix *")
        self.check(self.lib.GrB_Matrix_new(handle, self.lib.GrB_FP32, 1, 1), "GrB_Matrix_new")
        return call_overhead(self.lib.GrB_Matrix_nrows, (self.ffi.new("GrB_Index *"), handle[0]))

    def check(self, status, what):
        if status != self.lib.GrB_SUCCESS:
            raise RuntimeError(f"{what}: status {status}")

    def named(self, pattern, dtype):
        return getattr(self.lib, pattern.format("FP32" if dtype == np.float32 else "FP64"))

    def csr(self, m):
        """A matrix built from a copy of the arrays, in finished form."""
        ffi, handle = self.ffi, self.ffi.new("GrB_Matrix *")
        offsets, indices = m.offsets.astype(np.uint64), m.indices.astype(np.uint64)
        u64 = lambda x: ffi.cast("GrB_Index *", x.ctypes.data)
        values = ffi.cast("float *" if m.dtype == np.float32 else "double *", m.values.ctypes.data)
        sizes = len(offsets), len(indices), len(m.values)
        status = self.named("GrB_Matrix_import_{}", m.dtype)(
            handle, self.named("GrB_{}", m.dtype), m.rows, m.cols,
            u64(offsets), u64(indices), values, *sizes, self.lib.GrB_CSR_FORMAT,
        )
        self.check(status, "GrB_Matrix_import")
        self.check(self.lib.GrB_Matrix_wait(handle[0], self.lib.GrB_MATERIALIZE), "GrB_wait")
        return handle

    def prepare(self, operation, a, b, pool, columns, order):
        if operation == "spgemm":
            return GraphBlasSpgemm(self, a, b, order)
        return GraphBlasDense(self, operation, a, pool, columns)

    def over_min_plus(self, a, pool, columns):
        return GraphBlasDense(self, "spmm", a, pool, columns, ("MIN", "MIN_PLUS", np.inf))


class GraphBlasDense(Dense):
    """`C += A*B` into a full C: the form in which the library multiplies into dense memory."""

    def __init__(self, grb, operation, a, pool, columns, ring=("PLUS", "PLUS_TIMES", 0)):
        super().__init__(a, pool, columns)
        self.grb, self.dtype, self.vector = grb, a.dtype, operation == "spmv"
        self.a = grb.csr(a)
        self.hb, self.hc = self.full(a.cols, self.b), self.full(a.rows, self.c)
        add, ring, self.zero = ring
        add = grb.named("GrB_" + add + "_{}", a.dtype)
        ring = grb.named("GrB_" + ring + "_SEMIRING_{}", a.dtype)
        null = grb.ffi.NULL
        self.call = grb.lib.GrB_mxv if self.vector else grb.lib.GrB_mxm
        self.args = (self.hc[0], null, add, ring, self.a[0], self.hb[0], null)
        grb.check(self.call(*self.args), "GrB product")

    def full(self, rows, values):
        """A full matrix (row-major) or vector holding `values`."""
        lib, ffi = self.grb.lib, self.grb.ffi
        kind = self.grb.named("GrB_{}", self.dtype)
        if self.vector:
            handle = ffi.new("GrB_Vector *")
            self.grb.check(lib.GrB_Vector_new(handle, kind, rows), "GrB_Vector_new")
        else:
            handle = ffi.new("GrB_Matrix *")
            self.grb.check(lib.GrB_Matrix_new(handle, kind, rows, self.columns), "GrB_Matrix_new")
        # The library takes the block over and frees it, so it comes from the same allocator.
        block = ffi.new("void **", ffi.cast("void *", aligned_block(values.nbytes)))
        ffi.buffer(block[0], values.nbytes)[:] = memoryview(values).cast("B")
        self.pack(handle, block, values.nbytes)
        return handle

    def pack(self, handle, block, size):
        lib, null = self.grb.lib, self.grb.ffi.NULL
        pack = lib.GxB_Vector_pack_Full if self.vector else lib.GxB_Matrix_pack_FullR
        self.grb.check(pack(handle[0], block, size, False, null), "GxB_pack_Full")

    def opened(self, handle, work):
        """`work(array)` over the values of B or C while they are outside the library."""
        lib, ffi = self.grb.lib, self.grb.ffi
        block, size, iso = ffi.new("void **"), ffi.new("GrB_Index *"), ffi.new("bool *")
        unpack = lib.GxB_Vector_unpack_Full if self.vector else lib.GxB_Matrix_unpack_FullR
        self.grb.check(unpack(handle[0], block, size, iso, ffi.NULL), "GxB_unpack_Full")
        count = len(self.b) if handle is self.hb else self.shape[0] * self.shape[1]
        array = np.frombuffer(ffi.buffer(block[0], size[0]), self.dtype, 1 if iso[0] else count)
        out = work(np.broadcast_to(array, count) if iso[0] else array)
        self.pack(handle, block, size[0])
        return out

    def take(self, values):
        def fill(b):
            b[:] = values

        self.opened(self.hb, fill)

    def poison(self):
        # The library adds into C, so C starts from the semiring's zero in place of NaN.
        self.opened(self.hc, lambda c: c.fill(self.zero))

    def result(self):
        return self.opened(self.hc, lambda c: c.copy()).reshape(self.shape)

    def release(self):
        lib = self.grb.lib
        lib.GrB_Matrix_free(self.a)
        for handle in (self.hb, self.hc):
            (lib.GrB_Vector_free if self.vector else lib.GrB_Matrix_free)(handle)


class GraphBlasSpgemm(Sparse):
    """Rows of C stay as the kernel leaves them, or `GrB_wait` sorts them inside the timing."""

    def __init__(self, grb, a, b, order):
        self.grb, self.order, self.dtype, self.shape = grb, order, a.dtype, (a.rows, b.cols)
        self.a = grb.csr(a)
        self.b = self.a if b is a else grb.csr(b)
        self.c = grb.ffi.new("GrB_Matrix *")
        self.ring = grb.named("GrB_PLUS_TIMES_SEMIRING_{}", a.dtype)
        grb.check(self.multiply(), "GrB_mxm")

    def multiply(self):
        lib, null = self.grb.lib, self.grb.ffi.NULL
        lib.GrB_Matrix_new(self.c, self.grb.named("GrB_{}", self.dtype), *self.shape)
        return lib.GrB_mxm(self.c[0], null, null, self.ring, self.a[0], self.b[0], null)

    def drop(self):
        self.grb.lib.GrB_Matrix_free(self.c)

    def execute(self):
        lib, c, null = self.grb.lib, self.c, self.grb.ffi.NULL
        lib.GrB_Matrix_free(c)
        kind = self.grb.named("GrB_{}", self.dtype)
        start = clock()
        lib.GrB_Matrix_new(c, kind, *self.shape)
        lib.GrB_mxm(c[0], null, null, self.ring, self.a[0], self.b[0], null)
        if self.order:
            lib.GrB_Matrix_wait(c[0], lib.GrB_MATERIALIZE)
        return (clock() - start) / 1e6

    def result(self):
        lib, ffi, grb = self.grb.lib, self.grb.ffi, self.grb
        sizes = [ffi.new("GrB_Index *") for _ in range(3)]
        csr = lib.GrB_CSR_FORMAT
        grb.check(lib.GrB_Matrix_exportSize(*sizes, csr, self.c[0]), "GrB_Matrix_exportSize")
        kinds = (np.uint64, np.uint64, self.dtype)
        arrays = [empty(s[0], k) for s, k in zip(sizes, kinds)]
        types = ("GrB_Index *", "GrB_Index *", "float *" if self.dtype == np.float32 else "double *")
        at = [ffi.cast(t, x.ctypes.data) for t, x in zip(types, arrays)]
        export = grb.named("GrB_Matrix_export_{}", self.dtype)
        grb.check(export(*at, *sizes, csr, self.c[0]), "GrB_Matrix_export")
        return arrays

    def release(self):
        for handle in {id(h): h for h in (self.a, self.b, self.c)}.values():
            self.grb.lib.GrB_Matrix_free(handle)


def aligned_block(size):
    libc, block = ctypes.CDLL(None), ctypes.c_void_p()
    if libc.posix_memalign(ctypes.byref(block), 64, ctypes.c_size_t(max(size, 8))):
        raise MemoryError(f"{size} bytes")
    return block.value


# ---------------------------------------------------------------- SciPy and PyTorch


class Scipy:
    def __init__(self):
        import scipy.sparse

        self.sparse, self.version = scipy.sparse, scipy.__version__

    def versions(self):
        return {"scipy": self.version}

    def threads(self):
        return 1

    def call_ms(self):
        return 0.0

    def prepare(self, operation, a, b, pool, columns, order):
        csr = lambda m: self.sparse.csr_matrix((m.values, m.indices, m.offsets), (m.rows, m.cols))
        if operation == "spgemm":
            return ObjectSpgemm(csr(a), csr(b), order)
        return ObjectDense(a, pool, columns, csr(a).__matmul__, lambda x: x)


class Torch:
    def __init__(self):
        import torch

        self.torch = torch
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))

    def versions(self):
        return {"torch": self.torch.__version__}

    def threads(self):
        return self.torch.get_num_threads()

    def call_ms(self):
        return 0.0

    def prepare(self, operation, a, b, pool, columns, order):
        if operation == "spgemm":
            raise NotImplementedError("the order of its rows is not promised")
        return ObjectDense(a, pool, columns, self.csr(a).__matmul__, self.torch.from_numpy)

    def sampled(self, a, pool, columns):
        y, x = np.split(pool[: (a.cols + a.rows) * columns].reshape(-1, columns), [a.cols])
        return TorchSampled(self.torch, a, self.csr(a), *map(self.torch.from_numpy, (x, y)))

    def csr(self, a):
        parts = map(self.torch.from_numpy, (a.offsets, a.indices, a.values))
        return self.torch.sparse_csr_tensor(*parts, size=(a.rows, a.cols))


class ObjectDense(Dense):
    """A product that returns a new dense C every time; the old one is freed outside the timing."""

    def __init__(self, a, pool, columns, multiply, wrap):
        super().__init__(a, pool, columns)
        self.call, self.args = self.keep, (multiply, wrap(self.b.reshape(a.cols, columns)))
        self.execute()

    def keep(self, multiply, b):
        self.c = multiply(b)

    def drop(self):
        self.c = None

    before = poison = release = drop

    def result(self):
        return np.asarray(self.c).reshape(self.shape)


class TorchSampled(Sparse):
    """X·Yᵀ at A's nonzeros, new values every time; the old ones are freed outside the timing."""

    def __init__(self, torch, a, pattern, x, y):
        self.a, self.c = a, None
        self.call = lambda: torch.sparse.sampled_addmm(pattern, x, y.t(), beta=0.0)
        self.execute()

    def execute(self):
        self.c = None
        start = clock()
        self.c = self.call()
        return (clock() - start) / 1e6

    def result(self):
        return self.a.offsets, self.a.indices, self.c.values().numpy()

    def drop(self):
        self.c = None

    def release(self):
        self.drop()


class ObjectSpgemm(Sparse):
    def __init__(self, a, b, order):
        self.a, self.b, self.order, self.c = a, b, order, None
        self.execute()

    def execute(self):
        self.c = None
        start = clock()
        self.c = self.a @ self.b
        if self.order:
            self.c.sort_indices()
        return (clock() - start) / 1e6

    def result(self):
        return self.c.indptr, self.c.indices, self.c.data

    def drop(self):
        self.c = None

    def release(self):
        self.drop()


# ---------------------------------------------------------------- the protocol


def call_overhead(function, args):
    """Median milliseconds of a call that does nothing: what the interpreter adds to a time."""
    for _ in range(200):
        timed(function, args)
    return statistics.median(timed(function, args) for _ in range(2001))


class Session:
    def __init__(self, name, library=None):
        self.name, self.peer = name, peers(name)[name]() if library is None else of_library(library)
        self.matrices, self.pool, self.case, self.other = {}, None, None, None
        self.overhead = self.peer.call_ms()

    def hello(self, _):
        python = {"python": sys.version.split()[0], "numpy": np.__version__}
        return {
            "peer": self.name,
            "versions": self.peer.versions() | python,
            "threads": self.peer.threads(),
            "affinity": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [],
            "call_ms": self.overhead,
            "layouts": getattr(self.peer, "layouts", ("row-major",)),
        }

    def matrix(self, message):
        self.release(message)
        self.matrices[message["name"]] = Csr(message)
        return {}

    def forget(self, message):
        self.release(message)
        self.matrices, self.pool = {}, None
        return {}

    def dense(self, message):
        self.release(message)
        self.pool = None
        self.pool = load(message["values"], numpy_type(message["dtype"]))
        return {}

    def prepare(self, message):
        self.release(message)
        a, b = (self.matrices.get(message.get(k)) for k in ("a", "b"))
        columns, order = message.get("columns", 1), message.get("sorted", False)
        semiring = message.get("semiring", "plus-times")
        if semiring not in getattr(self.peer, "semirings", ("plus-times",)):
            raise NotImplementedError(f"it has no products over {semiring}")

        def ready(a, b, pool):
            if message["operation"] == "sddmm":
                if not hasattr(self.peer, "sampled"):
                    raise NotImplementedError("it has no SDDMM here")
                return self.peer.sampled(a, pool, columns)
            if semiring == "min-plus":
                return self.peer.over_min_plus(a, pool, columns)
            operation, heads = message["operation"], message.get("heads", 1)
            gradients = message.get("gradients", False)
            if operation == "attention" or gradients:
                if not hasattr(self.peer, "fused"):
                    raise NotImplementedError("it has no gradients and no attention here")
                return self.peer.fused(operation, a, pool, columns, heads, gradients)
            layouts = message.get("layouts", "row-major")
            others = {} if layouts == "row-major" else {"layouts": layouts}
            return self.peer.prepare(operation, a, b, pool, columns, order, **others)

        copy = message.get("copy", False)
        if copy:
            # The same on a copy of the operands, to wake threads and code with other memory.
            left = a.copy()
            right = left if b is a else b and b.copy()
            lines = a.cols + a.rows if message["operation"] == "sddmm" else a.cols
            self.other = ready(left, right, duplicate(self.pool[: lines * columns]))
        start = clock()
        self.case = ready(a, b, self.pool)
        prepare_ms = (clock() - start) / 1e6
        return {"prepare_ms": prepare_ms, "copy": copy, "chosen": getattr(self.case, "chosen", None)}

    def run(self, message):
        if message.get("copy", False):
            self.other.execute()
        for _ in range(message.get("wake", 0)):
            self.case.execute()
        times = [self.case.execute() for _ in range(message["repeats"])]
        time.sleep(SETTLE_S)
        return {"ms": [max(t - self.overhead, 1e-6) for t in times]}

    def multiply(self, message):
        """The product with another B, whole: for programs, whose operands change."""
        self.case.take(load(message["b"], self.pool.dtype))
        self.case.poison()
        taken = self.case.execute()
        self.case.result().tofile(message["c"])
        time.sleep(SETTLE_S)
        return {"ms": max(taken - self.overhead, 1e-6)}

    def network(self, message):
        """A network of the peer's own, for programs that train one."""
        self.release(message)
        if not hasattr(self.peer, "network"):
            raise NotImplementedError("it trains no networks")
        self.case = self.peer.network(message, self.matrices[message["a"]], load)
        return {}

    def train(self, _):
        ms, losses = self.case.train()
        return {"ms": ms, "losses": losses}

    def result(self, message):
        """One more execution, from a poisoned C, and its rows in files."""
        self.case.poison()
        self.case.execute()
        out = self.case.result()
        rows = None if message.get("rows") is None else load(message["rows"], np.uint64).astype(np.int64)
        path = lambda name: os.path.join(message["folder"], name)
        if isinstance(out, np.ndarray):
            (out if rows is None else out[rows]).tofile(path("values"))
            return {}
        offsets, indices, values = out
        nnz = int(offsets[-1])
        if rows is not None:
            spans = [np.arange(offsets[r], offsets[r + 1], dtype=np.int64) for r in rows]
            lengths = np.array([len(s) for s in spans], dtype=np.int64)
            pick = np.concatenate(spans) if spans else np.empty(0, np.int64)
            offsets = np.concatenate([[0], np.cumsum(lengths)])
            indices, values = indices[pick], values[pick]
        offsets.astype(np.uint64).tofile(path("offsets"))
        indices.astype(np.uint64).tofile(path("indices"))
        values.tofile(path("values"))
        return {"nnz": nnz}

    def trim(self, _):
        """Frees the last product; unlike freed memory otherwise, its memory goes to the system."""
        if self.case is not None:
            self.case.drop()
        libc = ctypes.CDLL(None)
        if hasattr(libc, "malloc_trim"):
            libc.malloc_trim(ctypes.c_size_t(0))
        return {}

    def release(self, _):
        for case in (self.case, self.other):
            if case is not None:
                case.release()
        self.case = self.other = None
        return {}


PEERS = {"mkl": Mkl, "graphblas": GraphBlas, "scipy": Scipy, "torch": Torch}


def peers(name):
    if name in PEERS:
        return PEERS
    import gpu_peers

    if name not in gpu_peers.PEERS:
        known = ", ".join([*PEERS, *gpu_peers.PEERS])
        raise RuntimeError(f"no peer has that name: {known} are known")
    return gpu_peers.PEERS


def of_library(path):
    import library

    return library.Library(path)


def main():
    # Libraries may print: the protocol gets the real standard output, they get standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(value):
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    try:
        session = Session(*sys.argv[1:])
    except Exception as error:
        answer({"error": f"{type(error).__name__}: {error}", "missing": True})
        return
    answer({"ready": True})
    for line in sys.stdin:
        message = json.loads(line)
        if message["do"] == "quit":
            return
        try:
            answer(getattr(session, message["do"])(message))
        except NotImplementedError as error:
            answer({"error": str(error), "unsupported": True})
        except Exception as error:
            answer({"error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
