"""Several products of one pattern at once."""

import gustav.torch as gt
import pytest
import torch
from tensors import DEVICES, F64, checked, made, random



@pytest.fixture(autouse=True, params=DEVICES)
def device(request):
    """Each test on each device."""
    global P, V, ROW, COLUMN
    with torch.device(request.param):
        P, V, full = made(7, 5)
        ROW, COLUMN = full.to_sparse().indices()
        yield request.param


def matrices(values):
    """The matrices with these values, with or without a batch."""
    full = torch.zeros(*values.shape[:-1], 7, 5, dtype=values.dtype)
    full[..., ROW, COLUMN] = values
    return full


@pytest.mark.parametrize(
    ("of_values", "of_x"), [((), ()), ((), (1,)), ((1,), ()), ((1,), (1,)), ((), (2,)), ((2,), ()), ((2,), (2,))]
)
@pytest.mark.parametrize("transpose", [False, True])
def test_products_and_gradients(of_values, of_x, transpose, device):
    v, x = random(*of_values, P.nnz), random(*of_x, 7 if transpose else 5, 3)
    a = matrices(v.detach())
    expected = (a.mT if transpose else a) @ x
    torch.testing.assert_close(gt.spmm(P, v, x, transpose=transpose), expected)
    q, k = random(*of_values, 7, 3), random(*of_x, 5, 3)
    torch.testing.assert_close(gt.sddmm(P, q, k), (q @ k.mT)[..., ROW, COLUMN])
    assert checked(lambda v, x: gt.spmm(P, v, x, transpose=transpose), v, x)
    assert checked(lambda v, x: gt.spmm(P, v, x, transpose=transpose, reduce="mean"), v, x)
    assert checked(lambda q, k: gt.sddmm(P, q, k), q, k)
    # On a GPU max and min take no transposed pattern.
    for reduce in ("max", "min") if device == "cpu" or not transpose else ():
        found = gt.spmm(P, v, x, transpose=transpose, reduce=reduce)
        assert found.shape == expected.shape


def test_a_batch_is_one_plan():
    pattern, v, _ = made(7, 5)
    gt.spmm(pattern, v, random(4, 5, 3)).sum().backward()
    gt.sddmm(pattern, random(4, 7, 3), random(5, 3))
    # The product and both of its gradients, the one of the values over all of the batch; and the last.
    assert len(pattern._plans) == 4


def views(batch, rows, columns):
    """A batch whose matrices lie side by side, one above the other, or neither, by rows or by columns."""
    yield random(batch, rows, columns).detach()
    yield random(rows, batch, columns).detach().transpose(0, 1)
    yield random(columns, batch, rows).detach().permute(1, 2, 0)
    yield random(batch, columns, rows).detach().mT
    yield random(rows, batch, columns + 2).detach()[..., 1:-1].transpose(0, 1)
    yield random(rows, batch * columns + 2).detach()[:, 1:-1].unflatten(1, (batch, columns)).transpose(0, 1)
    yield random(2 * batch, rows, columns).detach()[::2]
    yield random(batch, rows, 1).detach().expand(-1, -1, columns)
    yield random(rows, columns).detach().expand(batch, -1, -1)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("columns", [1, 4])
def test_layouts(batch, columns):
    values = random(batch, P.nnz).detach()
    for v in (values, values[0], random(P.nnz, batch).detach().T):
        for x in views(batch, 5, columns):
            torch.testing.assert_close(gt.spmm(P, v, x), matrices(v) @ x)
        for x in views(batch, 7, columns):
            torch.testing.assert_close(gt.spmm(P, v, x, transpose=True), matrices(v).mT @ x)
    for q in views(batch, 7, columns):
        for k in views(batch, 5, columns):
            torch.testing.assert_close(gt.sddmm(P, q, k), (q @ k.mT)[..., ROW, COLUMN])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_other_types(dtype):
    v, x = random(3, P.nnz).detach().to(dtype), random(3, 5, 4).detach().to(dtype)
    found = gt.spmm(P, v, x)
    assert found.dtype == dtype
    expected = matrices(v.to(F64)) @ x.to(F64)
    torch.testing.assert_close(found.to(F64), expected, rtol=0.02, atol=0.02)


def test_empty_batches_and_operands():
    assert gt.spmm(P, torch.empty(0, P.nnz, dtype=F64), random(5, 3)).shape == (0, 7, 3)
    assert gt.sddmm(P, torch.empty(0, 7, 3, dtype=F64), random(5, 3)).shape == (0, P.nnz)
    assert gt.softmax(P, torch.empty(0, P.nnz, dtype=F64)).shape == (0, P.nnz)
    assert gt.spmm(P, random(2, P.nnz), torch.empty(5, 0, dtype=F64)).shape == (2, 7, 0)
    assert not gt.sddmm(P, random(2, 7, 0), random(2, 5, 0)).any()
    assert gt.spmm(P, V, torch.empty(5, 0, dtype=F64)).shape == (7, 0)
    none = gt.Pattern(torch.zeros(1, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), (0, 5))
    assert gt.spmm(none, torch.empty(0, dtype=F64), random(5, 3)).shape == (0, 3)
    assert gt.spmm(none, torch.empty(2, 0, dtype=F64), random(5, 3)).shape == (2, 0, 3)


def network(pattern, v, x):
    h = torch.relu(gt.spmm(pattern, v, x))
    scores = gt.softmax(pattern, gt.sddmm(pattern, h, x))
    return gt.spmm(pattern, scores, h, transpose=True).square().sum()


def test_compiled_in_one_graph_for_any_size():
    torch.compiler.reset()
    compiled = torch.compile(network, fullgraph=True)
    for batch in (2, 3, 5):
        for v in (V, random(batch, P.nnz)):
            x = random(batch, 5, 3)
            for one, two in zip(
                torch.autograd.grad(compiled(P, v, x), (v, x)),
                torch.autograd.grad(network(P, v, x), (v, x)),
                strict=True,
            ):
                torch.testing.assert_close(one, two)


def test_batches_of_other_sizes_are_refused():
    x, values = random(5, 5, 3), random(1, P.nnz)
    for call in (
        lambda: gt.spmm(P, values, x),
        lambda: gt.spmm(P, random(4, P.nnz), x),
        lambda: gt.spmm(P, V, x[None]),
        lambda: gt.spmm(P, values, x, reduce="max"),
        lambda: gt.sddmm(P, random(2, 7, 3), random(3, 5, 3)),
    ):
        with pytest.raises(ValueError, match="batch"):
            call()
