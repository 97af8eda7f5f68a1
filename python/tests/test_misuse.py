"""What is wrong is an error of Python's that says what, where, and what would work."""

import ctypes

import gustav
import numpy as np
import pytest
import scipy.sparse as sp
from gustav import _gustav

A = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
B = np.ones((3, 2))


def parts(**changed):
    given = dict(
        indptr=np.array([0, 2, 3], np.int32),
        indices=np.array([0, 2, 1], np.int32),
        data=np.array([1.0, 2.0, 3.0]),
        shape=(2, 3),
    )
    given.update(changed)
    return tuple(given.values())


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (dict(indices=np.array([0, -1, 1], np.int32)), "row 0, entry 1: index -1 is negative"),
        (dict(indices=np.array([0, -1, 1], np.int64)), "row 0, entry 1: index -1 is negative"),
        (dict(indices=np.array([0, 7, 1], np.int32)), "row 0, entry 1: index 7 is out of range"),
        (dict(indices=np.array([0, 7, 1], np.uint64)), "row 0, entry 1: index 7 is out of range"),
        (dict(indptr=np.array([0, 4, 3], np.int32)), "row offsets at row 1"),
        (dict(indptr=np.array([0, -2, 3], np.int64)), "row offsets at row 1: -2 is negative"),
        (dict(indptr=np.array([0, 2, 4], np.int32)), "the last offset must equal"),
        (dict(indptr=np.array([0, 3], np.int32)), "row offsets: expected 3 elements, found 2"),
        (dict(data=np.ones(2)), "expected 3 elements, found 2"),
        (dict(shape=(2, -3)), "-3 is negative"),
        (dict(shape=(2, 2**70)), "shape: .* is too large"),
        (dict(indices=np.zeros((3, 1), np.int32)), "indices: expected one dimension, found 2"),
    ],
)
def test_arrays_that_are_no_matrix(changed, text):
    for product in (lambda a: gustav.spmm(a, B), lambda a: gustav.plan_spmm(a, 2).execute(None, B)):
        with pytest.raises(ValueError, match=text.replace("(", r"\(")):
            product(parts(**changed))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: gustav.spmm(A, np.ones((4, 2))), "spmm: expected"),
        (lambda: gustav.spmm(A, np.ones((3, 2, 1))), "one or two dimensions, found 3"),
        (lambda: gustav.spmm(A, B, out=np.ones((3, 2))), "spmm: expected"),
        (lambda: gustav.spmm(A, B, out=np.ones(2)), "out: expected 2 dimensions"),
        (lambda: gustav.spmm(A, B, beta=1.0), "give out"),
        (lambda: gustav.spmm(A, B, semiring="plus"), "min_plus"),
        (lambda: gustav.spmm(A, B, reduce="product"), "sum, mean, max, min are"),
        (lambda: gustav.spmm(A, B, reduce="mean", semiring="min_plus"), "plus_times"),
        (lambda: gustav.spmm(A, B, reduce="max", out=np.ones((2, 2)), beta=1.0), "beta"),
        (lambda: gustav.spmm(A, B, threads=0), "threads: .*at least 1"),
        (lambda: gustav.spmm(A, B, threads=-1), "threads: expected an integer of at least 1 .*found -1"),
        (lambda: gustav.spmv(A, B[:, 0], threads=-1), "threads: expected .*found -1"),
        (lambda: gustav.spgemm(A, A.T, threads=-1), "threads: expected .*found -1"),
        (lambda: gustav.sddmm(A, B[:2], B, threads=-1), "threads: expected .*found -1"),
        (lambda: gustav.plan_spmm(A, -1), "columns: expected .*found -1"),
        (lambda: gustav.plan_spmm(A, 2**65), f"columns: expected .*at most .*found {2**65}"),
        (lambda: gustav.plan_spmm(A, 2, calls=-1), "calls: expected .*found -1"),
        (lambda: gustav.set_num_threads(-1), "count: expected .*found -1"),
        (lambda: gustav.spmm(A, B, alpha=10**400), "alpha: .*does not fit in"),
        (lambda: gustav.spmm(A, B, stream=0), "have none"),
        (lambda: gustav.set_num_threads(0), "at least 1"),
        (lambda: gustav.spgemm(A, A), "spgemm: expected"),
        (lambda: gustav.spgemm(A, A.T, mask=A), "mask of 2 x 2"),
        (lambda: gustav.sddmm(A, B, B), "sddmm: expected"),
        (lambda: gustav.sddmm(A, np.ones((2, 4)), np.ones((3, 4)), beta=1.0), "give values or out"),
        (
            lambda: gustav.sddmm(A, np.ones((2, 4)), np.ones((3, 4)), beta=1.0, values=np.ones(2)),
            "expected 3 elements, found 2",
        ),
        (lambda: gustav.spmm(A.astype(np.int32), np.ones((3, 1), np.int32), alpha=2**40), "alpha: "),
        (lambda: gustav.plan_spmm(A, 2).execute(np.ones(2), B), "expected 3 elements, found 2"),
        (lambda: gustav.plan_spmm(A, 2).execute(np.ones(4), B), "expected 3 elements, found 4"),
        (lambda: gustav.plan_spmm(A.tocoo(), 2).execute(np.ones(4), B), "values: expected 3 elements, found 4"),
        (lambda: gustav.plan_spmm(A, 2).execute(None, B, np.ones((3, 2))), "spmm: expected"),
        (lambda: gustav.plan_spmm(A, 2).execute(None, B, beta=1.0), "give out"),
        (lambda: gustav.plan_spmm(A, 3).execute(None, B), "expected"),
    ],
)
def test_values_that_do_not_fit(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("p", [A, A.tocsc(), A.tocoo()])
@pytest.mark.parametrize("name", ["values", "out"])
@pytest.mark.parametrize(("wrong", "found"), [((2,), "2"), ((4,), "4"), ((3, 1), "3 x 1"), ((3, 3), "3 x 3")])
@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_values_at_nonzeros_of_other_lengths(p, name, wrong, found, beta):
    x, y = np.ones((2, 4)), np.ones((3, 4))
    arrays = {"values": np.ones(3), "out": np.ones(3), name: np.ones(wrong)}
    with pytest.raises(ValueError, match=f"{name}: expected 3 elements, found {found}"):
        gustav.sddmm(p, x, y, beta=beta, **arrays)
    np.testing.assert_array_equal(arrays["out"], 1.0)


def test_arrays_of_jax_are_never_results():
    # Importing JAX starts threads, which tests of forks do not go with.
    class Array(np.ndarray):
        __module__ = "jaxlib._jax"

    x, y = np.ones((2, 4)), np.ones((3, 4))
    for call, shape in (
        (lambda out: gustav.spmm(A, B, out=out), (2, 2)),
        (lambda out: gustav.spmv(A, B[:, 0], out=out), (2,)),
        (lambda out: gustav.plan_spmm(A, 2).execute(None, B, out), (2, 2)),
        (lambda out: gustav.sddmm(A, x, y, out=out), (3,)),
    ):
        out = np.zeros(shape).view(Array)
        with pytest.raises(TypeError, match="out: arrays of JAX cannot be written"):
            call(out)
        assert not out.any()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: gustav.spmm(A.astype(complex), B.astype(complex)), "complex128"),
        (lambda: gustav.spmm(A.astype(np.float32), B.astype(complex)), "complex128"),
        (lambda: gustav.spmm(A.astype(np.int8), B.astype(np.int8)), "int8.* float16, bfloat16"),
        (lambda: gustav.spmm(A.todense(), B), "csr, csc and coo"),
        (lambda: gustav.spmm(A.tobsr(), B), "tocsr"),
        (lambda: gustav.spmm(A, B.tolist()), "numpy.asarray"),
        (lambda: gustav.spmm(A, np.ma.masked_equal(B, 1.0)), "filled"),
        (lambda: gustav.spmm(parts(data=np.ma.masked_equal(np.ones(3), 1.0)), B), "data: .*filled"),
        (lambda: gustav.spmm(A, B, out=np.ma.zeros((2, 2))), "out: .*filled"),
        (lambda: gustav.plan_spmm(A, 2).execute(np.ma.ones(3), B), "values: .*filled"),
        (lambda: gustav.plan_spmm(A, 2).execute(None, np.ma.ones((3, 2))), "b: .*filled"),
        (lambda: gustav.plan_spmm(A, 2).execute(None, B, np.ma.zeros((2, 2))), "out: .*filled"),
        (lambda: gustav.sddmm(A, B[:2], B, beta=1.0, values=np.ma.ones(3)), "values: .*filled"),
        (lambda: gustav.sddmm(A, B[:2], B, out=np.ma.ones(3)), "out: .*filled"),
        (lambda: gustav.sddmm(A, np.ma.ones((2, 2)), B), "x: .*filled"),
        (lambda: gustav.sddmm(A.tocoo(), B[:2], B, out=np.ones(3, np.float32)), "float32"),
        (lambda: gustav.spmm(A, object()), "object"),
        (lambda: gustav.spmm(A, B.astype(">f8")), "byte order"),
        (lambda: gustav.spmm(parts(indptr=np.array([0.0, 2.0, 3.0])), B), "float64.*int32, int64"),
        (lambda: gustav.spmm(A, B, alpha="2"), "alpha: expected a real number, found 2 of type str"),
        (lambda: gustav.spmm(A, B, alpha=1j), "alpha: expected a real number, .*complex"),
        (lambda: gustav.spmm(A, B, alpha=np.complex128(1)), "alpha: expected a real number, .*complex128"),
        (
            lambda: gustav.spmm(A.astype(np.int64), B.astype(np.int64), alpha=0.5),
            "alpha: expected an integer, as the values are, found 0.5 of type float",
        ),
        (
            lambda: gustav.sddmm(A, B[:2].astype(np.int64), B.astype(np.int64), alpha="2"),
            "alpha: expected an integer, .*found 2 of type str",
        ),
        (lambda: gustav.spmm(A, B, threads=1.5), "threads: expected an integer, found 1.5 of type float"),
        (lambda: gustav.plan_spmm(A, 2.0), "columns: expected an integer, found 2.0 of type float"),
        (lambda: gustav.set_num_threads("2"), "count: expected an integer, found 2 of type str"),
        (lambda: gustav.spmm(parts(shape=(2.5, 3)), B), r"shape: expected two integers, .*found \(2.5, 3\)"),
        (lambda: gustav.spmm(parts(shape=(2, 3, 4)), B), "shape: expected two integers"),
        (lambda: gustav.spmm(parts(shape=None), B), "shape: expected two integers"),
        (lambda: gustav.spmm(parts(data=None), B), "a: the data of the tuple are None"),
        (lambda: gustav.plan_spmm(A, 2, dtype=np.int8), "values of type int8 are not taken"),
        (lambda: gustav.spmm(A, B, out=np.ones((2, 2), np.float32)), "float32"),
        (lambda: gustav.plan_spmm(A, 2).execute(np.ones(3, np.float32), B), "float32"),
        (lambda: gustav.plan_spmm(A, 2, dtype=complex), "complex128"),
        (lambda: gustav.spmm((1, 2, 3), B), "tuple of 3"),
    ],
)
def test_types_that_are_not_taken(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_what_is_not_implemented_names_what_works(tmp_path):
    with pytest.raises(NotImplementedError, match="nearest that works"):
        gustav.write(tmp_path / "a.smtx", A)


def test_an_operand_on_a_gpu_beside_those_of_the_host_is_refused_by_its_place():
    class OnDevice:
        dtype, shape = B.dtype, B.shape

        def __dlpack_device__(self):
            return (2, 1)

        def __dlpack__(self, **options):
            raise AssertionError("the memory of a device was asked for")

    for call in (
        lambda: gustav.spmm(A, OnDevice()),
        lambda: gustav.spmm(A, B, out=OnDevice()),
        lambda: gustav.sddmm(A, OnDevice(), B),
        lambda: gustav.plan_spmm(A, 2).execute(None, B, OnDevice()),
    ):
        with pytest.raises(ValueError, match=r"(cuda:1.*host memory|host memory.*cuda:1)"):
            call()
    with pytest.raises(ValueError, match="stream: operands in host memory have none"):
        gustav.spmm(A, B, stream=0)


def test_results_that_cannot_be_written():
    frozen = np.ones((2, 2))
    frozen.flags.writeable = False
    for out in (frozen, np.ones((2, 4))[:, ::2], np.broadcast_to(np.ones(2), (2, 2)), np.ones((2, 2))[::-1]):
        with pytest.raises(ValueError, match="out cannot be written"):
            gustav.spmm(A, B, out=out)


def test_results_that_overlap_an_operand():
    square = sp.csr_array(np.eye(3))
    memory = np.zeros((3, 8))
    for out, b in [
        (memory[:, :2], memory[:, :2]),
        (memory[:, :3], memory[:, 1:4]),
        (memory[:, :2].T[:, :3].T, memory[:, 1:3]),
    ]:
        with pytest.raises(ValueError, match="overlaps b"):
            gustav.spmm(square, b, out=out)
    with pytest.raises(ValueError, match="overlaps values"):
        gustav.spmm(square, np.ones(3), out=square.data)
    # Neighbouring blocks of one array do not overlap.
    memory[:, 4:6] = 7.0
    gustav.spmm(square, memory[:, 4:6], out=memory[:, 0:2])
    assert (memory[:, 0:2] == 7.0).all() and (memory[:, 2:4] == 0.0).all()


def test_an_unaligned_operand_is_copied_and_an_unaligned_result_refused():
    memory = np.zeros(6 * 8 + 1, np.uint8)[1:].view(np.float64).reshape(3, 2)
    memory[:] = B
    np.testing.assert_array_equal(gustav.spmm(A, memory), A @ B)
    with pytest.raises(ValueError, match="not aligned"):
        gustav.spmm(A, B, out=memory[:2])


def test_arrays_that_describe_what_they_do_not_have():
    class Lies:
        dtype, shape = np.dtype(np.float64), (3, 2)

        def __init__(self, **changed):
            self.__array_interface__ = {**B.__array_interface__, **changed}

    for changed in (
        {"shape": (3, -2)},
        {"strides": (8,)},
        {"data": (0, False)},
        {"strides": (2**62, 8)},
        {"strides": (-(2**62), 8)},
        {"data": (2**64 - 16, False)},
        {"data": (16, False), "strides": (-16, 8)},
        {"shape": (2**32, 2**32)},
    ):
        with pytest.raises(ValueError, match="b: "):
            gustav.spmm(A, Lies(**changed))
    with pytest.raises(TypeError):
        gustav.spmm(A, Lies(typestr="<c16"))


def test_files(tmp_path):
    for name in ("a.mtx", "a.mtx.gz", "a.npz"):
        gustav.write(tmp_path / name, A.tocsc())
        back = gustav.read(tmp_path / name)
        assert isinstance(back, gustav.csr_array) and (back != A).nnz == 0
    assert gustav.read(tmp_path / "a.mtx", dtype=np.float32).dtype == np.float32
    with pytest.raises(FileNotFoundError, match=r"b\.mtx"):
        gustav.read(tmp_path / "b.mtx")
    with pytest.raises(ValueError, match="name"):
        gustav.write(tmp_path / "a.unknown", A)
    (tmp_path / "c.mtx").write_text("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 x 1\n")
    with pytest.raises(ValueError, match="line 3, column 3"):
        gustav.read(tmp_path / "c.mtx")


def test_results_over_the_indices_of_a_borrowed_pattern_are_refused():
    indptr, indices = np.array([0, 2, 3], np.int64), np.array([0, 1, 1], np.int64)
    pattern = _gustav.Pattern(indptr, indices, (2, 2), copy=False)
    before = indices.copy()
    x = np.ones((2, 1))
    sddmm = _gustav.SddmmPlan(pattern, 1, "float64", 1)
    with pytest.raises(ValueError, match="indices of the pattern"):
        sddmm.execute_into(x, x, indices.view(np.float64), None, None)
    softmax = _gustav.SoftmaxPlan(pattern, 1, "float64")
    with pytest.raises(ValueError, match="indptr of the pattern"):
        softmax.execute_into(np.ones(3), indptr.view(np.float64))
    spmm = _gustav.SpmmPlan(pattern, 1, "float64", 1, False, "plus_times", False)
    with pytest.raises(ValueError, match="indices of the pattern"):
        spmm.execute_into(np.ones(3), x, indices[:2].view(np.float64).reshape(2, 1), None, None)
    assert (indices == before).all()


def test_a_capsule_gives_its_tensor_once():
    torch = pytest.importorskip("torch")
    indptr, indices = torch.tensor([0, 1, 2]), torch.tensor([1, 0])
    capsules = [torch.utils.dlpack.to_dlpack(t) for t in (indptr, indices)]
    pattern = _gustav.Pattern(*capsules, (2, 2), copy=False)
    with pytest.raises(ValueError, match="taken from it before"):
        _gustav.Pattern(*capsules, (2, 2))
    with pytest.raises(RuntimeError):
        torch.from_dlpack(capsules[1])
    # The tensors' memory lives with the pattern.
    del indptr, indices, capsules
    assert np.asarray(pattern.indices).tolist() == [1, 0]


def test_more_memory_than_there_is():
    # The result would take 2 TB, the operands nothing.
    none = sp.csr_array((1, 0))
    with pytest.raises(MemoryError):
        gustav.spmm(none, np.ones((0, 2**38)))


def test_objects_that_say_they_are_arrays():
    class Feigned:
        shape, ndim, dtype = (3, 2), 2, np.dtype("float64")

        @property
        def __class__(self):
            return np.ndarray

    assert isinstance(Feigned(), np.ndarray)
    with pytest.raises(TypeError, match="Feigned is not taken"):
        gustav.plan_spmm(A, 2).execute(None, Feigned(), np.zeros((2, 2)))


TABLES = []


def table(major, name=b"dlpack_exchange_api"):
    """A capsule with DLPack's table of functions in this version, of which none are there."""
    TABLES.append((ctypes.c_uint64 * 7)(major))
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return new(ctypes.addressof(TABLES[-1]), name, None)


@pytest.mark.parametrize(
    "found",
    [None, 7, table(2), table(1), table(1, b"another")],
    ids=["none", "number", "version", "no functions", "name"],
)
def test_tables_of_functions_that_are_not_known_are_not_used(found):
    class Exported:
        __dlpack_c_exchange_api__ = found
        shape, dtype = (3, 2), np.dtype("float64")

        def __dlpack__(self, **options):
            return np.ones((3, 2)).__dlpack__(**options)

        def __dlpack_device__(self):
            return (1, 0)

    out = np.zeros((2, 2))
    matrix = sp.csr_array(np.ones((2, 3)))
    gustav.plan_spmm(matrix, 2).execute(None, Exported(), out)
    np.testing.assert_equal(out, 3.0)
