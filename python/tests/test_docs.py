"""The programs and tables of the documentation: they run, and they are those of the records."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import gustav
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.nn import functional

import gustav.torch as gt

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(0)
N, D, HEADS = 12, 4, 2


def sections(page):
    """The blocks of Python of each section, by its title."""
    found = {}
    for section in re.split(r"^## ", (ROOT / page).read_text(), flags=re.MULTILINE)[1:]:
        blocks = re.findall(r"^```python\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)
        if blocks:
            found[section.splitlines()[0]] = blocks
    return found


PAGES = [(page, title) for page in ("README.md", "docs/python/README.md") for title in sections(page)]


class Model:
    """What other people's code does with a matrix."""

    def fit(self, a):
        assert (a @ np.ones(a.shape[1])).shape == (a.shape[0],)


def of_scipy():
    a = sp.random_array((N, N), density=0.4, format="csr", rng=RNG)
    x = np.ones((N, 64))
    return dict(
        a=a,
        b=a,
        m=a,
        x=x,
        y=np.empty((N, 64)),
        series=[a.data, 2 * a.data],
        model=Model(),
        indptr=a.indptr,
        indices=a.indices,
        data=a.data,
        shape=a.shape,
    )


def of_torch():
    full = torch.randn(N, N) * (torch.rand(N, N) < 0.4)
    t = full.to_sparse_csr()
    P = gt.Pattern.from_sparse(t)
    row = torch.arange(N).repeat_interleave(P.crow.diff())
    x = torch.randn(N, D)
    return dict(
        torch=torch,
        gt=gt,
        F=functional,
        P=P,
        n=N,
        d=D,
        heads=HEADS,
        a=full.to_sparse(),
        values=t.values().clone(),
        x=x,
        h=torch.randn(N, HEADS, D),
        att_src=torch.randn(1, HEADS, D),
        att_dst=torch.randn(1, HEADS, D),
        w=torch.randn(D, D),
        g=x,
        row=row,
        col=P.col,
        edge_index=torch.stack([P.col, row]),
        weight=torch.rand(P.nnz),
        linear=torch.nn.Linear(D, 3 * HEADS * D),
        bias=torch.zeros(P.nnz),
        q=torch.randn(HEADS, N, D),
        k=torch.randn(N, D),
        v=torch.randn(HEADS, N, D),
    )


def of_gpu():
    cupy, cupyx = pytest.importorskip("cupy"), pytest.importorskip("cupyx")
    importlib.import_module("cupyx.scipy.sparse")
    a = sp.random_array((N, N), density=0.4, format="csr", rng=RNG)
    indptr, indices, values = (torch.from_numpy(part).cuda() for part in (a.indptr, a.indices, a.data))
    x = torch.rand(N, 64, dtype=torch.float64, device="cuda")
    return dict(
        cupyx=cupyx,
        torch=torch,
        gt=gt,
        a=cupyx.scipy.sparse.csr_matrix(sp.csr_matrix(a)),
        b=cupy.asarray(x),
        crow=indptr,
        col=indices,
        size=a.shape,
        values=values,
        x=x,
        s=cupy.cuda.Stream(non_blocking=True),
        graph=torch.cuda.CUDAGraph(),
    )


# What the program over ranks starts from, on one rank.
OF_RANKS = """
import numpy as np, scipy.sparse as sp, torch
local_rows = sp.random_array((9, 9), density=0.4, format="csr", rng=np.random.default_rng(0))
x = torch.randn(9, 64, dtype=torch.float64)
q = k = x
values = torch.from_numpy(local_rows.data)
matrix, x_of_all = local_rows, x
"""


def run_over_ranks(blocks):
    pytest.importorskip("mpi4py")
    # In a process of its own, as MPI does not like forks, which other tests make.
    program = "\n".join([OF_RANKS, *blocks]).replace("y = gm.spmm", "b = a\ny = gm.spmm", 1)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")
# PyTorch itself calls what it deprecates when tangents are first seen.
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is:FutureWarning")
@pytest.mark.parametrize(("page", "title"), PAGES)
def test_programs_run(page, title):
    blocks = sections(page)[title]
    if title == "On a GPU" and not torch.cuda.is_available():
        pytest.skip("the section is of a GPU, and there is none")
    if title == "The graph is larger than one machine":
        run_over_ranks(blocks)
        return
    torch.manual_seed(0)
    torch.compiler.reset()
    is_of_torch = any("gt." in block or "torch." in block for block in blocks)
    variables = {"gustav": gustav, "np": np, "sp": sp}
    if title == "On a GPU":
        variables |= of_gpu()
    elif title != "In Python":
        variables |= of_torch() if is_of_torch else of_scipy()
    if title == "The largest and the smallest, on the CPU alone":
        variables["a"] = variables["a"].to_sparse_csr()
    for block in blocks:
        exec(compile(block, f"{page}, {title}", "exec"), variables)


def test_tables_are_those_of_the_records():
    script = ROOT / "bench/python_tables.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_public_function_has_an_example():
    """Which pytest runs as a doctest."""
    for module in (gustav, gt):
        for name in module.__all__:
            public = getattr(module, name)
            is_record = isinstance(public, type) and issubclass(public, tuple)
            # What only functions make has its example there, and on its methods.
            if callable(public) and not is_record and public is not gustav.SpmmPlan:
                assert ">>>" in (public.__doc__ or ""), f"{module.__name__}.{name}"
