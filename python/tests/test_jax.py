"""Arrays of JAX, which are read in place and never written."""

import importlib.util
import subprocess
import sys

import pytest

# In a process of its own: importing JAX starts threads, which tests of forks do not go with.
PROGRAM = """
import gustav, jax, jax.numpy as jnp, numpy as np, scipy.sparse as sp

jax.config.update("jax_enable_x64", True)
a = sp.random_array((30, 20), density=0.3, format="csr", rng=0)
rng = np.random.default_rng(0)


def same(found, expected, dtype):
    assert isinstance(found, jax.Array) and found.dtype == dtype, (type(found), found.dtype)
    close = {8: 1e-12, 4: 1e-5, 2: 0.04}[found.dtype.itemsize]
    np.testing.assert_allclose(np.asarray(found, np.float64), expected, rtol=close, atol=close)


# Of a sparse result, in SciPy's order: values, indices and offsets.
parts = ((2, np.float64), (1, np.int64), (0, np.int64))
on_gpu = jax.default_backend() == "gpu"
for dtype in (jnp.float64, jnp.float32, jnp.float16, jnp.bfloat16, jnp.int32, jnp.int64):
    def made(*shape):
        numbers = rng.integers(-9, 10, shape) if jnp.issubdtype(dtype, jnp.integer) else rng.standard_normal(shape)
        return jnp.asarray(numbers, dtype)

    values, b, x, y = made(a.nnz), made(20, 4), made(30, 3), made(20, 3)
    full = [np.asarray(t, np.float64) for t in (values, b, x, y)]
    exact = sp.csr_array((full[0], a.indices, a.indptr), shape=a.shape)
    of_numpy, of_jax = (a.indptr, a.indices), (jnp.asarray(a.indptr), jnp.asarray(a.indices))
    for arrays in (of_jax,) if on_gpu else (of_numpy, of_jax):
        operand = (*arrays, values, a.shape)
        same(gustav.spmm(operand, b), exact @ full[1], dtype)
        same(gustav.spmm(operand, b.T[:3].T), exact @ full[1][:, :3], dtype)
        same(gustav.spmv(operand, b[:, 1]), exact @ full[1][:, 1], dtype)
        same(gustav.plan_spmm(operand, 4).execute(None, b), exact @ full[1], dtype)
        row = np.repeat(np.arange(30), np.diff(a.indptr))
        inner = (full[2][row] * full[3][a.indices]).sum(1)
        same(gustav.sddmm(operand, x, y), inner, dtype)
        same(gustav.sddmm(operand, x, y, beta=2.0, values=values), inner + 2 * full[0], dtype)
        transpose = sp.csr_array(a.T)
        of_transpose = jnp.asarray(transpose.indptr), jnp.asarray(transpose.indices), values, transpose.shape
        c = gustav.spgemm(operand, of_transpose)
        exact_c = exact @ sp.csr_array((full[0], transpose.indices, transpose.indptr), shape=transpose.shape)
        if on_gpu:
            assert all(isinstance(array, jax.Array) for array in c[:3])
            assert all(array.device == values.device for array in c[:3])
        found = sp.csr_array(tuple(np.asarray(c[k], dtype_of_part) for k, dtype_of_part in parts), shape=c[3])
        np.testing.assert_allclose(found.toarray(), exact_c.toarray(), rtol=0.04, atol=0.04)
    before = b.copy()
    for call in (
        lambda: gustav.spmm(operand, b if on_gpu else np.asarray(b), out=jnp.zeros((30, 4), dtype)),
        lambda: gustav.sddmm(operand, x, y, out=values),
        lambda: gustav.plan_spmm(operand, 4).execute(None, b, jnp.zeros((30, 4), dtype)),
    ):
        try:
            call()
        except TypeError as error:
            assert "arrays of JAX cannot be written" in str(error), error
        else:
            raise AssertionError("an array of JAX was written")
    assert (b == before).all()
print("right")
"""


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
def test_products_of_arrays_of_jax():
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert ended.stdout == "right\n", ended.stderr
