"""Products on a GPU: of PyTorch's and CuPy's arrays, in the order of their streams; and what is said without one."""

import copy
import ctypes
import gc
import io
import os
import pathlib
import pickle
import subprocess
import sys
import threading
import weakref

import gustav
import numpy as np
import pytest
import torch
from gustav import _device, _families, _gustav, _memory, _nvrtc
from tensors import captured
from torch.autograd import gradcheck, gradgradcheck
from torch.library import opcheck

import gustav.torch as gt
from gustav.torch import pyg

try:
    import cupy
    import cupyx.scipy.sparse as cupy_sparse

    cupy.cuda.runtime.getDeviceCount()
except Exception:  # Without a driver CuPy's errors are of several kinds.
    cupy = None

HAS_GPU = torch.cuda.is_available()
needs_gpu = pytest.mark.skipif(not HAS_GPU, reason="there is no CUDA device that PyTorch works on")
needs_cupy = pytest.mark.skipif(cupy is None or not HAS_GPU, reason="there is no CuPy with a CUDA device")
needs_no_gpu = pytest.mark.skipif(HAS_GPU, reason="there is a CUDA device")
F64 = torch.float64
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.float16: 2e-3, torch.bfloat16: 2e-2}
DEVICE = "cuda" if HAS_GPU else "cpu"


def full(rows=40, columns=30, dtype=F64, device=DEVICE, density=0.2):
    """A matrix with small integers, of which sums are exact in every type."""
    generator = torch.Generator().manual_seed(rows + columns)
    values = torch.randint(-4, 5, (rows, columns), generator=generator)
    values *= torch.rand(rows, columns, generator=generator) < density
    return values.to(device, dtype)


def dense(*shape, dtype=F64, device=DEVICE):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randint(-4, 5, shape, generator=generator).to(device, dtype)


def arrays(a):
    t = a.to_sparse_csr()
    return t.crow_indices(), t.col_indices(), t.values(), tuple(a.shape)


def same(found, expected):
    torch.testing.assert_close(found.to(F64), expected.to(F64), rtol=0, atol=0)


# Without a GPU.


class Described:
    """What says that it is on a GPU, and is not asked for more."""

    dtype, shape = np.dtype(np.float64), (3, 2)

    def __init__(self, device=(2, 0)):
        self.device = device

    def __dlpack_device__(self):
        return self.device

    def __len__(self):
        return self.shape[0]

    def __dlpack__(self, **options):
        raise AssertionError("the memory of a device was asked for")


def test_operands_of_two_devices_are_named():
    places = [("x", Described((2, 0))), ("y", Described((2, 3)))]
    with pytest.raises(ValueError, match="y is in the memory of cuda:3, and x in the memory of cuda:0"):
        _device.place_of(None, *places)
    with pytest.raises(ValueError, match="host memory"):
        _device.place_of(None, places[0], ("y", np.ones(3)))
    assert _device.number(Described((13, 1))) == 1 and _device.number(Described((1, 0))) is None


def test_streams_are_taken_by_their_handles_and_protocols():
    class Protocol:
        def __cuda_stream__(self):
            return (0, 77)

    class OfCupy:
        ptr = 78

    for stream, handle in [(0, 0), (5, 5), (Protocol(), 77), (OfCupy(), 78)]:
        assert _device.handle_of(stream) == handle
        assert _device.place_of(stream, ("b", Described())) == (0, handle, stream)
    with pytest.raises(TypeError, match="__cuda_stream__"):
        _device.handle_of("0")
    with pytest.raises(ValueError, match="stream: operands in host memory have none"):
        _device.place_of(3, ("b", np.ones(2)))


@needs_no_gpu
def test_without_a_gpu_the_error_says_what_is_missing():
    indptr, indices = np.array([0, 1]), np.array([0])
    with pytest.raises(RuntimeError, match="cuda:0.*driver"):
        _gustav.Pattern(indptr, indices, (1, 1), True, (0, 0, None))
    devices = gustav.devices()
    assert devices[0].name == "cpu" and not devices[1].available and devices[1].description
    assert gustav.Device(*devices[1]).name.startswith("cuda")
    with pytest.raises(RuntimeError, match="cuda:0.*driver"):
        _families.empty(Described(), (2, 2))


def made_package(root, *parts):
    folder = root.joinpath(*parts)
    folder.mkdir(parents=True)
    (folder / "libnvrtc.so.12").write_text("")
    return str(folder)


def test_nvrtc_is_found_in_wheels_and_beside_pytorch(tmp_path, monkeypatch):
    new = made_package(tmp_path, "nvidia", "cu13", "lib")
    old = made_package(tmp_path, "nvidia", "cuda_nvrtc", "lib")
    beside = made_package(tmp_path, "torch", "lib")
    (tmp_path / "torch" / "__init__.py").write_text("raise AssertionError('PyTorch was imported')")
    # In a process of its own, which has imported neither.
    code = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(pathlib.Path(gustav.__file__).parents[1])!r}]\n"
        "import importlib.util, pathlib\n"
        f"spec = importlib.util.spec_from_file_location('nvrtc', {_nvrtc.__file__!r})\n"
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)\n"
        "print(*module.folders(), sep='\\n'); assert 'torch' not in sys.modules"
    )
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "PYTHONPATH")}
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout.split("\n")
    assert {new, old, beside} <= set(found)
    assert found.index(new) < found.index(old) < found.index(beside)


def test_a_missing_package_is_no_error(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(_nvrtc, "_places", lambda package: [])
    assert all(isinstance(folder, str) for folder in _nvrtc.folders())


def test_patterns_of_two_devices_are_refused():
    pattern = gt.Pattern(torch.tensor([0, 1]), torch.tensor([0]), (1, 1))
    with pytest.raises(NotImplementedError, match="x: tensors on meta are not taken; .*the CPU or on cuda"):
        gt.spmm(pattern, None, torch.ones(1, 1, device="meta"))
    elsewhere = gt.Pattern(torch.tensor([0, 1]), torch.tensor([0]), (1, 1))
    elsewhere.device = torch.device("cuda", 0)
    with pytest.raises(ValueError, match=r"x is on cpu and the pattern on cuda:0; P.to\('cpu'\)"):
        gt.spmm(elsewhere, None, torch.ones(1, 1))
    with pytest.raises(ValueError, match="crow is on meta and col on cpu"):
        gt.Pattern(torch.zeros(2, dtype=torch.int64, device="meta"), torch.tensor([0]), (1, 1))
    with pytest.raises(NotImplementedError, match="meta.*nearest that works"):
        gt.Pattern(*(torch.zeros(2, dtype=torch.int64, device="meta") for _ in range(2)), (1, 1))
    assert pattern.to("cpu") is pattern and pattern.cpu() is pattern


# One call.


@needs_gpu
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "tuple"])
def test_products_of_tensors(dtype, layout):
    a = full(dtype=dtype)
    sparse = {
        "csr": lambda: a.to_sparse_csr(),
        "csc": lambda: a.to_sparse_csc(),
        "coo": lambda: a.to_sparse_coo(),
        "tuple": lambda: arrays(a),
    }[layout]()
    exact = a.to(F64)
    for b in (dense(30, 5), dense(5, 30).T, dense(30, 9)[:, 2:7], dense(30)):
        b = b.to(dtype)
        for _ in range(3):
            # What is learnt from call to call changes nothing.
            found = gustav.spmm(sparse, b)
            assert found.is_cuda and found.dtype == dtype
            same(found, exact @ b.to(F64))
    c = gustav.spmm(sparse, dense(40, 3).to(dtype), transpose=True, alpha=2.0)
    same(c, 2 * exact.T @ dense(40, 3))
    out = dense(40, 3).to(dtype)
    assert gustav.spmm(sparse, dense(30, 3).to(dtype), out=out, beta=-1.0) is out
    same(out, exact @ dense(30, 3) - dense(40, 3))
    same(gustav.spmv(sparse, dense(30).to(dtype)), exact @ dense(30))


@needs_gpu
@pytest.mark.parametrize("offset, index", [("int32", "int32"), ("int64", "int32"), ("int64", "int64"), ("int32", "int64")])
def test_indices_of_every_width(offset, index):
    a = full()
    indptr, indices, values, shape = arrays(a)
    triple = (indptr.to(getattr(torch, offset)), indices.to(getattr(torch, index)), values, shape)
    same(gustav.spmm(triple, dense(30, 4)), a @ dense(30, 4))
    same(gustav.plan_spmm(triple, 4).execute(None, dense(30, 4)), a @ dense(30, 4))
    pattern = gt.Pattern(*triple[:2], shape)
    same(gt.spmm(pattern, values, dense(30, 4)), a @ dense(30, 4))
    assert pattern.col.tolist() == indices.tolist() and pattern.crow.tolist() == indptr.tolist()


class Foreign:
    """An array of a library that makes none for others."""

    def __init__(self, tensor):
        self.tensor, self.shape = tensor, tuple(tensor.shape)
        self.dtype = str(tensor.dtype).removeprefix("torch.")

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __len__(self):
        return self.shape[0]

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)


@needs_gpu
@pytest.mark.parametrize("dtype", [*TYPES, torch.int32, torch.int64])
def test_results_for_other_libraries(dtype):
    a, b = full(dtype=dtype), dense(30, 4, dtype=dtype)
    indptr, indices, values, shape = arrays(a)
    operand = (Foreign(indptr), Foreign(indices), Foreign(values), shape)
    for found in (
        gustav.spmm(operand, Foreign(b)),
        gustav.plan_spmm(operand, 4, dtype=operand[2].dtype).execute(None, Foreign(b)),
    ):
        assert isinstance(found, _gustav.DeviceArray) and found.shape == (40, 4)
        same(torch.from_dlpack(found), a.to(F64) @ b.to(F64))
        if dtype != torch.bfloat16:
            # By __cuda_array_interface__.
            same(torch.as_tensor(found, device="cuda"), a.to(F64) @ b.to(F64))
    x, y = dense(40, 3, dtype=dtype), dense(30, 3, dtype=dtype)
    row = torch.arange(40, device="cuda").repeat_interleave(indptr.diff())
    expected = (x.to(F64)[row] * y.to(F64)[indices]).sum(1)
    same(torch.from_dlpack(gustav.sddmm(operand, Foreign(x), Foreign(y))), expected)
    found = gustav.sddmm(operand, Foreign(x), Foreign(y), beta=2, values=Foreign(values))
    same(torch.from_dlpack(found), expected + 2 * values.to(F64))
    of_transpose = arrays(a.T.contiguous())
    c = gustav.spgemm(operand, (*map(Foreign, of_transpose[:3]), of_transpose[3]))
    assert all(isinstance(part, _gustav.DeviceArray) for part in c[:3])
    product = torch.sparse_csr_tensor(*map(torch.from_dlpack, c[:3]), size=c[3])
    same(product.to_dense(), a.to(F64) @ a.to(F64).T)


@needs_cupy
def test_entries_in_any_order_beside_other_libraries_are_refused():
    from cupyx.scipy import sparse

    row, column = cupy.array([1, 0]), cupy.array([0, 1])
    p = sparse.coo_matrix((cupy.ones(2), (row, column)), shape=(2, 2))
    x = Foreign(dense(2, 3))
    with pytest.raises(NotImplementedError, match="nearest that works: p in CSR"):
        gustav.sddmm(p, x, x)


@needs_gpu
def test_arrays_that_other_libraries_take():
    made = _gustav.DeviceArray((2, 3), "float32", 0)
    assert made.dtype == "float32" and made.__dlpack_device__() == (2, 0)
    taken = torch.from_dlpack(made)
    taken += 1
    # One that nobody takes, and one that outlives the array.
    made.__dlpack__(stream=1, max_version=(1, 1))
    del made
    assert taken.tolist() == [[1.0] * 3] * 2
    for shape in [(0, 4), (4, 0), ()]:
        assert tuple(torch.from_dlpack(_gustav.DeviceArray(shape, "bfloat16", 0)).shape) == shape
    for options in ({"copy": True}, {"dl_device": (1, 0)}):
        with pytest.raises(BufferError, match="without a copy"):
            _gustav.DeviceArray((2,), "int64", 0).__dlpack__(**options)
    with pytest.raises(MemoryError):
        _gustav.DeviceArray((2**62, 2**62), "float32", 0)
    with pytest.raises(ValueError, match="negative"):
        _gustav.DeviceArray((-1, 2), "float32", 0)
    with pytest.raises(TypeError, match="complex64"):
        _gustav.DeviceArray((2,), "complex64", 0)
    before = torch.cuda.mem_get_info()[0]
    for _ in range(50):
        torch.from_dlpack(_gustav.DeviceArray((2**22,), "float64", 0))
    assert torch.cuda.mem_get_info()[0] > before - 2**27


@needs_gpu
@pytest.mark.parametrize("reduce", ["mean", "max", "min"])
def test_reductions(reduce):
    a, b = full(), dense(30, 4)
    expected = gustav.spmm(a.cpu().to_sparse_csr(), b.cpu(), reduce=reduce)
    torch.testing.assert_close(gustav.spmm(a.to_sparse_csr(), b, reduce=reduce).cpu(), expected)


@needs_gpu
def test_semirings_of_integers():
    a, b = full(dtype=torch.int64).to_sparse_csr(), dense(30, 4, dtype=torch.int64)
    for semiring in ("plus_times", "min_plus", "max_times"):
        on_cpu = gustav.spmm(a.cpu(), b.cpu(), semiring=semiring)
        assert torch.equal(gustav.spmm(a, b, semiring=semiring).cpu(), on_cpu)


@needs_gpu
@pytest.mark.parametrize("dtype", TYPES)
def test_dense_products_at_nonzeros(dtype):
    p, x, y = full(), dense(40, 7).to(dtype), dense(30, 7).to(dtype)
    expected = (dense(40, 7) @ dense(30, 7).T)[p != 0]
    for operand in (p.to_sparse_csr(), arrays(p)):
        same(gustav.sddmm(operand, x, y), expected)
    out = torch.ones(len(expected), device="cuda", dtype=dtype)
    gustav.sddmm(p.to_sparse_csr(), x, y, out=out, alpha=2.0, beta=3.0)
    same(out, 2 * expected + 3)


@needs_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sparse_products(dtype):
    a, b = full(40, 30, dtype), full(30, 50, dtype)
    expected = a.to(F64) @ b.to(F64)
    for first, second in [
        (a.to_sparse_csr(), b.to_sparse_csr()),
        (a.to_sparse_csc(), b.to_sparse_csr()),
        (a.to_sparse_csr(), b.to_sparse_csc()),
        (a.to_sparse_csc(), b.to_sparse_csc()),
    ]:
        c = gustav.spgemm(first, second)
        assert c.is_cuda and c.layout == (torch.sparse_csc if first.layout == second.layout == torch.sparse_csc else torch.sparse_csr)
        same(c.to_dense(), expected)
    mask = full(40, 50, dtype, density=0.5)
    c = gustav.spgemm(a.to_sparse_csr(), b.to_sparse_csr(), mask=mask.to_sparse_csr(), alpha=2.0)
    same(c.to_dense(), 2 * expected * (mask != 0))
    triple = gustav.spgemm(arrays(a), arrays(b))
    assert isinstance(triple, gustav.Csr)
    same(torch.sparse_csr_tensor(*triple[:3], size=triple.shape).to_dense(), expected)


@needs_gpu
def test_what_does_not_fit_is_refused():
    a, b = full().to_sparse_csr(), dense(30, 4)
    indptr, indices, values, shape = arrays(full())
    wrong_index, negative = indices.clone(), indices.clone()
    wrong_index[3], negative[2] = 30, -1
    wrong_offset = indptr.clone()
    wrong_offset[2] = 1000
    for arguments, words in [
        ((a, dense(29, 4)), "30"),
        (((indptr, wrong_index, values, shape), b), "index 30 is out of range"),
        (((indptr, negative, values, shape), b), "index -1 is negative"),
        (((wrong_offset, indices, values, shape), b), "offsets"),
        (((indptr[:-1], indices, values, shape), b), "row offsets"),
        (((indptr, indices, values[1:], shape), b), str(len(values))),
        ((a, b.cpu()), "host memory"),
        ((a.cpu(), b), "host memory"),
    ]:
        with pytest.raises(ValueError, match=words):
            gustav.spmm(*arguments)
    with pytest.raises(ValueError, match="overlaps"):
        memory = torch.zeros(40, 8, device="cuda", dtype=F64)
        gustav.spmm(full(40, 40).to_sparse_csr(), memory[:, :4], out=memory[:, 2:6])
    with pytest.raises(ValueError, match="overlap"):
        gustav.spmm((indptr, indices, values, shape), b, out=values[: 40 * 4].reshape(40, 4))
    with pytest.raises(ValueError, match="out cannot be written"):
        gustav.spmm(a, b, out=torch.zeros(40, 8, device="cuda", dtype=F64)[:, ::2])
    with pytest.raises(ValueError, match="threads"):
        gustav.spmm(a, b, threads=1)
    with pytest.raises(TypeError, match="requires gradients"):
        gustav.spmm(a, b.clone().requires_grad_())
    with pytest.raises(ValueError, match="host memory"):
        gustav.plan_spmm(a, 4).execute(None, b.cpu())
    # The device goes on working.
    same(gustav.spmm(a, b), full() @ b)


@needs_gpu
def test_empty_operands():
    none = torch.zeros(3, 4, device="cuda", dtype=F64)
    same(gustav.spmm(none.to_sparse_csr(), dense(4, 2)), none @ dense(4, 2))
    assert gustav.spmm(full().to_sparse_csr(), dense(30, 0)).shape == (40, 0)
    assert gustav.spgemm(none.to_sparse_csr(), full(4, 5).to_sparse_csr()).values().numel() == 0


@needs_gpu
def test_what_was_learnt_of_a_tensor_that_is_written_to():
    a, b = full().to_sparse_csr(), dense(30, 4)
    for _ in range(10):
        gustav.spmm(a, b)
    a.col_indices()[:] = a.col_indices().flip(0) * 0 + 7
    expected = torch.zeros(40, 30, device="cuda", dtype=F64)
    rows = torch.arange(40, device="cuda").repeat_interleave(a.crow_indices().diff())
    expected[:, 7] = torch.zeros(40, device="cuda", dtype=F64).index_add(0, rows, a.values())
    same(gustav.spmm(a, b), expected @ b)
    owner = weakref.ref(a)
    del a
    gc.collect()
    assert owner() is None
    assert all(learnt.refers() is not None for learnt in _memory._learnt.values())


@needs_gpu
def test_devices_lists_the_gpu():
    named = {device.name: device for device in gustav.devices()}
    assert named["cuda:0"].available, named
    assert torch.cuda.get_device_name(0) in named["cuda:0"].description


# CuPy.


@needs_cupy
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_products_of_cupy(dtype, layout):
    a = full().cpu().numpy().astype(dtype)
    made = getattr(cupy_sparse, f"{layout}_matrix")(cupy_sparse.csr_matrix(cupy.asarray(a)))
    b = cupy.asarray(dense(30, 6, device="cpu").numpy().astype(dtype))
    for operand in (b, cupy.asfortranarray(b), cupy.repeat(b, 2, axis=1)[:, ::2]):
        for _ in range(3):
            c = gustav.spmm(made, operand)
            assert isinstance(c, cupy.ndarray) and c.dtype == dtype
            np.testing.assert_array_equal(c.get(), a @ b.get())
    np.testing.assert_array_equal(gustav.spmv(made, b[:, 0].copy()).get(), a @ b.get()[:, 0])
    plan = gustav.plan_spmm(made, 6)
    np.testing.assert_array_equal(plan.execute(None, b).get(), a @ b.get())
    values = gustav.sddmm(made, cupy.ones((40, 2), dtype), cupy.ones((30, 2), dtype))
    np.testing.assert_array_equal(values.get(), np.full(made.nnz, 2.0))
    product = gustav.spgemm(made, made.T.tocsr())
    assert isinstance(product, cupy_sparse.csr_matrix)
    np.testing.assert_array_equal(product.toarray().get(), a @ a.T)


@needs_cupy
def test_indices_of_cupy_that_are_written_to_are_noticed():
    a = cupy_sparse.csr_matrix(cupy.asarray(full().cpu().numpy()))
    b = cupy.asarray(dense(30, 4, device="cpu").numpy())
    for _ in range(10):
        gustav.spmm(a, b)
    a.indices[:] = 0
    np.testing.assert_array_equal(gustav.spmm(a, b).get(), a.toarray().get() @ b.get())


@needs_cupy
def test_the_current_stream_of_cupy():
    a = cupy_sparse.csr_matrix(cupy.asarray(full().cpu().numpy()))
    b = cupy.asarray(dense(30, 4, device="cpu").numpy())
    expected = full().cpu().numpy() @ b.get()
    plan = gustav.plan_spmm(a, 4)
    for _ in range(3):
        # Its plan outlives the stream.
        with cupy.cuda.Stream(non_blocking=True) as stream:
            c = plan.execute(None, b)
        stream.synchronize()
        np.testing.assert_array_equal(c.get(), expected)
        del stream
        gc.collect()
    other = cupy.cuda.Stream(non_blocking=True)
    for _ in range(20):
        # Memory that the pool gives out again is not what the other stream still uses.
        c = plan.execute(None, b + 0.0, stream=other)
        cupy.full((30, 4), 1e9)
        cupy.full((40, 4), 1e9)
        np.testing.assert_array_equal(c.get(), expected)


@needs_gpu
def test_storages_that_were_shrunk_on_other_streams():
    a, other = full().to_sparse_csr(), torch.cuda.Stream()
    plan = gustav.plan_spmm(a, 4)

    def shrunk(rows):
        made = dense(rows, 4)
        made.untyped_storage().resize_(2 * made.element_size())
        return made

    values, b = a.values(), dense(30, 4)
    for call in (
        lambda: plan.execute(values, shrunk(30), stream=other),
        lambda: plan.execute(values, b, shrunk(40), stream=other),
        lambda: gustav.spmm(a, shrunk(30), stream=other),
        lambda: plan.execute(values, shrunk(30)),
    ):
        with pytest.raises(ValueError, match="storage of .* bytes, which does not hold it"):
            call()


@needs_cupy
def test_libraries_meet():
    a = full()
    made = cupy_sparse.csr_matrix(cupy.asarray(a.cpu().numpy()))
    found = gustav.spmm(made, dense(30, 4))
    assert isinstance(found, torch.Tensor)
    same(found, a @ dense(30, 4))

    class Interface:
        """What describes its memory by the older protocol."""

        def __init__(self, array):
            self.array, self.shape, self.dtype = array, array.shape, array.dtype
            self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "stream": 1}

    out = cupy.empty((40, 4))
    b = cupy.asarray(dense(30, 4, device="cpu").numpy())
    indptr, indices, values = (Interface(x) for x in (made.indptr, made.indices, made.data))
    gustav.spmm((indptr, indices, values, made.shape), Interface(b), out=out)
    np.testing.assert_array_equal(out.get(), a.cpu().numpy() @ b.get())


# Plans and streams.


@needs_gpu
def test_plans():
    a, b = full(), dense(30, 5)
    plan = gustav.plan_spmm(a.to_sparse_csr(), 5)
    plan.prepare()
    same(plan.execute(None, b), a @ b)
    same(plan.execute(2 * a.to_sparse_csr().values(), b), 2 * a @ b)
    same(plan.execute(None, dense(5, 30).T), a @ dense(5, 30).T)
    out = torch.ones(5, 40, device="cuda", dtype=F64).T
    plan.execute(None, b, out, alpha=3.0, beta=1.0)
    same(out, 3 * a @ b + 1)
    assert "cuda:0" in plan.explain() and plan.algorithm in plan.explain() and plan.workspace_bytes >= 0
    of_coo = gustav.plan_spmm(a.T.to_sparse_coo().coalesce(), 5, transpose=True)
    same(of_coo.execute(None, b), a @ b)


def slow(x):
    """Work that keeps the current stream busy for milliseconds, and leaves x as it is."""
    torch.cuda._sleep(20_000_000)
    return x + 0


@needs_gpu
@pytest.mark.parametrize("which", ["side", "default", "handle", "legacy", "legacy beside another"])
def test_work_is_in_the_order_of_the_stream(which):
    a, b = full().to_sparse_csr(), dense(30, 5)
    plan = gustav.plan_spmm(a, 5)
    pattern = gt.Pattern.from_sparse(a)
    expected = full() @ b
    plan.execute(None, b)
    gt.spmm(pattern, a.values(), b)
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    current = torch.cuda.default_stream() if which in ("default", "legacy") else side
    with torch.cuda.stream(current):
        late = slow(b)
        if which == "handle":
            # The caller's own stream: it waits for the current one, and the current one for it.
            other = torch.cuda.Stream()
            found = plan.execute(None, late, stream=other.cuda_stream)
            current.wait_stream(other)
        elif which.startswith("legacy"):
            found = plan.execute(None, late, stream=0)
            current.wait_stream(torch.cuda.default_stream())
        else:
            found = plan.execute(None, late)
        again = gt.spmm(pattern, a.values(), late)
        # Nobody has waited for the device.
        assert not current.query()
        del late
        torch.full((30, 5), 1e9, device="cuda", dtype=F64)
    current.synchronize()
    torch.cuda.synchronize()
    same(found, expected)
    same(again, expected)


@needs_gpu
def test_memory_of_operands_is_not_reused_while_another_stream_reads_it():
    a = full().to_sparse_csr()
    plan = gustav.plan_spmm(a, 64)
    expected = full() @ dense(30, 64)
    plan.execute(None, dense(30, 64))
    other = torch.cuda.Stream()
    for _ in range(10):
        b = dense(30, 64)
        with torch.cuda.stream(other):
            torch.cuda._sleep(5_000_000)
        c = plan.execute(None, b, stream=other)
        del b
        # The allocator would give out the same block.
        torch.full((30, 64), 1e9, device="cuda", dtype=F64)
        torch.cuda.current_stream().wait_stream(other)
        same(c, expected)


@needs_gpu
def test_an_event_of_an_operand_that_is_freed_at_once():
    p = full()
    for _ in range(10):
        indptr, indices, values, shape = arrays(p)
        plan = gustav.plan_spmm((indptr, indices, values, shape), 3)
        pattern = gt.Pattern(indptr, indices, shape, copy=False)
        indptr = indices = None
        torch.full((4000,), 3, device="cuda")
        found, again = plan.execute(values, dense(30, 3)), gt.spmm(pattern, values, dense(30, 3))
        del plan, pattern
        torch.full((4000,), 3, device="cuda")
        same(found, p @ dense(30, 3))
        same(again, p @ dense(30, 3))


@needs_gpu
@pytest.mark.parametrize("way", ["plan", "operator"])
def test_capture_in_a_graph(way):
    a = full().to_sparse_csr()
    b, values = dense(30, 5), a.values().clone()
    plan, pattern = gustav.plan_spmm(a, 5), gt.Pattern.from_sparse(a)

    def product():
        if way == "plan":
            return plan.execute(values, b)
        return gt.spmm(pattern, values, b) + gt.spmm(pattern, None, b, reduce="mean")

    graph, c = captured(product)
    # The graph keeps what it uses.
    gone = weakref.ref(pattern)
    del plan, pattern, product
    gc.collect()
    torch.full((100_000,), 1, device="cuda")
    for k in (1.0, 2.0, 3.0):
        values.copy_(k * a.values())
        b.copy_(dense(30, 5) * k)
        graph.replay()
        torch.cuda.synchronize()
        exact = full() * k
        expected = exact @ (dense(30, 5) * k)
        if way == "operator":
            ones = (full() != 0).to(F64)
            expected = expected + ones @ b / ones.sum(1, keepdim=True).clamp(min=1)
        torch.testing.assert_close(c, expected)
    del graph, c
    gc.collect()
    # What it kept goes with it, at the next call.
    gustav.plan_spmm(a, 3).execute(None, dense(30, 3))
    gc.collect()
    assert gone() is None


@needs_gpu
def test_what_cannot_be_captured_is_refused():
    a, b = full().to_sparse_csr(), dense(30, 5)
    plan = gustav.plan_spmm(a, 5)
    dense_on_gpu = dense(40, 2), dense(30, 2)
    columns, triple, square = dense(5, 30).T, arrays(full()), arrays(full(40, 40))
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        c = torch.ones(3, device="cuda") + 1
        for call in (
            lambda: gustav.spmm(triple, b),
            lambda: gustav.spmv(triple, b[:, 0].contiguous()),
            lambda: gustav.sddmm(triple, dense_on_gpu[0], dense_on_gpu[1]),
            lambda: gustav.spgemm(square, triple),
            lambda: gustav.plan_spmm(triple, 5),
            lambda: gt.Pattern(*triple[:2], (40, 30)),
            lambda: plan.execute(None, columns),
        ):
            with pytest.raises(NotImplementedError, match="captur"):
                call()
    graph.replay()
    torch.cuda.synchronize()
    assert c.tolist() == [2.0] * 3
    same(plan.execute(None, columns), full() @ columns)


FORKED = """
import os, sys, torch
import gustav
a = torch.eye(3, device="cuda").to_sparse_csr()
plan = gustav.plan_spmm(a, 1)
child = os.fork()
if child == 0:
    try:
        plan.execute(a.values(), torch.ones(3, 1))
    except (RuntimeError, ValueError) as e:
        first = str(e)
    try:
        gustav._gustav.synchronize((0, 0, None))
    except RuntimeError as e:
        os._exit(0 if "forked" in str(e) and "spawn" in str(e) else 3)
    os._exit(4)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@needs_gpu
def test_a_forked_child_is_told():
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


WITHOUT_PATH = """
import sys, ctypes
import cupy
a = cupy.ones(3)
import gustav
assert 'torch' not in sys.modules
import cupyx.scipy.sparse as sp
m = sp.csr_matrix(cupy.eye(3))
print(gustav.spmm(m, cupy.ones((3, 2))).sum())
"""


@needs_gpu
def test_a_missing_compiler_is_named_with_the_remedy(tmp_path):
    code = (
        "import torch, gustav\n"
        "try: gustav.spmm(torch.eye(3, device='cuda').to_sparse_csr(), torch.ones(3, 1, device='cuda'))\n"
        "except RuntimeError as e: print(e)"
    )
    environment = {**os.environ, "GUSTAV_NVRTC": str(tmp_path), "GUSTAV_CACHE_BYTES": "0"}
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, env=environment
    )
    assert "NVRTC" in ended.stdout and "nvidia-cuda-nvrtc" in ended.stdout, ended


@needs_cupy
def test_nvrtc_needs_no_path_and_no_pytorch():
    environment = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "GUSTAV_NVRTC")}
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT_PATH], capture_output=True, text=True, env=environment
    )
    assert ended.stdout.strip() == "6.0", ended.stderr


@needs_gpu
def test_the_current_device_of_a_thread_stays():
    driver = ctypes.CDLL("libcuda.so.1")
    pattern = _gustav.Pattern(*arrays(full())[:2], (40, 30), True, (0, 0, None))
    found = []

    def current():
        context = ctypes.c_void_p()
        assert driver.cuCtxGetCurrent(ctypes.byref(context)) == 0
        return context.value

    def work(held):
        # A new thread has none, and gustav gives it none.
        found.append(current())
        _gustav.synchronize((0, 0, None))
        held.clear()
        found.append(current())

    thread = threading.Thread(target=work, args=([pattern],))
    del pattern
    thread.start()
    thread.join()
    assert found == [None, None]
    a = full().to_sparse_csr()
    before = current()
    gustav.spmm(a, dense(30, 2))
    assert current() == before


# PyTorch.


def made(rows=7, columns=5, dtype=F64, density=0.4):
    generator = torch.Generator().manual_seed(rows * 100 + columns)
    matrix = torch.randn(rows, columns, generator=generator, dtype=F64)
    matrix *= torch.rand(rows, columns, generator=generator) < density
    matrix = matrix.to("cuda", dtype)
    t = matrix.to_sparse_csr()
    return gt.Pattern.from_sparse(t), t.values().clone().requires_grad_(), matrix


def random(*shape, dtype=F64):
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator, dtype=F64).to("cuda", dtype).requires_grad_()


def checked(f, *inputs):
    return gradcheck(f, inputs) and gradgradcheck(f, inputs)


@needs_gpu
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("transpose", [False, True])
def test_spmm_and_its_gradients(reduce, transpose):
    pattern, v, _ = made()
    on_cpu = pattern.cpu()
    assert (str(pattern.device), str(on_cpu.device)) == ("cuda:0", "cpu")
    x = random(7 if transpose else 5, 3)

    def product(v, x):
        return gt.spmm(pattern, v, x, reduce=reduce, transpose=transpose)

    if reduce in ("sum", "mean") or not transpose:
        expected = gt.spmm(on_cpu, v.cpu(), x.cpu(), reduce=reduce, transpose=transpose)
        torch.testing.assert_close(product(v, x).cpu(), expected)
        assert checked(product, v, x)
        assert checked(lambda x: product(None, x), x)
    batch = random(2, *x.shape)
    torch.testing.assert_close(product(v, batch)[1], product(v, batch[1]))


@needs_gpu
def test_the_other_operators_and_their_gradients():
    pattern, v, _ = made()
    q, k = random(7, 4), random(5, 4)
    torch.testing.assert_close(gt.sddmm(pattern, q, k).cpu(), gt.sddmm(pattern.cpu(), q.cpu(), k.cpu()))
    assert checked(lambda q, k: gt.sddmm(pattern, q, k), q, k)
    for s in (random(pattern.nnz), random(3, pattern.nnz)):
        torch.testing.assert_close(gt.softmax(pattern, s).cpu(), gt.softmax(pattern.cpu(), s.cpu()))
        assert checked(lambda s: gt.softmax(pattern, s), s)
    q, k, w = random(7, 2, 4), random(5, 2, 4), random(5, 2, 3)
    bias = random(pattern.nnz, 2)
    expected = gt.attention(pattern.cpu(), q.cpu(), k.cpu(), w.cpu(), bias=bias.cpu())
    torch.testing.assert_close(gt.attention(pattern, q, k, w, bias=bias).cpu(), expected)
    assert gradcheck(lambda *t: gt.attention(pattern, *t[:3], bias=t[3]), (q, k, w, bias))


@needs_gpu
def test_sparse_products_and_their_gradients():
    (pa, va, a), (pb, vb, b) = made(6, 5), made(5, 8)
    pc, vc = gt.spgemm(pa, va, pb, vb)
    assert pc.device == pa.device and gt.spgemm(pa, va, pb, vb)[0] is pc
    c = torch.sparse_csr_tensor(pc.crow, pc.col, vc.detach(), size=pc.shape).to_dense()
    torch.testing.assert_close(c, a @ b)
    assert checked(lambda va, vb: gt.spgemm(pa, va, pb, vb)[1], va, vb)
    with pytest.raises(ValueError, match="cpu"):
        gt.spgemm(pa, va, pb.cpu(), vb)


@needs_gpu
def test_patterns_of_a_gpu():
    pattern, v, matrix = made(9, 6)
    for moved in (pattern.cpu().cuda(), pattern.to(0), pickle.loads(pickle.dumps(pattern)), pattern.cpu().to("cuda:0")):
        assert moved.device == pattern.device and moved.shape == pattern.shape
        same(gt.spmm(moved, v.detach(), torch.eye(6, device="cuda", dtype=F64)), matrix)
    assert copy.deepcopy(pattern) is pattern and "cuda:0" in repr(pattern)
    stored = io.BytesIO()
    torch.save({"pattern": pattern}, stored)
    stored.seek(0)
    assert torch.load(stored, weights_only=False)["pattern"].col.tolist() == pattern.col.tolist()
    of_csc = gt.Pattern.from_sparse(matrix.to_sparse_csc())
    values = matrix.to_sparse_csc().values()[of_csc.permutation]
    same(gt.spmm(of_csc, values, torch.eye(6, device="cuda", dtype=F64)), matrix)
    transposed, order = pattern.transposed()
    same(gt.spmm(transposed, v.detach()[order], torch.eye(9, device="cuda", dtype=F64)), matrix.T)
    assert pattern.is_unique()
    twice = gt.Pattern(torch.tensor([0, 2], device="cuda"), torch.tensor([1, 1], device="cuda"), (1, 2))
    assert not twice.is_unique()
    with pytest.raises(ValueError, match="x is on cpu and the pattern on cuda:0"):
        gt.spmm(pattern, None, torch.ones(6, 2))
    with pytest.raises(ValueError, match="out of range"):
        gt.Pattern(torch.tensor([0, 1], device="cuda"), torch.tensor([5], device="cuda"), (1, 2))


@needs_gpu
def test_opcheck():
    pattern, v, _ = made()
    x, nnz = random(5, 3), pattern.nnz
    ops, handle = torch.ops.gustav, pattern._handle
    tests = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
    for operator, arguments in [
        (ops.spmm, (handle, 7, v, x, False)),
        (ops.spmm, (handle, 5, None, random(7, 3), True)),
        (ops.sddmm, (handle, nnz, random(7, 3), x)),
        (ops.spmm_extremum, (handle, 7, nnz, v, x, False, "max")),
        (ops.softmax, (handle, v)),
        (ops.softmax_gradient, (handle, v, random(nnz))),
        (ops.inner_indices, (handle, nnz, x, False)),
        (ops.inverse_lengths, (handle, 7, x, False)),
    ]:
        opcheck(operator.default, arguments, test_utils=tests)


@needs_gpu
def test_compiled_functions():
    pattern, v, _ = made(9, 9)
    w = random(4, 4)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def layer(pattern, v, x, w):
        return torch.relu(gt.spmm(pattern, v, x @ w)) + gt.spmm(pattern, None, x, reduce="mean")

    def eager(x):
        return torch.relu(gt.spmm(pattern, v, x @ w)) + gt.spmm(pattern, None, x, reduce="mean")

    x = random(9, 4)
    for taken in (x, random(9, 4)):
        torch.testing.assert_close(layer(pattern, v, taken, w), eager(taken))
    found = torch.autograd.grad(layer(pattern, v, x, w).sum(), (v, x, w))
    expected = torch.autograd.grad(eager(x).sum(), (v, x, w))
    torch.testing.assert_close(found, expected)


@needs_gpu
def test_autocast():
    pattern, v, _ = made(dtype=torch.float32)
    x = random(5, 3, dtype=torch.float32)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        y = gt.spmm(pattern, v, x)
        s = gt.softmax(pattern, gt.sddmm(pattern, random(7, 3, dtype=torch.float32), x))
    assert y.dtype == s.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), gt.spmm(pattern, v, x), rtol=3e-2, atol=3e-2)
    y.float().sum().backward()
    assert v.grad.dtype == torch.float32


@needs_gpu
def test_edge_indices():
    generator = torch.Generator().manual_seed(0)
    edge_index = torch.randint(0, 20, (2, 100), generator=generator)
    weight, x = torch.rand(100, generator=generator), torch.rand(20, 4, generator=generator)
    on_gpu = edge_index.cuda()
    for reduce in ("sum", "mean", "max", "min"):
        expected = pyg.spmm(edge_index, x, reduce, edge_weight=weight)
        found = pyg.spmm(on_gpu, x.cuda(), reduce, edge_weight=weight.cuda())
        torch.testing.assert_close(found.cpu(), expected)
    sparse = torch.sparse_coo_tensor(edge_index, weight, (20, 20)).cuda()
    torch.testing.assert_close(pyg.spmm(sparse, x.cuda()).cpu(), pyg.spmm(sparse.cpu(), x))
