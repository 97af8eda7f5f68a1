"""SciPy's classes whose products are gustav's, and SciPy itself within a block."""

import subprocess
import sys
import threading

import gustav
import numpy as np
import pytest
import scipy
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from strategies import dense, sparse


@pytest.fixture
def counted(monkeypatch):
    """Which products of gustav computed a result."""
    from gustav import _products

    calls = []
    for name in ("spmm", "spgemm"):
        product = getattr(_products, name)

        def call(*args, _product=product, _name=name, **options):
            # Counted when it has succeeded: SciPy would stand in for one that fails.
            result = _product(*args, **options)
            calls.append(_name)
            return result

        monkeypatch.setattr(_products, name, call)
    return calls


A = sp.random_array((6, 5), density=0.5, format="csr", rng=0)
B = np.random.default_rng(1).standard_normal((5, 3))


def test_every_product_of_a_subclass_is_ours(counted):
    a = gustav.csr_array(A)
    products = [
        (lambda a: a @ B, "spmm"),
        (lambda a: a @ B[:, 0], "spmm"),
        (lambda a: a.dot(B), "spmm"),
        (lambda a: B.T @ a.T, "spmm"),
        (lambda a: np.ones(6) @ a, "spmm"),
        (lambda a: a.T @ np.ones((6, 2)), "spmm"),
        (lambda a: a.T.T @ B, "spmm"),
        (lambda a: a.tocsc() @ B, "spmm"),
        (lambda a: (2 * a) @ B, "spmm"),
        (lambda a: (a + a) @ B, "spmm"),
        (lambda a: a[1:4] @ B, "spmm"),
        (lambda a: a.copy() @ B, "spmm"),
        (lambda a: a.T @ a, "spgemm"),
        (lambda a: a @ a.T, "spgemm"),
        (lambda a: a @ sp.coo_array(A.T), "spgemm"),
        (lambda a: (a @ a.T) @ a, "spgemm"),
    ]
    for product, name in products:
        counted.clear()
        found, expected = product(a), product(A)
        assert name in counted
        if sp.issparse(expected):
            assert found.format == expected.format
            found, expected = found.toarray(), expected.toarray()
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_classes_stay_ours():
    a = gustav.csr_array(A)
    assert type(a.T) is gustav.csc_array and type(a.T.T) is gustav.csr_array
    assert type(a @ a.T) is gustav.csr_array and type(a.T.tocsr()) is gustav.csr_array
    assert type(a + a) is gustav.csr_array and type(-a[:2]) is gustav.csr_array
    assert np.shares_memory(a.T.data, a.data)


def test_types_that_are_not_ours_are_scipys():
    a = gustav.csr_array(A)
    found = a.astype(complex) @ B
    np.testing.assert_allclose(found, A @ B)
    assert found.dtype == complex
    small = gustav.csr_array(A.astype(np.int8)) @ np.ones(5, np.int8)
    assert small.dtype == np.int8


@pytest.mark.skipif(not hasattr(sp.coo_array(np.ones(2)), "coords"), reason="SciPy has no sparse vectors")
def test_sparse_vectors_are_scipys():
    x = sp.coo_array(np.array([0.0, 2.0, 0.0, 1.0, 0.0]))
    with gustav.patched():
        products = [gustav.csr_array(A) @ x, A @ x, A.tocsc() @ x.tocsr()]
    for found in products:
        assert found.shape == (6,)
        np.testing.assert_allclose(found.toarray(), (A @ x).toarray())


def test_shapes_that_do_not_fit_are_errors():
    with pytest.raises(ValueError):
        gustav.csr_array(A) @ np.ones((4, 2))


@given(st.data())
def test_patched_scipy_computes_the_same(data):
    a = data.draw(sparse(formats=("csr", "csc")))
    b = data.draw(dense(a.shape[1], 3))
    other = data.draw(sparse(rows=a.shape[1]))
    a.sum_duplicates()
    expected = a @ b, a @ b[:, 0], (a @ other).toarray()
    with gustav.patched():
        found = a @ b, a @ b[:, 0], (a @ other).toarray()
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-13)


def test_patches_nest_and_are_undone(counted):
    before = sp.csr_array._matmul_multivector
    with pytest.raises(ZeroDivisionError), gustav.patched():
        with gustav.patched():
            sp.csr_matrix(A) @ B
        assert counted == ["spmm"]
        A @ B
        assert counted == ["spmm"] * 2
        thread = threading.Thread(target=lambda: A.tocsc() @ B)
        thread.start()
        thread.join()
        assert counted == ["spmm"] * 3
        raise ZeroDivisionError
    assert sp.csr_array._matmul_multivector is before
    A @ B
    assert counted == ["spmm"] * 3


def test_a_scipy_that_is_too_old_is_named():
    code = """
import numpy as np
import scipy.sparse as sp
from scipy.sparse import _compressed
for base in _compressed._cs_matrix.__mro__:
    if "_matmul_vector" in vars(base):
        del base._matmul_vector
import gustav
print(gustav.spmm(sp.csr_array([[2.0]]), np.full((1, 1), 3.0)).tolist())
gustav.csr_array
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ended.stdout == "[[6.0]]\n", ended.stderr
    assert f"ModuleNotFoundError: SciPy {scipy.__version__} is too old" in ended.stderr, ended.stderr
