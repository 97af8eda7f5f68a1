"""Products of PyTorch's tensors: values, gradients and their gradients, compilation, autocast."""

import copy
import io
import pickle

import gustav
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import sparse
from tensors import F64, checked, made, random
from torch.library import opcheck

import gustav.torch as gt
from gustav.torch import pyg
from gustav.torch._pattern import positions

P, V, FULL = made(7, 5)


@pytest.mark.parametrize("reduce", ["sum", "mean"])
@pytest.mark.parametrize("transpose", [False, True])
def test_spmm_and_gradients(reduce, transpose):
    x = random(7 if transpose else 5, 3)
    op = FULL.T if transpose else FULL
    counts = (op != 0).sum(1, keepdim=True).clamp(min=1) if reduce == "mean" else 1
    torch.testing.assert_close(gt.spmm(P, V, x, reduce=reduce, transpose=transpose), op @ x / counts)

    def product(v, x):
        return gt.spmm(P, v, x, reduce=reduce, transpose=transpose)

    assert checked(product, V, x)
    assert checked(lambda x: product(None, x), x)
    assert checked(product, V, x[:, 0].detach().clone().requires_grad_())


def test_softmax_and_gradients():
    for s in (random(P.nnz), random(3, P.nnz)):
        assert checked(lambda s: gt.softmax(P, s), s)
        row = torch.repeat_interleave(torch.arange(7), P.crow.diff())
        sums = torch.zeros(*s.shape[:-1], 7, dtype=F64).index_add(-1, row, gt.softmax(P, s))
        torch.testing.assert_close(sums, (P.crow.diff() > 0).to(F64).expand_as(sums))
    large = torch.tensor([1e4, 1e4 + 1.0], dtype=F64)
    two = gt.Pattern(torch.tensor([0, 2]), torch.tensor([0, 1]), (1, 2))
    torch.testing.assert_close(gt.softmax(two, large), torch.tensor([0.0, 1.0], dtype=F64).softmax(0))
    none = gt.Pattern(torch.zeros(3, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), (2, 3))
    assert gt.softmax(none, torch.zeros(0)).shape == (0,)


@pytest.mark.parametrize("reduce", ["max", "min"])
@pytest.mark.parametrize("transpose", [False, True])
def test_extrema_and_gradients(reduce, transpose):
    x = random(7 if transpose else 5, 3)
    op = FULL.T if transpose else FULL
    products = op[:, :, None] * x
    worst = -torch.inf if reduce == "max" else torch.inf
    products = torch.where(op[:, :, None] != 0, products, worst)
    expected = products.amax(1) if reduce == "max" else products.amin(1)
    expected = torch.where(expected.isinf(), 0.0, expected)

    def product(v, x):
        return gt.spmm(P, v, x, reduce=reduce, transpose=transpose)

    torch.testing.assert_close(product(V, x), expected)
    torch.testing.assert_close(
        torch.autograd.grad(product(V, x).sum(), x), torch.autograd.grad(expected.sum(), x)
    )
    assert checked(product, V, x)
    assert checked(lambda x: product(None, x), x)
    assert checked(product, random(2, P.nnz), x)
    compiled = torch.compile(product, fullgraph=True, backend="aot_eager")
    for one, two in zip(
        torch.autograd.grad(compiled(V, x).sum(), (V, x)),
        torch.autograd.grad(product(V, x).sum(), (V, x)),
        strict=True,
    ):
        torch.testing.assert_close(one, two)


def test_extrema_take_the_first_of_equals_and_nan():
    ones = gt.Pattern(torch.tensor([0, 3, 3]), torch.tensor([2, 0, 1]), (2, 3))
    x = torch.tensor([[1.0], [1.0], [1.0]], requires_grad=True)
    gt.spmm(ones, None, x, reduce="max").sum().backward()
    assert x.grad.ravel().tolist() == [0.0, 0.0, 1.0]
    y = gt.spmm(ones, None, torch.tensor([[1.0], [torch.nan], [2.0]]), reduce="min")
    assert y[0].isnan() and y[1] == 0.0
    empty = gt.Pattern(torch.zeros(3, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), (2, 3))
    v = torch.zeros(0, requires_grad=True)
    gt.spmm(empty, v, x, reduce="max").sum().backward()
    assert v.grad.shape == (0,)


def test_sddmm_and_gradients():
    q, k = random(7, 4), random(5, 4)
    row, column = FULL.to_sparse().indices()
    torch.testing.assert_close(gt.sddmm(P, q, k), (q @ k.T)[row, column])
    assert checked(lambda q, k: gt.sddmm(P, q, k), q, k)


def test_spgemm_and_gradients():
    q, w, other = made(5, 6)
    product, values = gt.spgemm(P, V, q, w)
    full = torch.sparse_csr_tensor(product.crow, product.col, values.detach(), product.shape)
    torch.testing.assert_close(full.to_dense(), FULL @ other)
    assert gt.spgemm(P, V, q, w)[0] is product
    assert checked(lambda v, w: gt.spgemm(P, v, q, w)[1], V, w)
    square, u, _ = made(6, 6)
    assert checked(lambda u: gt.spgemm(square, u, square, u)[1], u)


def test_spgemm_of_unsorted_rows_and_its_gradients():
    unsorted = gt.Pattern(torch.tensor([0, 3, 4]), torch.tensor([2, 0, 1, 1]), (2, 3))
    empty_row = gt.Pattern(torch.tensor([0, 2, 2, 3]), torch.tensor([3, 1, 0]), (3, 4))
    v, w = random(4), random(3)
    assert checked(lambda v, w: gt.spgemm(unsorted, v, empty_row, w)[1], v, w)
    twice = gt.Pattern(torch.tensor([0, 2]), torch.tensor([1, 1]), (1, 2))
    with pytest.raises(ValueError, match="two entries are in one position"):
        gt.spgemm(twice, random(2), gt.Pattern(torch.tensor([0, 1, 1]), torch.tensor([0]), (2, 1)), random(1))


@settings(max_examples=25)
@given(st.data())
def test_gradients_of_any_matrix(data):
    a = data.draw(sparse(formats=("csr",)))
    pattern = gt.Pattern(torch.from_numpy(a.indptr), torch.from_numpy(a.indices), a.shape)
    v = torch.from_numpy(a.data).requires_grad_()
    x = torch.randn(a.shape[1], 3, dtype=F64, requires_grad=True)
    y = gt.spmm(pattern, v, x)
    row = torch.from_numpy(np.repeat(np.arange(a.shape[0]), np.diff(a.indptr)))
    column = torch.from_numpy(a.indices).long()
    reference = torch.zeros(a.shape[0], 3, dtype=F64).index_add(0, row, v[:, None] * x[column])
    torch.testing.assert_close(y, reference)
    for one, two in zip(
        torch.autograd.grad(y.square().sum(), (v, x)),
        torch.autograd.grad(reference.square().sum(), (v, x)),
        strict=True,
    ):
        torch.testing.assert_close(one, two)


def test_gradients_are_values():
    """No gradient has rows × columns elements, and that of a large matrix can be had."""
    n = 1 << 20
    index = torch.arange(n)
    pattern = gt.Pattern(torch.arange(n + 1), index, (n, n))
    v = torch.ones(n, requires_grad=True)
    gt.spmm(pattern, v, torch.ones(n, 1)).sum().backward()
    assert v.grad.shape == (n,) and v.grad.layout == torch.strided and bool((v.grad == 1).all())


# What opcheck itself does.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
def test_operators_are_registered_as_pytorch_wants_them():
    q, w, _ = made(5, 6)
    product, _ = gt.spgemm(P, V, q, w)
    ops, x, z = torch.ops.gustav, random(5, 3), random(7, 3)
    for op, arguments in [
        (ops.spmm, (P._handle, 7, V, x, False)),
        (ops.spmm, (P._handle, 5, V, z, True)),
        (ops.spmm, (P._handle, 7, None, x, False)),
        (ops.spmm, (P._handle, 7, random(2, P.nnz), x, False)),
        (ops.sddmm, (P._handle, P.nnz, z, x)),
        (ops.spgemm_at, (product._handle, product.nnz, P._handle, V, False, q._handle, w, False)),
        (ops.inverse_lengths, (P._handle, 7, x, False)),
        (ops.inner_indices, (P._handle, P.nnz, x, False)),
        (ops.softmax, (P._handle, random(2, P.nnz))),
        (ops.softmax_gradient, (P._handle, V, V)),
        (ops.spmm_extremum, (P._handle, 7, P.nnz, V, x, False, "max")),
        (ops.spmm_extremum, (P._handle, 5, P.nnz, None, z, True, "min")),
    ]:
        assert set(opcheck(op.default, arguments).values()) == {"SUCCESS"}


def network(pattern, v, x):
    h = torch.relu(gt.spmm(pattern, v, x, reduce="mean"))
    scores = gt.sddmm(pattern, h, x)
    return gt.spmm(pattern, scores, h, transpose=True).square().sum()


def test_compiled_in_one_graph_for_any_shape_and_pattern():
    torch.compiler.reset()
    compiled = torch.compile(network, fullgraph=True)
    cases = [made(rows, 5 + rows % 4) for rows in range(4, 16)]
    for pattern, v, _ in cases:
        for n in (3, 4):
            x = random(pattern.shape[1], n)
            for one, two in zip(
                torch.autograd.grad(compiled(pattern, v, x), (v, x)),
                torch.autograd.grad(network(pattern, v, x), (v, x)),
                strict=True,
            ):
                torch.testing.assert_close(one, two)


def test_spgemm_compiled():
    torch.compiler.reset()
    q, w, _ = made(5, 6)

    def product(v, w):
        pattern, values = gt.spgemm(P, v, q, w)
        return gt.spmm(pattern, values, torch.ones(6, 2, dtype=F64)).sum()

    expected = torch.autograd.grad(product(V, w), (V, w))
    found = torch.autograd.grad(torch.compile(product, fullgraph=True)(V, w), (V, w))
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype):
    v, x = V.detach().float().requires_grad_(), random(5, 3, dtype=torch.float32)
    with torch.autocast("cpu", dtype=dtype):
        y = gt.spmm(P, v, x)
        s = gt.sddmm(P, y, x)
    assert y.dtype == s.dtype == dtype
    y.sum().backward()
    assert v.grad.dtype == x.grad.dtype == torch.float32
    torch.testing.assert_close(y.double(), FULL @ x.double(), rtol=0.05, atol=0.05)


def test_autocast_leaves_what_pytorch_leaves():
    x, s = random(5, 3), random(P.nnz, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (x.T @ x).dtype == gt.spmm(P, V, x).dtype == gt.sddmm(P, random(7, 3), x).dtype == F64
        assert gt.attention(P, random(7, 3), x, x).dtype == F64
        assert torch.softmax(s, 0).dtype == gt.softmax(P, s).dtype == torch.float32
    torch.testing.assert_close(gt.softmax(P, s), gt.softmax(P, s.double()).float())


def test_saved_tensors_that_change_are_an_error():
    v, x = V.detach().clone().requires_grad_(), random(5, 3)
    y = gt.spmm(P, v, x).sum()
    with torch.no_grad():
        x.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_pattern_that_the_program_drops_lives_until_the_backward_pass():
    pattern, v, full = made(6, 5)
    x = random(5, 2)
    y = gt.spmm(pattern, v, x).sum()
    del pattern
    y.backward()
    torch.testing.assert_close(x.grad, full.T @ torch.ones(6, 2, dtype=F64))


def test_layouts_of_tensors():
    x = random(5, 8).detach()
    for view in (x.T.contiguous().T, x[:, 2:5], x[:, ::2], x[:, :1].expand(5, 4), x.flip(0)):
        torch.testing.assert_close(gt.spmm(P, V.detach(), view), FULL @ view)


def test_patterns_are_the_same_from_every_format():
    full = FULL.detach()
    x = random(5, 3).detach()
    for t in (full.to_sparse_csr(), full.to_sparse_csc(), full.to_sparse()):
        pattern = gt.Pattern.from_sparse(t)
        values = t.coalesce().values() if t.layout == torch.sparse_coo else t.values()
        if pattern.permutation is not None:
            values = values[pattern.permutation]
        torch.testing.assert_close(gt.spmm(pattern, values, x), full @ x)
    for index in (torch.int32, torch.int64):
        pattern = gt.Pattern(P.crow.to(index), P.col.to(index), P.shape)
        assert pattern.col.dtype == index
        torch.testing.assert_close(gt.spmm(pattern, V, x), FULL @ x)


def test_patterns_are_copied_pickled_and_saved():
    x = random(5, 3).detach()
    expected = gt.spmm(P, V, x)
    assert copy.deepcopy(P) is P and copy.copy(P) is P
    back = pickle.loads(pickle.dumps(P))
    assert back is not P and back.shape == P.shape
    torch.testing.assert_close(gt.spmm(back, V, x), expected)
    file = io.BytesIO()
    torch.save({"pattern": P}, file)
    file.seek(0)
    back = torch.load(file, weights_only=False)["pattern"]
    torch.testing.assert_close(gt.spmm(back, V, x), expected)


def test_a_pattern_that_borrows_its_indices():
    crow, col = P.crow, P.col
    pattern = gt.Pattern(crow, col, P.shape, copy=False)
    x = random(5, 3).detach()
    del crow, col
    torch.testing.assert_close(gt.spmm(pattern, V, x), FULL @ x)


def test_the_transpose_is_planned_once():
    pattern, v, full = made(6, 5)
    g, x = random(6, 3), random(5, 3)
    for _ in range(3):
        torch.testing.assert_close(gt.spmm(pattern, v, g, transpose=True), full.T @ g)
        torch.autograd.grad(gt.spmm(pattern, v, x).sum(), (v, x))
    of_transpose = [key for key in pattern._plans if key[2:4] == (True, "sum")]
    assert len(of_transpose) == 1
    assert pattern.transposed() is pattern.transposed()


class Columns(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, k):
        return gt.spmm(P, V.detach(), torch.full((5, 2), float(k), dtype=F64))


def test_threads_that_are_set_later_reach_a_pattern():
    before = gustav.get_num_threads()
    pattern, v, full = made(6, 5)
    x = random(5, 2).detach()
    try:
        for count in (2, 1, 3):
            gustav.set_num_threads(count)
            torch.testing.assert_close(gt.spmm(pattern, v, x), full @ x)
            gt.softmax(pattern, gt.sddmm(pattern, full @ x, x))
            gt.attention(pattern, full @ x, x, x)
            threads = {key[-1] for key in pattern._plans if isinstance(key, tuple)}
            assert count in threads
            plan = pattern._spmm_plan(2, F64, False, "sum")
            assert f"{count} thread" in plan.explain()
    finally:
        gustav.set_num_threads(before)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_of_a_data_loader():
    loader = torch.utils.data.DataLoader(Columns(), batch_size=2, num_workers=2, timeout=60)
    found = torch.cat(list(loader))
    ones = FULL.detach() @ torch.ones(5, 2, dtype=F64)
    torch.testing.assert_close(found, torch.stack([k * ones for k in range(6)]))


def test_functions_without_gradients_take_tensors():
    x = random(5, 3).detach()
    for t in (FULL.to_sparse_csr(), FULL.to_sparse_csc(), FULL.to_sparse()):
        y = gustav.spmm(t, x)
        assert isinstance(y, torch.Tensor)
        torch.testing.assert_close(y, FULL @ x)
        for other in (FULL.T.to_sparse_csr(), FULL.T.to_sparse_csc()):
            c = gustav.spgemm(t, other)
            torch.testing.assert_close(c.to_dense(), FULL @ FULL.T)
    s = gustav.sddmm(FULL.to_sparse_csr(), random(7, 3).detach(), x)
    torch.testing.assert_close(s, gt.sddmm(P, random(7, 3), x).detach())
    half = FULL.to(torch.bfloat16).to_sparse_csr()
    assert gustav.spmm(half, x.to(torch.bfloat16)).dtype == torch.bfloat16
    assert gustav.spgemm(half, half.to_dense().T.to_sparse_csr()).values().dtype == torch.bfloat16
    with pytest.raises(TypeError, match=r"gustav\.torch does"):
        gustav.spmm(FULL.to_sparse_csr(), random(5, 3))


def test_elements_that_are_not_aligned_are_copied():
    x = torch.frombuffer(bytearray(121), dtype=F64, count=15, offset=1).reshape(5, 3)
    x.copy_(random(5, 3))
    torch.testing.assert_close(gt.spmm(P, V, x), gt.spmm(P, V, x.clone()))
    with pytest.raises(ValueError, match="elements are not aligned"):
        gt.spmm(P, V, torch.nn.Parameter(x))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: gt.spmm(P, V, random(4, 3)), ValueError, "x: expected 5 in dimension -2"),
        (lambda: gt.spmm(P, V[1:], random(5, 3)), ValueError, "values: expected"),
        (lambda: gt.spmm(P, V, random(5, 3, dtype=torch.float32)), TypeError, "give all in one type"),
        (lambda: gt.spmm(P, V, random(5, 3), reduce="product"), ValueError, "sum, mean, max, min"),
        (lambda: gt.sddmm(P, random(7, 3), random(5, 4)), ValueError, "k: expected 3 in dimension -1"),
        (lambda: gt.spmm(P, V.to("meta"), random(5, 3)), ValueError, "give all on one"),
        (lambda: gt.Pattern(torch.tensor([0, 1]), torch.tensor([3]), (1, 3)), ValueError, "index 3"),
        (lambda: gt.Pattern(torch.tensor([0, 1]), torch.tensor([-1]), (1, 3)), ValueError, "-1 is negative"),
        (lambda: gt.Pattern.from_sparse(FULL), TypeError, "sparse CSR, CSC and COO"),
        (lambda: gt.Pattern.from_edge_index(torch.zeros(3, 2, dtype=torch.int64)), ValueError, "2 x edges"),
        (lambda: gt.Pattern.from_edge_index(torch.zeros(2, 3)), TypeError, "edge_index: .*float32 are not taken"),
        (lambda: gt.Pattern.from_edge_index([[0], [0]]), TypeError, "edge_index: expected a tensor .*found list"),
        (lambda: gt.Pattern.from_edge_index(torch.tensor([[0], [0]]), (1.5, 2)), TypeError, "size: expected two"),
        (lambda: gt.Pattern(torch.tensor([0, 1]), torch.tensor([0]), (1.5, 2)), TypeError, "size: expected two"),
        (lambda: gt.Pattern(torch.tensor([0, 1]), torch.tensor([0]), (1, -2)), ValueError, "size: -2 is negative"),
        (lambda: gt.Pattern(np.array([0, 1]), torch.tensor([0]), (1, 2)), TypeError, "crow: .*torch.from_numpy"),
        (lambda: gt.Pattern.from_sparse(np.eye(2)), TypeError, "t: expected a tensor .*found ndarray"),
        (lambda: gt.spmm(None, None, random(5, 3)), TypeError, "gustav.torch.Pattern before x, found NoneType"),
        (lambda: gt.spmm(P, None, np.ones((5, 3))), TypeError, "x: expected a tensor .*torch.from_numpy"),
        (lambda: gt.spmm(P, np.ones(3), random(5, 3)), TypeError, "values: expected a tensor"),
        (lambda: gt.spmm(P, None, random(5, 3).to("meta")), NotImplementedError, "x: tensors on meta are not taken"),
        (lambda: gt.sddmm(P, random(7, 3), np.ones((5, 3))), TypeError, "k: expected a tensor"),
        (lambda: gt.spgemm(P, V, P, None), TypeError, "values_b: expected a tensor"),
        (lambda: gt.softmax(P, np.ones(3)), TypeError, "values: expected a tensor"),
        (lambda: gt.attention(P, np.ones((7, 2)), None, None), TypeError, "q: expected a tensor"),
        (lambda: gt.attention(P, random(7, 2), random(5, 2), random(5, 2), bias=[1.0]), TypeError, "bias: expected a"),
        (lambda: pyg.spmm(np.zeros((2, 1)), random(5, 3)), TypeError, "src: expected a tensor"),
        (
            lambda: gt.Pattern.from_edge_index(torch.tensor([[0], [4]]), (2, 2)),
            ValueError,
            "expected 0 to 1",
        ),
        (lambda: gt.softmax(P, V[1:]), ValueError, "values: expected"),
        (lambda: gt.softmax(P, torch.ones(P.nnz, dtype=torch.int64)), TypeError, "floating-point"),
        (lambda: torch.ops.gustav.spmm(10**9, 7, V, random(5, 3), False), RuntimeError, "is gone"),
    ],
)
def test_misuse(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda t: gt.spmm(P, V.detach(), t(5, 3)),
        lambda t: gt.spmm(P, V.detach(), t(3, 5, view=torch.t)),
        lambda t: gt.spmm(P, V.detach(), t(6, 3, view=lambda x: x[1:])),
        lambda t: gt.spmm(P, t(P.nnz), torch.ones(5, 3, dtype=F64)),
        lambda t: gt.softmax(P, t(P.nnz)),
        lambda t: gt.attention(P, t(7, 2, 2), torch.ones(5, 2, 2, dtype=F64), torch.ones(5, 2, 2, dtype=F64)),
        lambda t: gustav.spmm(FULL.detach().to_sparse_csr(), t(5, 3)),
        lambda t: gustav.plan_spmm(FULL.detach().to_sparse_csr(), 3).execute(None, t(5, 3)),
    ],
)
@pytest.mark.parametrize("held", [0, 2])
def test_a_storage_that_was_shrunk_is_not_read(call, held):
    call(lambda *shape, view=torch.clone: view(torch.ones(shape, dtype=F64)))

    def t(*shape, view=torch.clone):
        made = view(torch.ones(shape, dtype=F64))
        made.untyped_storage().resize_(held * made.element_size())
        return made

    with pytest.raises(ValueError, match="storage of .* bytes, which does not hold it"):
        call(t)


def test_gradients_of_spgemm_where_positions_are_more_than_64_bits_count():
    a = gt.Pattern(torch.tensor([0, 0, 1, 2, 3, 4]), torch.tensor([1, 2, 3, 4]), (5, 5))
    b = gt.Pattern(torch.arange(6), torch.tensor([0, 0, 2**61, 0, 0]), (5, 2**62))
    of_a, of_b = torch.ones(4, dtype=F64), torch.ones(5, dtype=F64, requires_grad=True)
    gt.spgemm(a, of_a, b, of_b)[1].sum().backward()
    assert of_b.grad.tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]
    columns = torch.unique(b.inner_indices(False))
    numbers = b.positions(columns).tolist()
    assert numbers == sorted(set(numbers)) and len(numbers) == 5


def test_positions_that_64_bits_do_not_count_even_so():
    two, one = torch.tensor([3, 9]), torch.tensor([2**62 - 1])
    with pytest.raises(NotImplementedError, match="nearest that works: .*detach"):
        positions(2**62, two, one, torch.tensor([9]))
    assert positions(2**62, two[:1], one, torch.tensor([3])).tolist() == [2**62 - 1]


def test_message_passing_in_inference_mode():
    with torch.inference_mode():
        edges = torch.tensor([[0, 1], [1, 0]])
        x = torch.tensor([[1.0], [2.0]])
        for _ in range(3):
            assert pyg.spmm(edges, x).tolist() == [[2.0], [1.0]]


def test_empty_tensors_are_learnt():
    empty = torch.zeros(3, 4).to_sparse_csr()
    for _ in range(4):
        assert gustav.spmm(empty, torch.ones(4, 2)).tolist() == [[0.0, 0.0]] * 3


def test_message_passing():
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(0, 20, (2, 90), generator=generator)
    weight, x = random(90), random(20, 4)
    summed = torch.zeros(20, 4, dtype=F64).index_add(0, edges[1], weight[:, None] * x[edges[0]])
    counts = torch.bincount(edges[1], minlength=20).clamp(min=1)[:, None]
    index = edges[1][:, None].expand(-1, 4)
    products = weight[:, None] * x[edges[0]]
    largest = torch.zeros(20, 4, dtype=F64).scatter_reduce(0, index, products, "amax", include_self=False)
    for reduce, expected in (
        ("sum", summed),
        ("add", summed),
        ("mean", summed / counts),
        ("max", largest),
    ):
        y = pyg.spmm(edges, x, reduce, edge_weight=weight)
        torch.testing.assert_close(y, expected)
        for one, two in zip(
            torch.autograd.grad(y.square().sum(), (weight, x)),
            torch.autograd.grad(expected.square().sum(), (weight, x), retain_graph=True),
            strict=True,
        ):
            torch.testing.assert_close(one, two)
    adjacency = torch.sparse_coo_tensor(edges.flip(0), weight.detach(), (20, 20))
    for t in (adjacency, adjacency.to_sparse_csr(), adjacency.to_sparse_csc()):
        torch.testing.assert_close(pyg.spmm(t, x), summed)


def test_an_edge_index_that_changes_is_learnt_anew():
    edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
    x = torch.eye(3)
    torch.testing.assert_close(pyg.spmm(edges, x), x[[2, 0, 1]])
    kept = len(pyg._learnt)
    pyg.spmm(edges, x)
    assert len(pyg._learnt) == kept
    edges[0, 0] = 2
    torch.testing.assert_close(pyg.spmm(edges, x), x[[2, 2, 1]])
    del edges
    assert len(pyg._learnt) == kept - 1
