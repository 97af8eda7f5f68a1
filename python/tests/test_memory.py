"""What products without a plan learn of a matrix."""

import gc
import threading

import gustav
import numpy as np
import pytest
import scipy.sparse as sp
from gustav import _gustav, _memory

B = np.random.default_rng(1).standard_normal((30, 4))


def matrix():
    return sp.random_array((30, 30), density=0.2, format="csr", rng=0)


@pytest.fixture(autouse=True)
def forgotten():
    _memory._learnt.clear()


@pytest.fixture
def patterns(monkeypatch):
    """The patterns that were made."""
    made = []

    native = _gustav.Pattern

    def make(*arrays, **options):
        made.append(native(*arrays, **options))
        return made[-1]

    monkeypatch.setattr(_gustav, "Pattern", make)
    return made


def test_a_pattern_is_learnt_once_and_compared(patterns):
    a = matrix()
    for k in range(12):
        a.data[:] += 1.0
        np.testing.assert_allclose(gustav.spmm(a, B, alpha=float(k)), k * (a @ B), atol=1e-12)
        np.testing.assert_allclose(gustav.spmm(a.T, B), a.T @ B)
        np.testing.assert_allclose(gustav.spmm(2.0 * a, B[:, 0]), 2.0 * a @ B[:, 0])
    assert len(patterns) == 1


def test_indices_that_are_written_to_are_noticed(patterns):
    a = matrix()
    for _ in range(3):
        gustav.spmm(a, B)
    for _ in range(3):
        a.indices[:] = a.indices[::-1].copy()
        np.testing.assert_allclose(gustav.spmm(a, B), a @ B)
    a.indices[3] = 1000
    with pytest.raises(ValueError, match="index 1000 is out of range"):
        gustav.spmm(a, B)
    a.indices[3] = 0
    a.indptr[1] = 0
    np.testing.assert_allclose(gustav.spmm(a, B), a @ B)
    assert len(patterns) == 5


def test_arrays_that_are_replaced_are_noticed():
    a, b = matrix(), matrix().T.tocsr()
    for _ in range(3):
        gustav.spmm(a, B)
    a.indices, a.indptr, a.data = b.indices, b.indptr, b.data
    np.testing.assert_allclose(gustav.spmm(a, B), b @ B)
    shorter = sp.csr_array((a.data, a.indices, a.indptr), shape=(30, 31))
    with pytest.raises(ValueError):
        gustav.spmm(shorter, B)


def test_what_is_learnt_goes_with_the_matrix():
    a = matrix()
    gustav.spmm(a, B)
    assert len(_memory._learnt) == 1
    del a
    gc.collect()
    assert len(_memory._learnt) == 0


def test_little_is_kept():
    held = [matrix() for _ in range(40)]
    for a in held * 2:
        gustav.spmm(a, B)
    assert 0 < len(_memory._learnt) <= _memory._MOST


def test_tensors_are_learnt_by_themselves():
    import torch

    a = torch.from_numpy(matrix().toarray()).to_sparse_csr()
    b = torch.from_numpy(B)
    expected = a.to_dense() @ b
    for _ in range(3):
        torch.testing.assert_close(gustav.spmm(a, b), expected)
    assert len(_memory._learnt) == 1 and next(iter(_memory._learnt.values())).planned.plans


def test_threads_learn_at_once():
    held = []
    for seed in range(12):
        a = sp.random_array((30, 30), density=0.2, format="csr", rng=seed)
        # Another matrix of as many entries, with the same array of indices.
        indptr = np.concatenate([[0], np.cumsum(np.diff(a.indptr)[::-1])])
        held += [a, sp.csr_array((a.data, a.indices, indptr.astype(a.indptr.dtype)), shape=a.shape)]
    expected = [a @ B for a in held]
    wrong = []

    def work(offset):
        for k in range(200):
            try:
                which = (7 * k + offset) % 24
                found = gustav.spmm(held[which], B)
            except Exception as error:
                wrong.append(error)
                raise
            if not np.allclose(found, expected[which]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
