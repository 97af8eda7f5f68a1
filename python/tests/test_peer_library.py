"""The benchmark's driver of kernels in shared libraries (bench/peers/library.py), with a library that multiplies on the
host and a CuPy whose device memory is host memory: what the functions of kernel.h take and give back."""

import ctypes
import pathlib
import shutil
import subprocess
import sys
import types

import numpy as np
import pytest
import scipy.sparse

PEERS = pathlib.Path(__file__).parents[2] / "bench/peers"
COMPILER = shutil.which("cc") or shutil.which("gcc")

LIBRARY = r"""
#include <stdlib.h>
#include "kernel.h"

struct state { struct gustav_case product; struct gustav_product c; };

#ifndef EARLIER
int gustav_peer_interface(void) { return GUSTAV_PEER_INTERFACE; }
#endif

const char *gustav_peer_version(void) { return "plain 1.2"; }

int gustav_peer_prepare(const struct gustav_case *product, void **state, const char **message) {
  if (product->type != GUSTAV_F64) { *message = "it has no kernel for this type"; return GUSTAV_UNSUPPORTED; }
  if (product->operation == GUSTAV_SDDMM && product->columns == 9) {
    *message = "it has no such width";
    return GUSTAV_UNSUPPORTED;
  }
  if (product->columns == 7) { *message = "it fell over"; return GUSTAV_FAILED; }
  struct state *s = calloc(1, sizeof *s);
  s->product = *product;
  *state = s;
  *message = "row by row";
  return GUSTAV_OK;
}

int gustav_peer_execute(void *state, const void *b, void *c, const char **message) {
  struct state *s = state;
  const struct gustav_matrix *a = &s->product.a;
  int64_t n = s->product.columns;
  if (s->product.operation == GUSTAV_SPGEMM) { /* A times a diagonal matrix */
    double *values = malloc(sizeof(double) * a->nnz);
    for (int64_t k = 0; k < a->nnz; k++)
      values[k] = ((const double *)a->values)[k] * ((const double *)s->product.b.host_values)[a->indices[k]];
    s->c = (struct gustav_product){a->nnz, a->host_offsets, a->indices, values};
    return GUSTAV_OK;
  }
  if (s->product.operation == GUSTAV_SDDMM) {
    const double *y = b, *x = y + a->cols * n;
    for (int64_t i = 0; i < a->rows; i++)
      for (int64_t k = a->offsets[i]; k < a->offsets[i + 1]; k++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += x[i * n + j] * y[a->indices[k] * n + j];
        ((double *)c)[k] = sum;
      }
    return GUSTAV_OK;
  }
  int b_columns = s->product.b_column_major, c_columns = s->product.c_column_major;
  for (int64_t i = 0; i < a->rows; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0;
      for (int64_t k = a->offsets[i]; k < a->offsets[i + 1]; k++) {
        int64_t row = a->indices[k];
        sum += ((const double *)a->values)[k] * ((const double *)b)[b_columns ? j * a->cols + row : row * n + j];
      }
      ((double *)c)[c_columns ? j * a->rows + i : i * n + j] = sum;
    }
  return GUSTAV_OK;
}

int gustav_peer_product(void *state, struct gustav_product *out, const char **message) {
  *out = ((struct state *)state)->c;
  return GUSTAV_OK;
}

void gustav_peer_drop(void *state) {
  struct state *s = state;
  free((void *)s->c.values);
  s->c.values = 0;
}

void gustav_peer_release(void *state) { gustav_peer_drop(state); free(state); }
"""


class HostArray(np.ndarray):
    """An array that answers as CuPy's do."""

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.ctypes.data)

    def get(self):
        return np.array(self)


class Event:
    def record(self):
        pass

    synchronize = record


def host_cupy():
    def memcpy(target, source, size, _):
        ctypes.memmove(target, source, size)

    runtime = types.SimpleNamespace(
        memcpy=memcpy,
        memcpyDeviceToHost=2,
        deviceSynchronize=lambda: None,
        CUDARuntimeError=type("CUDARuntimeError", (Exception,), {}),
    )
    cupy = types.ModuleType("cupy")
    cupy.cuda = types.SimpleNamespace(runtime=runtime, Event=Event, get_elapsed_time=lambda start, end: 0.5)
    cupy.asarray = lambda x: np.array(x).view(HostArray)
    cupy.zeros = lambda shape, dtype: np.zeros(min(shape, 1000) if isinstance(shape, int) else shape, dtype).view(HostArray)
    cupy.get_default_memory_pool = lambda: types.SimpleNamespace(free_all_blocks=lambda: None)
    return cupy


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("no C compiler is on the path")
    folder = tmp_path_factory.mktemp("peer")
    (folder / "plain.c").write_text(LIBRARY)
    for name, flags in ("plain.so", []), ("earlier.so", ["-DEARLIER"]):
        command = [COMPILER, "-shared", "-fPIC", f"-I{PEERS}", *flags, "-o", name, "plain.c"]
        subprocess.run(command, cwd=folder, check=True)
    return folder / "plain.so"


@pytest.fixture
def peer(built, monkeypatch):
    monkeypatch.syspath_prepend(str(PEERS))
    monkeypatch.setitem(sys.modules, "cupy", host_cupy())
    import library

    return library.Library(str(built))


def matrix(rows, cols, dtype=np.float64):
    m = scipy.sparse.random(rows, cols, 0.2, "csr", random_state=3, dtype=dtype)
    parts = {"offsets": m.indptr, "indices": m.indices, "values": m.data}
    return m, types.SimpleNamespace(rows=rows, cols=cols, dtype=m.dtype.type, **parts)


def test_an_earlier_library_is_asked_for_row_major_products_alone(peer, built):
    earlier = type(peer)(str(built.with_name("earlier.so")))
    assert earlier.layouts == ("row-major",)
    a, arrays = matrix(5, 5)
    with pytest.raises(NotImplementedError, match="earlier kernel.h"):
        earlier.prepare("spmm", arrays, None, np.ones(15), 3, False, "column-major")
    with pytest.raises(NotImplementedError, match="earlier kernel.h"):
        earlier.sampled(arrays, np.ones(30), 3)
    product = earlier.prepare("spmm", arrays, None, np.ones(15), 3, False)
    np.testing.assert_allclose(product.result()[:, 0], a @ np.ones(5))
    product.release()


def test_versions_name_the_library(peer):
    assert peer.versions() == {"plain": "1.2"}


@pytest.mark.parametrize(
    "operation, columns, layouts",
    [
        ("spmm", 5, "row-major"),
        ("spmm", 5, "column-major"),
        ("spmm", 5, "row-to-column-major"),
        ("spmv", 1, "row-major"),
    ],
)
def test_a_dense_product(peer, operation, columns, layouts):
    a, arrays = matrix(31, 17)
    pool = np.random.default_rng(1).standard_normal(17 * columns)
    assert layouts in peer.layouts
    product = peer.prepare(operation, arrays, None, pool, columns, False, layouts)
    assert product.chosen == "row by row"
    product.poison()
    assert np.isnan(product.result()).all()
    assert product.execute() == 0.5
    np.testing.assert_allclose(product.result(), a @ pool.reshape(17, columns))
    product.release()


def test_values_at_a_pattern(peer):
    a, arrays = matrix(31, 17)
    pool = np.random.default_rng(1).standard_normal((17 + 31) * 5)
    y, x = np.split(pool.reshape(-1, 5), [17])
    product = peer.sampled(arrays, pool, 5)
    product.poison()
    assert np.isnan(product.result()[2]).all()
    product.execute()
    _, _, values = product.result()
    rows = np.repeat(np.arange(31), np.diff(arrays.offsets))
    np.testing.assert_allclose(values, np.sum(x[rows] * y[arrays.indices], axis=1))
    product.release()


def test_a_sparse_product(peer):
    a, arrays = matrix(12, 9)
    d = np.arange(1.0, 10.0)
    steps = np.arange(10, dtype=np.int32)
    b = types.SimpleNamespace(rows=9, cols=9, dtype=np.float64, offsets=steps, indices=steps[:9], values=d)
    product = peer.prepare("spgemm", arrays, b, None, 0, True)
    product.execute()
    offsets, indices, values = product.result()
    c = scipy.sparse.csr_matrix((values, indices, offsets), shape=(12, 9))
    np.testing.assert_allclose(c.toarray(), a.toarray() * d)
    product.release()


def test_a_product_that_it_lacks_is_no_failure(peer):
    _, arrays = matrix(5, 5, np.float32)
    with pytest.raises(NotImplementedError, match="no kernel for this type"):
        peer.prepare("spmm", arrays, None, np.ones(15, np.float32), 3, False)
    with pytest.raises(NotImplementedError, match="no transpose"):
        peer.prepare("transpose", arrays, None, np.ones(15, np.float32), 3, False)
    _, arrays = matrix(5, 5)
    with pytest.raises(NotImplementedError, match="no such width"):
        peer.sampled(arrays, np.ones(90), 9)


def test_other_types_are_not_offered(peer):
    _, arrays = matrix(5, 5)
    arrays.dtype = np.int64
    with pytest.raises(NotImplementedError, match="int64"):
        peer.prepare("spmm", arrays, None, np.ones(15), 3, False)


def test_a_fault_of_the_device_ends_the_process(peer):
    _, arrays = matrix(5, 5)
    product = peer.prepare("spmm", arrays, None, np.ones(15), 3, False)
    runtime = peer.cupy.cuda.runtime

    def fault(*_):
        raise runtime.CUDARuntimeError("an illegal address")

    runtime.deviceSynchronize = fault
    # In a library that reports its own failure, and in what the driver does itself.
    with pytest.raises(SystemExit, match="an illegal address"):
        peer.prepare("spmm", arrays, None, np.ones(35), 7, False)
    peer.cupy.asarray = fault
    with pytest.raises(SystemExit, match="an illegal address"):
        peer.prepare("spmm", arrays, None, np.ones(15), 3, False)
    peer.cupy.cuda.get_elapsed_time = fault
    with pytest.raises(SystemExit, match="an illegal address"):
        product.execute()


def test_a_failure_is_quoted(peer):
    _, arrays = matrix(5, 5)
    with pytest.raises(RuntimeError, match="it fell over"):
        peer.prepare("spmm", arrays, None, np.ones(35), 7, False)
