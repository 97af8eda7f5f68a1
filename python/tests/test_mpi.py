"""Products over the ranks of MPI jobs, which mpi_ranks.py are; jobs that take more than two minutes hang."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from gustav import _gustav

needs_gpu = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is no CUDA device that PyTorch works on"
)
HERE = Path(__file__).parent
LIMIT = 120


def job(ranks, role):
    """What rank 0 prints, line by line."""
    return job_of([], (ranks, [], role))


def job_of(unset, *parts):
    """The same of ranks that are started in several ways: how many, behind which words, and what they do."""
    line = []
    for ranks, words, role in parts:
        # An exception that nobody catches ends the job.
        program = [sys.executable, "-m", "mpi4py", str(HERE / "mpi_ranks.py"), role]
        line += [*([":"] if line else []), "-n", str(ranks), *words, *program]
    done = launched(line, LIMIT, unset)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "done", done.stdout
    return lines[:-1]


def launched(line, limit, unset=()):
    """The job that mpiexec runs of a line, which hangs if it takes more seconds than `limit`."""
    beside = Path(sys.executable).with_name("mpiexec")
    launcher = str(beside) if beside.exists() else shutil.which("mpiexec")
    assert launcher is not None, "mpiexec is needed, as of pip install mpich"
    environment = {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")])),
    }
    for name in unset:
        environment.pop(name, None)
    line = [launcher, *line]
    return subprocess.run(line, capture_output=True, text=True, timeout=limit, env=environment, check=False)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_products_are_those_of_scipy(ranks):
    job(ranks, "products")


@pytest.mark.parametrize("ranks", [1, 3])
def test_gradients_are_those_of_dense_matrices(ranks):
    job(ranks, "gradients")


@pytest.mark.parametrize("role", ["communicators", "errors", "moved", "scattered", "gpu", "another_mpi"])
def test_ranks(role):
    job(3, role)


# Without mpi4py, whose import changes what ends a job.
GIVES_UP = """
import numpy as np
import scipy.sparse as sp
import gustav.mpi as gm
ranks = gm.Ranks()
assert ranks._native.is_ours and ranks._native.takes_threads
a = gm.DistCsr(ranks, sp.csr_array(np.ones((2, 2 * ranks.size))))
if ranks.rank == 1:
    raise KeyError("of this rank alone") if {raises} else ranks.abort(3)
gm.spmm(a, np.ones((2, 3)))
"""


@pytest.mark.parametrize("raises", [True, False])
def test_a_rank_that_gives_up_alone_ends_the_job(raises):
    done = launched(["-n", "3", sys.executable, "-c", GIVES_UP.format(raises=raises)], 60)
    assert done.returncode != 0
    if raises:
        assert "KeyError: 'of this rank alone'" in done.stderr
        assert "rank 1 ends the job after KeyError" in done.stderr


# Whoever catches the exception of a defect does not keep the others waiting.
PANICS = """
import numpy as np
import scipy.sparse as sp
import gustav.mpi as gm
ranks = gm.Ranks()
a = gm.DistCsr(ranks, sp.csr_array(np.ones((2, 2 * ranks.size))))
if ranks.rank == 1:
    try:
        ranks._native._panic()
    except RuntimeError:
        print("survives")
gm.spmm(a, np.ones((2, 3)))
"""


def test_a_defect_on_one_rank_ends_the_job():
    if not hasattr(_gustav.Ranks, "_panic"):
        pytest.skip("a build for tests can panic, others cannot")
    done = launched(["-n", "3", sys.executable, "-c", PANICS], 60)
    assert done.returncode != 0
    assert "survives" not in done.stdout
    assert "rank 1: internal error in gustav, which is a defect of it: on purpose" in done.stderr


@needs_gpu
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_products_and_gradients_on_a_shared_gpu(ranks):
    job(ranks, "on_gpu")


@needs_gpu
def test_ranks_on_a_gpu():
    job(2, "refused_on_gpu")


def test_ranks_whose_environments_differ():
    variables = ["GUSTAV_NUM_THREADS", "OMP_NUM_THREADS", "RAYON_NUM_THREADS"]
    job_of(variables, (1, ["env", "OMP_NUM_THREADS=1"], "threads"), (1, [], "threads"))


def test_losses_of_a_gcn_are_those_of_one_rank():
    one, four = (np.array([line.split() for line in job(n, "losses")], float) for n in (1, 4))
    assert one.shape == four.shape == (2, 12)
    in_f64, in_f32 = np.abs(four / one - 1).max(1)
    assert in_f64 < 1e-11
    assert in_f32 < 1e-5
    assert (one[:, -1] < 0.5 * one[:, 0]).all()
