"""What the ranks of a job do, which test_mpi.py starts: the name of a function here is the argument."""

import importlib.util
import os
import sys
from pathlib import Path

import gustav.mpi as gm
import numpy as np
import pytest
import scipy.sparse as sp
from gustav import _families
from mpi4py import MPI

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.rank, COMM.size


def parts(total, uneven=True):
    """First rows of the ranks: in turns none, some and many."""
    weights = np.array([(r * 2 + 1) % 4 if uneven else 1 for r in range(SIZE)])
    weights[-1] += weights.sum() == 0
    return [0, *np.cumsum(weights) * total // weights.sum()]


def mine(array, offsets):
    return array[offsets[RANK] : offsets[RANK + 1]]


def whole(local):
    return np.concatenate(COMM.allgather(np.asarray(local)))


def matrix(rows, columns, dtype, rng):
    """A matrix of small integers, whose products are exact."""
    a = sp.random_array((rows, columns), density=0.1, format="csr", rng=rng, dtype=np.float64)
    a.data[:] = rng.integers(1, 5, a.nnz)
    return a.astype(dtype)


def products():
    ranks = gm.Ranks(COMM)
    assert (ranks.rank, ranks.size, ranks.threads >= 1) == (RANK, SIZE, True)
    rng = np.random.default_rng(0)
    for dtype in ("float64", "float32", "int64"):
        a = matrix(101, 73, dtype, rng)
        b = matrix(73, 40, dtype, rng)
        rows, columns = parts(101), parts(73)
        local = gm.DistCsr(ranks, mine(a, rows), np.diff(columns))
        assert (local.shape, local.nnz) == (a.shape, a.nnz)
        assert (local.local() != mine(a, rows)).nnz == 0
        of_rows = mine(a, rows)
        without_values = (of_rows.indptr, of_rows.indices, None, of_rows.shape)
        assert gm.DistPattern(ranks, without_values, np.diff(columns)).nnz == a.nnz
        x = rng.integers(-4, 5, (73, 6)).astype(dtype)
        y = gm.spmm(local, mine(x, columns))
        assert y.dtype == dtype
        assert np.array_equal(whole(y), a @ x)
        # In columns, with factors, into an array.
        out = np.ones_like(y)
        gm.spmm(local, np.asfortranarray(mine(x, columns)), out=out, alpha=2, beta=3)
        assert np.array_equal(whole(out), 2 * (a @ x) + 3)
        t = rng.integers(-4, 5, (101, 3)).astype(dtype)
        assert np.array_equal(whole(gm.spmm(local, mine(t, rows), transpose=True)), a.T @ t)
        assert np.array_equal(whole(gm.spmv(local, mine(x[:, 0], columns))), a @ x[:, 0])
        z = rng.integers(-4, 5, (101, 6)).astype(dtype)
        entries = gm.sddmm(local, mine(z, rows), mine(x, columns))
        row, column = a.tocoo().coords
        assert np.array_equal(whole(entries), (z[row] * x[column]).sum(1))
        c = gm.spgemm(local, gm.DistCsr(ranks, mine(b, columns)))
        assert c.shape == (101, 40)
        assert np.array_equal(whole(c.local().toarray()), (a @ b).toarray())
        # The plan of another pattern takes the place of the one before.
        c = gm.spgemm(local, gm.DistCsr(ranks, mine(2 * b, columns)))
        assert np.array_equal(whole(c.local().toarray()), 2 * (a @ b).toarray())
        assert [key[0] for key in local.pattern._plans].count("spgemm") == 1
        for plan in local.pattern._plans.values():
            assert plan.messages >= SIZE - 1 or plan.sent_bytes == 0
            assert plan.workspace_bytes >= 0 and "sent" in plan.explain()
        plan = gm.plan_spmm(local, 6, communication="rows-of-b")
        assert (plan.sent_bytes == 0) == (SIZE == 1)
        assert "sent" in plan.explain()
        assert np.array_equal(whole(plan.execute(2 * local.data, mine(x, columns))), 2 * (a @ x))
        for copies in (SIZE, "auto"):
            plan = gm.plan_spmm(local, 6, copies=copies)
            assert np.array_equal(whole(plan.execute(local.data, mine(x, columns))), a @ x)
        assert "which sends the fewest bytes" in plan.explain()


def scattered():
    """Rows of a matrix that rank 0 has, in orders."""
    import torch

    ranks = gm.Ranks(COMM)
    rng = np.random.default_rng(1)
    # A grid whose points are numbered at random.
    line = sp.diags_array([1.0, 2.0, 3.0], offsets=[-1, 0, 1], shape=(24, 24))
    numbers = rng.permutation(24 * 24)
    grid = sp.csr_array(sp.kronsum(line, line))[numbers][:, numbers]
    x = rng.integers(-4, 5, (24 * 24, 3))
    sent = {}
    for order in ("stored", "reverse-cuthill-mckee", "label-propagation"):
        for dtype in ("float64", "float32", "int64"):
            a = grid.astype(dtype)
            local, rows = gm.DistCsr.scatter(ranks, a if RANK == 0 else None, order=order)
            assert (local.shape, local.nnz, local.data.dtype, rows.dtype) == (a.shape, a.nnz, dtype, "int64")
            all_rows = whole(rows)
            assert sorted(all_rows) == list(range(24 * 24))
            # Columns are in the same order.
            assert (local.local() != a[rows][:, all_rows]).nnz == 0
            y = gm.spmm(local, x[rows].astype(dtype))
            assert np.array_equal(y, (a @ x)[rows])
            plan = gm.plan_spmm(local, 3, communication="rows-of-b")
            sent[order] = plan.sent_bytes
            assert SIZE == 1 or "rows of B travel" in plan.explain()
    assert SIZE == 1 or sent["reverse-cuthill-mckee"] < sent["stored"] / 2
    # Others than square, of which columns are spread evenly, and of another library.
    a = matrix(101, 73, "float32", rng)
    given = torch.from_numpy(a.toarray()).to_sparse_csr()
    local, rows = gm.DistCsr.scatter(ranks, given if RANK == 0 else None)
    assert np.array_equal(whole(rows), np.arange(101))
    assert (local.local() != a[rows]).nnz == 0
    assert local.pattern.local_nnz < a.nnz / SIZE + 60
    x = rng.integers(-4, 5, 73).astype("float32")
    first, last = local.pattern.column_offsets[RANK : RANK + 2]
    assert np.array_equal(gm.spmv(local, x[first:last]), (a @ x)[rows])
    wrong = RANK == SIZE - 1
    root = a if RANK == 0 else None
    cases = [
        (None, "stored", "a: rank 0 gives no matrix"),
        (a if RANK == 0 or wrong else None, "stored", "matrix to scatter: one on rank"),
        ("no" if RANK == 0 else None, "stored", "a: str is not taken"),
        (root, "no" if wrong else "stored", "order: no is not valid, expected stored"),
        (root, 3 if wrong else "stored", "order: 3 is not taken"),
        (root, "dcsr" if wrong else "lpt", "rank .* has order dcsr, where rank .* has lpt"),
    ]
    for given, order, words in cases:
        with pytest.raises(Exception, match=words):
            gm.DistCsr.scatter(ranks, given, order)
        assert gm.DistCsr.scatter(ranks, root)[0].nnz == a.nnz


def communicators():
    """Ranks of another communicator, in the other order."""
    comm = COMM.Split(RANK % 2, -RANK)
    ranks = gm.Ranks(comm)
    assert (ranks.rank, ranks.size) == (comm.rank, comm.size)
    rows = sp.csr_array(np.full((1, comm.size), comm.rank + 1.0))
    y = gm.spmv(gm.DistCsr(ranks, rows), np.array([1.0]))
    assert y == [(comm.rank + 1.0) * comm.size]
    with pytest.raises(TypeError, match="mpi4py"):
        gm.Ranks(3)


def gradients():
    import gustav.mpi.torch as gmt
    import torch

    generator = torch.Generator().manual_seed(0)
    make = {"generator": generator, "dtype": torch.float64}
    dense = torch.rand((31, 23), **make) * (torch.rand((31, 23), **make) < 0.3)
    rows, columns = parts(31), parts(23)
    pattern = gm.DistPattern(gm.Ranks(COMM), mine(dense, rows).to_sparse_csr(), np.diff(columns))
    x, z = torch.rand((23, 4), **make), torch.rand((31, 4), **make)

    def leaf(tensor):
        return tensor.detach().clone().requires_grad_()

    def together(x, dense, z):
        """A loss of every function, of dense tensors."""
        stored = dense != 0
        scores = (z @ x.T) * stored
        return ((dense @ x) ** 2).sum() + ((dense.T @ z) ** 3).sum() + ((scores @ x) * z).sum()

    all_x, all_dense, all_z = leaf(x), leaf(dense), leaf(z)
    together(all_x, all_dense, all_z).backward()
    local_x, local_z = leaf(mine(x, columns)), leaf(mine(z, rows))
    local = mine(dense, rows)
    values = leaf(local[local != 0])
    loss = (gmt.spmm(pattern, values, local_x) ** 2).sum()
    loss = loss + (gmt.spmm(pattern, values, local_z, transpose=True) ** 3).sum()
    scores = gmt.sddmm(pattern, local_z, local_x)
    loss = loss + (gmt.spmm(pattern, scores, local_x) * local_z).sum()
    loss.backward()
    for found, expected in (
        (local_x, mine(all_x.grad, columns)),
        (local_z, mine(all_z.grad, rows)),
        (values, mine(all_dense.grad, rows)[local != 0]),
    ):
        torch.testing.assert_close(found.grad, expected, rtol=1e-12, atol=1e-12)
    # Without values, a vector, and nothing to give a gradient to.
    ones = (dense != 0).double()
    torch.testing.assert_close(gmt.spmm(pattern, None, mine(x[:, 0], columns)), mine(ones @ x[:, 0], rows))


class Foreign:
    """An array of a library that takes no arrays of others."""

    def __init__(self, array):
        self.shape, self.dtype = array.shape, array.dtype
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__

    def __array_namespace__(self):
        raise BufferError("this library takes no arrays")


def errors():
    """What is wrong on one rank is an error on every rank, and the next product is right."""
    import gustav.mpi.torch as gmt
    import torch

    ranks = gm.Ranks(COMM)
    rows = sp.csr_array(np.full((2, 2 * SIZE), 1.0))
    wrong = RANK == SIZE - 1
    culprit = f"rank {SIZE - 1}"
    a = gm.DistCsr(ranks, rows)
    right, of_rows = np.ones((2, 3)), (rows.indptr, rows.indices)
    cases = [
        (lambda: gm.spmm(a, np.ones((3, 3)) if wrong else right), "expected the shape"),
        (lambda: gm.spmm(a, np.ones((2, 3), np.float32) if wrong else right), "float32"),
        (lambda: gm.spmm(a, [1.0] if wrong else right), "b: "),
        (lambda: gm.plan_spmm(a, 2**62 if wrong else 4), "bytes that ranks send"),
        (lambda: gm.plan_spmm(a, 4, dtype="\ud800" if wrong else "float64"), "dtype: .* is no text"),
        (lambda: gm.spmm(a, right, semiring="\ud800" if wrong else "plus_times"), "semiring: .* is no text"),
        (lambda: gm.DistCsr(ranks, (*of_rows, np.ones(9), rows.shape) if wrong else rows), "values of the shape"),
        (lambda: gm.spmm(a, Foreign(right) if wrong else right), "takes no arrays"),
        (lambda: gm.spmm(a, right, alpha="x" if wrong else None), "alpha"),
        (lambda: gm.DistCsr(ranks, "nothing" if wrong else rows), "not taken"),
        (lambda: gm.DistCsr(ranks, sp.csr_array((3, 7)) if wrong else rows, [2] * SIZE), "columns"),
        (lambda: gm.plan_spmm(a, 4, dtype="complex64" if wrong else "float64"), "complex64"),
        (lambda: gm.plan_spmm(a, 4, semiring="no" if wrong else "plus_times"), "semiring"),
        (lambda: gm.DistCsr(ranks, rows, [-1] * SIZE if wrong else None), "columns: -1 is not valid"),
        (lambda: gm.DistCsr(ranks, rows, [1.5] * SIZE if wrong else None), "columns: 1.5 is not taken"),
        (lambda: gm.DistCsr(ranks, rows, 3 if wrong else None), "columns: 3 is not taken"),
        (lambda: gm.plan_spmm(a, -1 if wrong else 4), "columns: -1 is not valid"),
        (lambda: gm.plan_spmm(a, 1.5 if wrong else 4), "columns: 1.5 is not taken"),
        (lambda: gm.plan_spmm(a, 4, calls=-1 if wrong else 1), "calls: -1 is not valid"),
        (lambda: gm.plan_spmm(a, 4, threads=-1 if wrong else 1), "threads: -1 is not valid"),
        (lambda: gm.plan_spmm(a, 4, transpose="no" if wrong else False), "transpose: 'no' is not taken"),
        (lambda: gm.plan_spmm(a, 4, communication=None if wrong else "cheapest"), "communication: None is not taken"),
        (lambda: gm.plan_spmm(a, 4, copies=0 if wrong else 1), "copies: 0 is not valid"),
        (lambda: gm.plan_sddmm(a, None if wrong else 4), "depth: None is not taken"),
        (lambda: gm.spmm(a, right, semiring=[] if wrong else "plus_times"), r"semiring: \[\] is not taken"),
        (lambda: gm.spmm(a.pattern if wrong else a, right), "a: DistPattern is not taken"),
        (lambda: gm.spgemm(a, rows if wrong else a), "b: csr_array is not taken"),
        (lambda: gm.spgemm(rows if wrong else a, a), "a: csr_array is not taken"),
        (lambda: gm.spgemm(a, a, semiring=[] if wrong else "plus_times"), r"semiring: \[\] is not taken"),
        (lambda: gmt.spmm(a.pattern, None, torch.tensor(1.0) if wrong else torch.ones(2, 3)), "x: expected a vector"),
        (lambda: gmt.spmm(a.pattern, None, None if wrong else torch.ones(2, 3)), "x: NoneType is not taken"),
        (lambda: gmt.spmm(a if wrong else a.pattern, None, torch.ones(2, 3)), "pattern: DistCsr is not taken"),
    ]
    for call, words in cases:
        with pytest.raises(Exception, match=words) as caught:
            call()
        if not wrong:
            assert culprit in str(caught.value), caught.value
        assert np.array_equal(gm.spmm(a, right), np.full((2, 3), 2.0 * SIZE))
    with pytest.raises(ValueError, match="columns of the dense matrix"):
        gm.plan_spmm(a, 4 + wrong)
    with pytest.raises(TypeError, match="made once"):
        gm.DistCsr(COMM, rows)


def moved():
    """Plans are made anew on all ranks where that of one is of another device, and errors after a product reach all."""
    a = gm.DistCsr(gm.Ranks(COMM), sp.csr_array(np.ones((2, 2 * SIZE))))
    b, wrong = np.ones((2, 3)), RANK == SIZE - 1
    right = np.full((2, 3), 2.0 * SIZE)
    assert np.array_equal(gm.spmm(a, b), right)
    (plan,) = a.pattern._plans.values()
    assert np.array_equal(gm.spmm(a, b), right)
    assert list(a.pattern._plans.values()) == [plan]
    if wrong:
        plan._device = 0
    assert np.array_equal(gm.spmm(a, b), right)
    (anew,) = a.pattern._plans.values()
    assert anew is not plan
    of_block = _families.of_block

    def without_memory(*_):
        raise MemoryError("no memory for C")

    if wrong:
        _families.of_block = without_memory
    with pytest.raises(Exception, match="no memory for C") as caught:
        gm.spgemm(a, a)
    if not wrong:
        assert f"rank {SIZE - 1}" in str(caught.value)
    _families.of_block = of_block
    assert gm.spgemm(a, a).nnz == (2 * SIZE) ** 2


def gpu():
    """An array that says it is on a GPU, beside values in host memory."""

    class OnGpu:
        shape = (2, 3)
        dtype = np.dtype("float64")

        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **_):
            raise AssertionError("nobody reads it")

    a = gm.DistCsr(gm.Ranks(COMM), sp.csr_array(np.ones((2, 2 * SIZE))))
    with pytest.raises(ValueError, match="b is in the memory of cuda:0, and the plan computes in host memory"):
        gm.spmm(a, OnGpu())
    wrong = RANK == SIZE - 1
    with pytest.raises(Exception, match="device: -1 is not valid"):
        gm.plan_sddmm(a, 3, device=-1 if wrong else None)
    assert np.array_equal(gm.spmm(a, np.ones((2, 3))), np.full((2, 3), 2.0 * SIZE))


def on_gpu():
    """Products and gradients of ranks that share a GPU, of which every second one computes on its CPU as well."""
    import gustav.mpi.torch as gmt
    import torch

    generator = torch.Generator().manual_seed(0)
    make = {"generator": generator, "dtype": torch.float64}
    dense = torch.rand((31, 23), **make) * (torch.rand((31, 23), **make) < 0.3)
    x, z = torch.rand((23, 4), **make), torch.rand((31, 4), **make)
    rows, columns = parts(31), parts(23)
    for mixed in (False, True):
        device = "cpu" if mixed and RANK % 2 == 1 else "cuda"

        def here(tensor, offsets, device=device):
            return mine(tensor, offsets).to(device)

        a = gm.DistCsr(gm.Ranks(COMM), here(dense, rows).to_sparse_csr(), np.diff(columns))
        assert a.data.device.type == a.local().device.type == device
        y = gm.spmm(a, here(x, columns))
        torch.testing.assert_close(y, here(dense @ x, rows))
        # In columns, with factors, into a tensor.
        in_columns = here(x, columns).t().contiguous().t()
        gm.spmm(a, in_columns, out=y, alpha=2, beta=3)
        torch.testing.assert_close(y, here(5 * (dense @ x), rows))
        torch.testing.assert_close(gm.spmv(a, here(x[:, 0], columns)), here(dense @ x[:, 0], rows))
        for copies in (SIZE, 2 if SIZE % 2 == 0 else 1, "auto"):
            plan = gm.plan_spmm(a, 4, copies=copies)
            y = plan.execute(a.data, here(x, columns))
            assert y.device.type == device
            torch.testing.assert_close(y, here(dense @ x, rows))
            plan.execute(a.data, in_columns, out=y, alpha=2, beta=3)
            torch.testing.assert_close(y, here(5 * (dense @ x), rows))
        assert "which sends the fewest bytes" in plan.explain()
        scores = gm.sddmm(a, here(z, rows), here(x, columns))
        local = mine(dense, rows)
        torch.testing.assert_close(scores, mine(z @ x.T, rows)[local != 0].to(device))
        leaves = [t.requires_grad_() for t in (a.data.clone(), here(x, columns), here(z, rows))]
        values, of_x, of_z = leaves
        loss = (gmt.spmm(a.pattern, values, of_x) ** 2).sum()
        loss = loss + (gmt.spmm(a.pattern, values, of_z, transpose=True) ** 3).sum()
        loss = loss + (gmt.spmm(a.pattern, gmt.sddmm(a.pattern, of_z, of_x), of_x) * of_z).sum()
        loss.backward()
        whole_of = [t.clone().requires_grad_() for t in (dense, x, z)]
        all_dense, all_x, all_z = whole_of
        of_all = ((all_dense @ all_x) ** 2).sum() + ((all_dense.T @ all_z) ** 3).sum()
        of_all = of_all + ((((all_z @ all_x.T) * (dense != 0)) @ all_x) * all_z).sum()
        of_all.backward()
        expected = [mine(all_dense.grad, rows)[local != 0], mine(all_x.grad, columns), mine(all_z.grad, rows)]
        for found, right in zip(leaves, expected, strict=True):
            torch.testing.assert_close(found.grad, right.to(device), rtol=1e-12, atol=1e-12)
        b = gm.DistCsr(a.ranks, here(dense.T, columns).to_sparse_csr(), np.diff(rows))
        for alpha in (None, 2.0):
            c = gm.spgemm(a, b, alpha=alpha)
            assert c.shape == (31, 31)
            assert c.data.device.type == device
            torch.testing.assert_close(c.local().to_dense(), here((alpha or 1.0) * (dense @ dense.T), rows))
        # The product is an operand.
        torch.testing.assert_close(gm.spmm(c, here(z, rows)), here(2.0 * (dense @ dense.T) @ z, rows))
        if not mixed:
            with pytest.raises(ValueError, match="b is in host memory"):
                gm.spmm(a, mine(x, columns))
    # Tensors of one rank that move to another device: all plan anew.
    for moved in ("cpu", "cuda", "cpu"):
        device = moved if RANK == 0 else "cuda"
        values, of_x = (t.to(device).requires_grad_() for t in (a.data.detach(), mine(x, columns)))
        y = gmt.spmm(a.pattern, values, of_x)
        torch.testing.assert_close(y, mine(dense @ x, rows).to(device))
        y.sum().backward()
        torch.testing.assert_close(of_x.grad, mine(dense.T @ torch.ones_like(dense @ x), columns).to(device))


def refused_on_gpu():
    """What ranks with GPUs refuse, on every rank and before they compute."""
    import gustav.mpi.torch as gmt
    import torch

    a = gm.DistCsr(gm.Ranks(COMM), torch.ones((2, 2 * SIZE), device="cuda").to_sparse_csr())
    x = torch.ones((2, 3), device="cuda", dtype=torch.float16)
    with pytest.raises(NotImplementedError, match="rounded once for every rank"):
        gmt.spmm(a.pattern, None, x)
    torch.testing.assert_close(gmt.sddmm(a.pattern, x, x), torch.full((4 * SIZE,), 3.0, device="cuda").half())
    with pytest.raises(NotImplementedError, match="gradients of torch.float16"):
        gmt.sddmm(a.pattern, x.clone().requires_grad_(), x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(NotImplementedError, match="making a plan"):
            gm.plan_spmm(a, 3)
        x.add_(1)
    torch.testing.assert_close(gm.spmm(a, x.float()), torch.full((2, 3), 2.0 * SIZE, device="cuda"))


def another_mpi():
    """mpi4py of another MPI than the process's."""
    version = MPI.Get_library_version
    MPI.Get_library_version = lambda: "Another MPI 1.0"
    with pytest.raises(RuntimeError, match="mpi4py uses Another MPI 1.0 .* gustav found"):
        gm.Ranks(COMM)
    MPI.Get_library_version = version


def threads():
    """The number that the environment of a rank says, if it says one."""
    ranks = gm.Ranks(COMM)
    assert ranks.threads >= 1
    if "OMP_NUM_THREADS" in os.environ:
        assert ranks.threads == 1
    assert sorted(COMM.allgather("OMP_NUM_THREADS" in os.environ)) == [False, True]


def losses():
    """The losses of the example, by rank 0, in full."""
    import torch

    path = Path(__file__).parents[1] / "examples" / "gcn_mpi.py"
    spec = importlib.util.spec_from_file_location("gcn_mpi", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for dtype in (torch.float64, torch.float32):
        found = module.train(COMM, dtype, nodes=300, epochs=12)
        if RANK == 0:
            print(*found)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    COMM.Barrier()
    if RANK == 0:
        print("done")
