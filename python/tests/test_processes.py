"""Threads, forked children, other processes, and memory that changes hands."""

import gc
import itertools
import multiprocessing
import os
import subprocess
import sys
import threading
import weakref

import gustav
import numpy as np
import pytest
import scipy.sparse as sp

A = sp.random_array((3000, 3000), density=0.01, format="csr", rng=0)
B = np.random.default_rng(1).standard_normal((3000, 8))
EXPECTED = A @ B


def product_and_plan(plan):
    """Whether a product and a plan of the parent work here, and on how many threads."""
    right = np.allclose(gustav.spmm(A, B), EXPECTED) and np.allclose(plan.execute(None, B), EXPECTED)
    c = gustav.spgemm(A[:50], A)
    return right and np.allclose(c.toarray(), (A[:50] @ A).toarray()), gustav.get_num_threads()


def in_child(work):
    """The exit status of `work` in a forked child that has a minute."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 3)
        finally:
            os._exit(4)
    ended = threading.Event()

    def wait():
        status.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        ended.set()

    status = []
    threading.Thread(target=wait, daemon=True).start()
    if not ended.wait(60):
        os.kill(child, 9)
        ended.wait(60)
    return status[0]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_after_the_threads_have_started():
    gustav.set_num_threads(2)
    plan = gustav.plan_spmm(A, 8)
    assert product_and_plan(plan) == (True, 2)
    assert in_child(lambda: product_and_plan(plan) == (True, 1)) == 0

    def with_threads():
        gustav.set_num_threads(2)
        return product_and_plan(plan) == (True, 2)

    assert in_child(with_threads) == 0
    # The child took nothing from the parent.
    assert product_and_plan(plan) == (True, 2)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forgets_plans_that_a_thread_may_have_been_executing():
    torch = pytest.importorskip("torch")
    import gustav.torch as gt
    from gustav import _memory

    gustav.set_num_threads(1)
    pattern = gt.Pattern(torch.from_numpy(A.indptr), torch.from_numpy(A.indices), A.shape)
    values, b = torch.from_numpy(A.data), torch.from_numpy(B)
    for _ in range(3):
        gustav.spmm(A, B)
        gt.spmm(pattern, values, b)

    def forgotten():
        plans = [learnt.planned for learnt in _memory._learnt.values()]
        is_found = finds_plan()
        return not any((*plans, pattern._plans, is_found)) and np.allclose(gt.spmm(pattern, values, b), EXPECTED)

    def finds_plan():
        eager = pattern._eager
        return eager is not None and eager.product(values, b, False, pattern, None) is not None

    assert finds_plan() or pattern._eager is None
    assert pattern._plans and any(learnt.planned for learnt in _memory._learnt.values())
    assert in_child(lambda: forgotten() and product_and_plan(gustav.plan_spmm(A, 8))[0]) == 0
    assert pattern._plans


def worker(_):
    return bool(np.allclose(gustav.spmm(A, B, threads=2), EXPECTED))


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_pools_of_processes(method):
    assert gustav.spmm(A, B).shape == EXPECTED.shape
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert all(pool.map_async(worker, range(4)).get(timeout=120))


def test_threads_share_a_plan_and_other_threads_run_meanwhile():
    plan = gustav.plan_spmm(A, 8)
    wrong = []

    def work(factor):
        for _ in range(20):
            if not np.allclose(plan.execute(factor * A.data, B), factor * EXPECTED):
                wrong.append(factor)
            if not np.allclose(gustav.spmm(A, B, alpha=factor), factor * EXPECTED):
                wrong.append(-factor)

    threads = [threading.Thread(target=work, args=(k,)) for k in (1.0, 2.0, 3.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


LONG = """
import glob, os, signal, tempfile, threading
import gustav, numpy as np

# A shell ignores it for what runs in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Zeros that were never written take no memory.
nnz, columns = 2**26, 1024
indptr = np.arange(0, nnz + 1, nnz // 4)
a = (indptr, np.zeros(nnz, np.int32), np.zeros(nnz), (4, 1))
b, out = np.ones((1, columns)), np.zeros((4, columns))
{before}
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    {call}
except KeyboardInterrupt:
    running = [open(name).read().strip() for name in glob.glob("/proc/self/task/*/comm")]
    print("ended", "early" if "gustav product" in running else "late")
# Without the product, which has more to do.
import sys
sys.stdout.flush()
os._exit(0)
"""


ATTENTION = """
from gustav import _gustav
gustav.set_num_threads(1)
pattern = _gustav.Pattern(*a[:2], (4, 1), copy=False)
plan = _gustav.AttentionPlan(pattern, 1, 256, 256, "float64")
q, k, o, lse = np.ones((4, 256)), np.ones((1, 256)), np.zeros((4, 256)), np.zeros(4)
of_q, of_k, of_v = np.zeros_like(q), np.zeros_like(k), np.zeros_like(k)
"""

SPGEMM = """
from gustav import _gustav
gustav.set_num_threads(1)
# Sixteen full blocks, which few nonzeros have many products in.
rows, length = 2**13, 512
columns_of_blocks = np.arange(rows).reshape(-1, 1, length)
indices = np.broadcast_to(columns_of_blocks, (rows // length, length, length)).ravel()
pattern = _gustav.Pattern(np.arange(0, rows * length + 1, length), indices, (rows, rows))
plan = _gustav.SpgemmPlan(pattern, pattern, None, "float64", 1)
values = np.ones(rows * length)
"""


# Indices of a pattern that is longer than what a product of it would take.
PATTERN = """
from gustav import _gustav
gustav.set_num_threads(1)
length = 2**30
indptr, indices = np.array([0, length]), np.zeros(length, np.int64)
"""

# A file that nobody writes.
PIPE = """
path = os.path.join(tempfile.mkdtemp(), "a.mtx")
os.mkfifo(path)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the names of threads are read from /proc")
@pytest.mark.parametrize(
    ("before", "call"),
    [
        ("", "gustav.spmm(a, b, out=out, threads=1)"),
        ("gustav.set_num_threads(1); plan = gustav.plan_spmm(a, columns)", "plan.execute(a[2], b, out)"),
        (ATTENTION, "plan.execute_into(q, k, k, o, lse, None, None)"),
        (ATTENTION, "plan.gradients_into(q, k, k, o, lse, q, of_q, of_k, of_v, None, None)"),
        (SPGEMM, "plan.execute(values, values)"),
        (PATTERN, "_gustav.Pattern(indptr, indices, (1, 1), copy=False)"),
        (PIPE, "gustav.read(path)"),
    ],
    ids=["spmm", "planned spmm", "attention", "gradients of attention", "planned spgemm", "pattern", "read"],
)
def test_ctrl_c_ends_a_long_call(before, call):
    program = LONG.format(before=before, call=call)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.stdout == "ended early\n", done.stderr


FORKED = """
import glob, os, pathlib, signal, sys, threading, time
import gustav, numpy as np

nnz, columns = 2**26, 1024
a = (np.arange(0, nnz + 1, nnz // 4), np.zeros(nnz, np.int32), np.zeros(nnz), (4, 1))
b, out = np.ones((1, columns)), np.zeros((4, columns))
gustav.set_num_threads(1)
plan = gustav.plan_spmm(a, columns)
threading.Thread(target=plan.execute, args=(a[2], b, out), daemon=True).start()

def multiplies(task):
    # The thread has the plan when it has computed for some ticks of the clock.
    try:
        name, _, numbers = pathlib.Path(task).read_text().partition("(")[2].rpartition(")")
    except FileNotFoundError:
        return False
    return name == "gustav product" and int(numbers.split()[11]) >= 5

while not any(map(multiplies, glob.glob("/proc/self/task/*/stat"))):
    time.sleep(0.01)
child = os.fork()
if child == 0:
    # A child that waits for the thread that it does not have is ended.
    signal.alarm(60)
    try:
        plan.execute(a[2], b, np.zeros((4, columns)))
    except RuntimeError as error:
        print(error)
    few = (np.array([0, 1]), np.array([0]), np.array([2.0]), (1, 1))
    print(gustav.plan_spmm(few, 1).execute(None, np.ones((1, 1))).item())
    sys.stdout.flush()
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the names of threads are read from /proc")
def test_a_fork_while_another_thread_executes_a_plan():
    said = run("import warnings\nwarnings.simplefilter('ignore')\n" + FORKED).splitlines()
    assert "make the plan anew" in said[0] and said[1:] == ["2.0", "0"]


def test_threads_of_openmp_beside_ours():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    x = torch.randn(300, 300)
    expected, wrong = x @ x, []

    def multiply():
        for _ in range(20):
            if not torch.allclose(x @ x, expected):
                wrong.append("torch")
            if not np.allclose(gustav.spmm(A, B, threads=2), EXPECTED):
                wrong.append("gustav")

    threads = [threading.Thread(target=multiply) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.set_num_threads(before)
    assert wrong == []


@pytest.mark.parametrize("name", ["indptr", "indices", "data", "b", "out"])
def test_an_array_that_another_thread_resizes(name):
    arrays = {
        "indptr": A.indptr.copy(),
        "indices": A.indices.copy(),
        "data": A.data.copy(),
        "b": np.ones((3000, 64)),
        "out": np.zeros((3000, 64)),
    }
    expected = A @ arrays["b"]
    length, rest = arrays[name].shape[0], arrays[name].shape[1:]
    stop = threading.Event()

    def resize():
        lengths = itertools.cycle((2 * length, length))
        wanted = next(lengths)
        while not stop.is_set():
            try:
                arrays[name].resize((wanted, *rest))
                wanted = next(lengths)
            except ValueError:
                # NumPy refuses what somebody holds, as a product does.
                pass

    thread = threading.Thread(target=resize)
    thread.start()
    for _ in range(100):
        try:
            a = (arrays["indptr"], arrays["indices"], arrays["data"], A.shape)
            gustav.spmm(a, arrays["b"], out=arrays["out"])
        except ValueError as error:
            # Of the other size between two products, never within one.
            assert f"{2 * length}" in str(error)
        del a
    stop.set()
    thread.join()
    arrays[name].resize((length, *rest))
    a = (arrays["indptr"], arrays["indices"], arrays["data"], A.shape)
    np.testing.assert_allclose(gustav.spmm(a, arrays["b"], out=arrays["out"]), expected)


def test_results_keep_their_memory_and_give_it_back():
    c = gustav.spgemm(A, A)
    data = c.data
    expected = data.copy()
    base = data
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    del c, base
    gc.collect()
    churn = [gustav.spgemm(A, A).data for _ in range(3)]
    np.testing.assert_array_equal(data, expected)
    gone = weakref.ref(churn[0])
    del churn
    gc.collect()
    assert gone() is None


def run(code, **environment):
    """What a new interpreter prints."""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_the_environment_says_how_many_threads():
    code = "import gustav; print(gustav.get_num_threads())"
    plain = {"GUSTAV_NUM_THREADS": "", "OMP_NUM_THREADS": ""}
    assert run(code, **{**plain, "OMP_NUM_THREADS": "3"}) == "3"
    assert run(code, **{**plain, "OMP_NUM_THREADS": "2,4"}) == "2"
    assert run(code, GUSTAV_NUM_THREADS="1", OMP_NUM_THREADS="3") == "1"


def test_numpy_is_all_that_is_imported():
    code = """
import sys, numpy as np, gustav
found = gustav.spmm((np.array([0, 1]), np.array([1]), np.array([2.0]), (1, 2)), np.ones((2, 1)))
assert found == 2.0
print(sorted({"scipy", "torch", "cupy", "jax", "ml_dtypes", "torch_geometric"} & set(sys.modules)))
"""
    assert run(code) == "[]"


def test_the_command():
    def command(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "gustav._command", *arguments],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    said = command("--version")
    assert (said.returncode, said.stdout) == (0, f"gustav {gustav.__version__}\n")
    said = command("spmm", "gen:grid5:20x20", "--columns", "4", "--verify")
    assert said.returncode == 0, said.stderr
    said = command("info", "nowhere.mtx")
    assert said.returncode == 2 and said.stderr.startswith("gustav: cannot read nowhere.mtx")


def test_the_version_is_that_of_the_workspace():
    import re
    from pathlib import Path

    cargo = (Path(__file__).parents[2] / "Cargo.toml").read_text()
    assert f'version = "{gustav.__version__}"' in re.findall(r'version = "[^"]*"', cargo)
