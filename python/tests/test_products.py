"""Products against SciPy, in double precision and with integers, which are exact."""

import gustav
import numpy as np
import pytest
import scipy.sparse as sp
from gustav import _operands
from hypothesis import given
from hypothesis import strategies as st
from strategies import dense, sparse

SIZES = st.integers(0, 12)
COLUMNS = st.integers(0, 9)
DTYPES = st.sampled_from([np.float64, np.int64, np.int32])


def exact(a):
    """A dense copy that adds entries of one position up."""
    result = np.zeros(a.shape, a.dtype)
    coo = a.tocoo()
    np.add.at(result, (coo.row, coo.col), coo.data)
    return result


def same(found, expected):
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@given(st.data())
def test_spmm(data):
    dtype = data.draw(DTYPES)
    a = data.draw(sparse(dtype=dtype))
    transpose = data.draw(st.booleans())
    op = exact(a).T if transpose else exact(a)
    b = data.draw(dense(op.shape[1], data.draw(COLUMNS), dtype))
    found = gustav.spmm(a, b, transpose=transpose, threads=data.draw(st.sampled_from([None, 1, 2])))
    assert type(found) is np.ndarray and found.dtype == dtype
    same(found, op @ b)


@given(st.data())
def test_spmm_scaled_into_an_array(data):
    a = data.draw(sparse())
    b = data.draw(dense(a.shape[1], data.draw(COLUMNS)))
    shape = (a.shape[0], b.shape[1])
    big = np.full((shape[0] + 1, shape[1] + 2), 3.0, order=data.draw(st.sampled_from("CF")))
    out = big[1:, 1 : shape[1] + 1]
    returned = gustav.spmm(a, b, out=out, alpha=2.0, beta=-0.5)
    assert returned is out
    same(out, 2.0 * exact(a) @ b - 1.5)
    border = big.copy()
    border[1:, 1 : shape[1] + 1] = 3.0
    assert (border == 3.0).all()


@given(st.data())
def test_spmv(data):
    dtype = data.draw(DTYPES)
    a = data.draw(sparse(dtype=dtype))
    transpose = data.draw(st.booleans())
    op = exact(a).T if transpose else exact(a)
    x = data.draw(dense(op.shape[1], 3, dtype))[:, data.draw(st.integers(0, 2))]
    same(gustav.spmv(a, x, transpose=transpose), op @ x)
    same(gustav.spmm(a, x, transpose=transpose), op @ x)
    out = np.ones(2 * op.shape[0], dtype)[::2]
    gustav.spmv(a, x, transpose=transpose, out=out, alpha=2, beta=3)
    same(out, 2 * (op @ x) + 3)


@given(st.data())
def test_spgemm(data):
    dtype = data.draw(DTYPES)
    a = data.draw(sparse(dtype=dtype))
    b = data.draw(sparse(rows=a.shape[1], dtype=dtype))
    c = gustav.spgemm(a, b, alpha=2, sorted=data.draw(st.booleans()))
    csc = a.format == "csc" and b.format == "csc"
    assert c.format == ("csc" if csc else "csr") and c.dtype == dtype
    assert isinstance(c, sp.sparray) == isinstance(a, sp.sparray)
    same(c.toarray(), 2 * exact(a) @ exact(b))


@given(st.data())
def test_spgemm_under_a_mask(data):
    a = data.draw(sparse())
    b = data.draw(sparse(rows=a.shape[1]))
    mask = data.draw(sparse(a.shape[0], b.shape[1], unique=True))
    c = gustav.spgemm(a, b, mask=mask)
    inside = np.zeros(mask.shape, bool)
    inside[mask.tocoo().coords] = True
    same(c.toarray(), exact(a) @ exact(b) * inside)


@given(st.data())
def test_sddmm(data):
    p = data.draw(sparse())
    depth = data.draw(COLUMNS)
    x, y = data.draw(dense(p.shape[0], depth)), data.draw(dense(p.shape[1], depth))
    coo = p.tocoo()
    order = (coo.row, coo.col)
    if p.format == "csc":
        order = (p.indices, np.repeat(np.arange(p.shape[1]), np.diff(p.indptr)))
    expected = np.einsum("nd,nd->n", x[order[0]], y[order[1]])
    same(gustav.sddmm(p, x, y), expected)
    values = np.arange(float(p.nnz))
    same(gustav.sddmm(p, x, y, alpha=3.0, beta=2.0, values=values), 3 * expected + 2 * values)
    out = np.arange(float(p.nnz))
    assert gustav.sddmm(p, x, y, beta=1.0, out=out) is out
    same(out, expected + values)


def test_operands_without_elements_overlap_nothing():
    memory = np.arange(10.0)
    inside = memory[1:].reshape(9, 1)[:, :0]
    assert not gustav.sddmm(sp.eye_array(9, format="csr"), inside, inside, out=memory[:9]).any()
    without_nonzeros = (np.zeros(4, np.int64), memory[1:1].view(np.int64), memory[1:1], (3, 2))
    assert not gustav.spmm(without_nonzeros, np.ones((2, 3)), out=memory[:9].reshape(3, 3)).any()


@pytest.mark.parametrize("reduce", ["mean", "max", "min"])
@given(data=st.data())
def test_reductions(reduce, data):
    a = data.draw(sparse())
    transpose = data.draw(st.booleans())
    coo = a.tocoo()
    rows, columns = (coo.col, coo.row) if transpose else (coo.row, coo.col)
    shape = a.shape[::-1] if transpose else a.shape
    b = data.draw(dense(shape[1], 3))
    expected = np.zeros((shape[0], 3))
    take = {"mean": np.mean, "max": np.max, "min": np.min}[reduce]
    for row in set(rows.tolist()):
        of_row = rows == row
        expected[row] = take(coo.data[of_row, None] * b[columns[of_row]], axis=0)
    for _ in range(2):
        same(gustav.spmm(a, b, reduce=reduce, transpose=transpose), expected)
        same(gustav.spmm(a, b[:, 0], reduce=reduce, transpose=transpose), expected[:, 0])


@given(st.data())
def test_plan(data):
    a = data.draw(sparse())
    transpose = data.draw(st.booleans())
    op = exact(a).T if transpose else exact(a)
    n = data.draw(st.integers(0, 5))
    plan = gustav.plan_spmm(a, n, transpose=transpose, copy=data.draw(st.booleans()))
    assert plan.shape == (op.shape[0], n)
    for factor in (1.0, -2.0):
        b = data.draw(dense(op.shape[1], n))
        same(plan.execute(factor * a.data, b), factor * op @ b)
    same(plan.execute(None, b), op @ b)
    out = np.ones((n, op.shape[0])).T
    same(plan.execute(None, b, out, alpha=2.0, beta=5.0), 2 * op @ b + 5)


@pytest.mark.parametrize("semiring", ["min_plus", "max_times", "or_and", "plus_first", "plus_second"])
@given(data=st.data())
def test_semirings(semiring, data):
    a = data.draw(sparse(dtype=np.int64))
    b = data.draw(dense(a.shape[1], 3, np.int64))
    ends = np.iinfo(np.int64)
    add, mul, zero = {
        "min_plus": (min, lambda x, y: x + y, ends.max),
        "max_times": (max, lambda x, y: x * y, ends.min),
        "or_and": (lambda x, y: int(x or y), lambda x, y: int(bool(x and y)), 0),
        "plus_first": (lambda x, y: x + y, lambda x, y: x, 0),
        "plus_second": (lambda x, y: x + y, lambda x, y: y, 0),
    }[semiring]
    expected = np.full((a.shape[0], 3), zero)
    coo = a.tocoo()
    for i, j, value in zip(coo.row, coo.col, coo.data, strict=True):
        for k in range(3):
            expected[i, k] = add(int(expected[i, k]), mul(int(value), int(b[j, k])))
    np.testing.assert_array_equal(gustav.spmm(a, b, semiring=semiring), expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_narrow_types_sum_in_single_precision(dtype):
    if dtype == "bfloat16":
        import ml_dtypes

        dtype = ml_dtypes.bfloat16
    rng = np.random.default_rng(0)
    a = sp.random_array((50, 40), density=0.2, format="csr", rng=rng, dtype=np.float32)
    values, b = a.data.astype(dtype), rng.standard_normal((40, 5)).astype(dtype)
    found = gustav.spmm((a.indptr, a.indices, values, a.shape), b)
    assert found.dtype == np.dtype(dtype)
    rounded = sp.csr_array((values.astype(np.float64), a.indices, a.indptr), shape=a.shape)
    expected = rounded @ b.astype(np.float64)
    bound = np.abs(expected).max() * float(np.asarray(found.dtype.type(2) ** -7, np.float64))
    np.testing.assert_allclose(found.astype(np.float64), expected, atol=bound, rtol=0)
    c = gustav.spgemm((a.indptr, a.indices, values, a.shape), _transposed(a, values))
    assert isinstance(c, gustav.Csr) and c.data.dtype == np.dtype(dtype)


def _transposed(a, values):
    t = sp.csr_array((np.arange(a.nnz), a.indices, a.indptr), shape=a.shape).T.tocsr()
    return (t.indptr, t.indices, values[t.data], t.shape)


def test_types_are_promoted_as_numpy_does():
    a = sp.csr_array(np.eye(3, dtype=np.int8))
    assert gustav.spmm(a, np.ones((3, 1), np.float32)).dtype == np.float32
    assert gustav.spmm(a.astype(bool), np.ones((3, 1))).dtype == np.float64
    assert gustav.spmm(a.astype(np.int64), np.ones(3, np.float32)).dtype == np.float64


def test_widths_of_indices_mix():
    a = sp.random_array((20, 20), density=0.2, format="csr", rng=1)
    for offsets in (np.int32, np.int64, np.uint32, np.uint64):
        for indices in (np.int32, np.int64, np.uint32, np.uint64):
            parts = (a.indptr.astype(offsets), a.indices.astype(indices), a.data, a.shape)
            same(gustav.spmm(parts, np.ones((20, 2))), a @ np.ones((20, 2)))
            c = gustav.spgemm(parts, a)
            same(sp.csr_array((c.data, c.indices, c.indptr), shape=c.shape).toarray(), (a @ a).toarray())


def test_other_libraries_by_dlpack_and_array_interface():
    class Exports:
        """Has DLPack alone."""

        def __init__(self, array):
            self.array, self.dtype, self.shape = array, array.dtype, array.shape

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    class Describes:
        """Has `__array_interface__` alone."""

        def __init__(self, array):
            self.array, self.dtype, self.shape = array, array.dtype, array.shape

        @property
        def __array_interface__(self):
            return self.array.__array_interface__

    a = sp.random_array((6, 5), density=0.5, format="csr", rng=0)
    for order in "CF":
        b = np.asarray(np.random.default_rng(0).standard_normal((5, 3)), order=order)
        for kind in (Exports, Describes):
            same(gustav.spmm(a, kind(b)), a @ b)


@pytest.mark.parametrize("exports", [True, False])
def test_results_are_of_the_library_of_the_dense_operand(exports):
    class Ours:
        """An array of a library by the standard of array libraries."""

        def __init__(self, array):
            self.array, self.dtype, self.shape = array, array.dtype, array.shape

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __array_namespace__(self):
            return Namespace

    class Namespace:
        asarray = Ours

        @staticmethod
        def from_dlpack(array):
            if not exports:
                raise BufferError("no such type")
            return Ours(np.from_dlpack(array))

    a = sp.random_array((6, 5), density=0.5, format="csr", rng=0)
    b = np.random.default_rng(0).standard_normal((5, 3))
    for found in (gustav.spmm(a, Ours(b)), gustav.plan_spmm(a, 3).execute(a.data, Ours(b))):
        assert isinstance(found, Ours)
        same(found.array, a @ b)
    values = gustav.sddmm(a, Ours(np.ones((6, 2))), Ours(np.ones((5, 2))))
    assert isinstance(values, Ours) and (values.array == 2.0).all()


def test_more_nonzeros_than_32_bits_count():
    # Memory that was never written is a page of zeros for the system, so that little of these gigabytes is there.
    nnz = 2**31 + 5
    indices, values = np.zeros(nnz, np.int32), np.zeros(nnz, np.float16)
    indices[-2:] = 1, 2
    values[-2:] = 3.0, 5.0
    a = (np.array([0, nnz - 1, nnz], np.int64), indices, values, (2, 3))
    found = gustav.spmv(a, np.array([1.0, 2.0, 4.0], np.float16))
    assert found.tolist() == [6.0, 20.0]


@pytest.mark.parametrize("columns", [1, 8])
def test_deterministic_results_are_the_same_for_any_number_of_threads(columns):
    rng = np.random.default_rng(5)
    lengths = np.zeros(400, np.int64)
    lengths[:8] = 5000
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices, values = rng.integers(0, 700, indptr[-1]), rng.standard_normal(indptr[-1])
    a = sp.csr_array((values, indices, indptr), shape=(400, 700))
    b = rng.standard_normal((700, columns))
    few = sp.csr_array(sp.random_array((700, 50), density=0.1, rng=rng))
    for product in (
        lambda threads: gustav.spmm(a, b, deterministic=True, threads=threads),
        lambda threads: gustav.spgemm(a, few, deterministic=True, threads=threads).data,
    ):
        one = product(1)
        for threads in (2, 3, 4):
            for _ in range(3):
                np.testing.assert_array_equal(product(threads), one)


def test_arrays_that_may_not_be_written_are_read():
    a = sp.random_array((20, 20), density=0.2, format="csr", rng=1)
    b = np.ones((20, 3))
    expected = a @ b
    for array in (a.indptr, a.indices, a.data, b):
        array.flags.writeable = False
    np.testing.assert_allclose(gustav.spmm(a, b), expected)
    np.testing.assert_allclose(gustav.plan_spmm(a, 3).execute(a.data, b), expected)
    np.testing.assert_allclose(gustav.spgemm(a, a).toarray(), (a @ a).toarray())
    np.testing.assert_allclose(gustav.csr_array(a).T @ b, a.T @ b)


def test_entries_of_a_mask_in_one_position_count_once():
    a = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    twice = (np.array([0, 2, 2], np.int32), np.array([2, 2], np.int32), np.ones(2), (2, 3))
    c = gustav.spgemm(a, sp.csr_array(np.eye(3)), mask=twice)
    assert c.nnz == 1 and c.toarray().tolist() == [[0.0, 0.0, 2.0], [0.0, 0.0, 0.0]]


def test_row_offsets_of_coo_that_the_type_of_its_columns_does_not_hold():
    # As with int32 and more than 2^31 nonzeros.
    row, col = np.repeat(np.array([0, 1], np.int8), 100), np.tile(np.arange(100, dtype=np.int8), 2)
    found = _operands._of_triplets(None, row, col, np.ones(200), (2, 100))
    assert found.indptr.tolist() == [0, 100, 200] and found.indices.dtype == np.int8
    small = _operands._of_triplets(None, row[:9], col[:9], np.ones(9), (2, 100))
    assert small.indptr.dtype == np.int8
