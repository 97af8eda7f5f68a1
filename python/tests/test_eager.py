"""Products of tensors that are nothing but their memory, which are made without functions in Python: the same, and all
others are left to Python."""

import contextlib

import gustav
import pytest
import torch
from tensors import DEVICES, made, random
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import gustav.torch as gt
from gustav.torch import _calls, _eager, _graph_convolution, pyg

pytestmark = pytest.mark.skipif(_eager.eager is None, reason="this version of PyTorch cannot be asked by the module")

ROWS, COLUMNS, WIDTH = 7, 5, 3


@pytest.fixture(autouse=True, params=DEVICES)
def device(request):
    """Each test on each device; not within `torch.device`, which is a mode."""
    global P, V, X
    with torch.device(request.param):
        P, values, _ = made(ROWS, COLUMNS)
        V, X = values.detach(), random(COLUMNS, WIDTH).detach()
    yield request.param


def found(values, x, transpose=False, pattern=None):
    return (pattern or P)._eager.product(values, x, transpose, P, None)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("layout", ["rows", "columns", "block", "shifted"])
def test_products_are_those_of_python(dtype, transpose, layout):
    inner = ROWS if transpose else COLUMNS
    whole = torch.randn(inner + 2, WIDTH + 4, device=V.device).to(dtype)
    x = {
        "rows": whole[:inner, :WIDTH].contiguous(),
        "columns": whole[:inner, :WIDTH].T.contiguous().T,
        "block": whole[:inner, :WIDTH],
        "shifted": whole[2:, 1 : WIDTH + 1],
    }[layout]
    values = V.to(dtype)
    expected = P.spmm(values, x, transpose, ())
    y = found(values, x, transpose)
    assert y.dtype == dtype and y.device == x.device and y.is_contiguous()
    torch.testing.assert_close(y, expected, rtol=0, atol=0)
    torch.testing.assert_close(gt.spmm(P, values, x, transpose=transpose), expected, rtol=0, atol=0)


@pytest.mark.parametrize("widths", [(7, 4), (4, 7)])
@pytest.mark.parametrize("has_bias", [False, True])
def test_convolutions_are_those_of_the_operator(widths, has_bias, monkeypatch):
    features, out = widths
    operands = [V, random(COLUMNS, features), random(out, features), random(out) if has_bias else None]
    operands = [t if t is None else t.detach().to(V.device) for t in operands]
    ways = []
    for way in ("graph_convolution", "_graph_convolution"):
        of = _calls.recorded if way == "graph_convolution" else _graph_convolution
        real = getattr(of, way)
        monkeypatch.setattr(of, way, lambda *a, real=real, way=way: (ways.append(way), real(*a))[1])
    product_first = features < out
    expected = torch.ops.gustav.graph_convolution(P._handle, ROWS, *operands, product_first)[0]
    values, *layer = operands
    y = pyg.graph_convolution(P, *layer, edge_weight=values)
    torch.testing.assert_close(y, expected, rtol=0, atol=0)
    assert ways == ["_graph_convolution"]
    inputs = [t.requires_grad_() for t in operands if t is not None]
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (saved.append(tuple(t.shape)), t)[1], lambda t: t):
        y = pyg.graph_convolution(P, *layer, edge_weight=values)
        of_eager, saved = saved, []
        expected = torch.ops.gustav.graph_convolution(P._handle, ROWS, *operands, product_first)[0]
    assert ways[1:] == ["graph_convolution"] and of_eager == saved
    for one, two in zip(*(torch.autograd.grad(t.square().sum(), inputs) for t in (y, expected)), strict=True):
        torch.testing.assert_close(one, two)


def test_convolutions_that_are_left_to_python():
    values, x, weight, bias = V, random(COLUMNS, 3).detach(), random(2, 3).detach(), random(2).detach()
    x, weight, bias = (t.to(V.device) for t in (x, weight, bias))
    asked = P._eager.is_convolution_recorded
    assert asked(values, x, weight, bias) is False and asked(values, x, weight, None) is False
    for given in (
        (None, x, weight, bias),
        (values[1:], x, weight, bias),
        (values, x[1:], weight, bias),
        (values, x[None], weight, bias),
        (values, x, weight[:, 1:], bias),
        (values, x, weight, bias[1:]),
        (values, x, weight, bias[None]),
        (values, x.float(), weight, bias),
        (values, x, weight.float(), bias),
        (values, x, weight, [1.0, 2.0]),
        tuple(t.long() for t in (values, x, weight, bias)),
    ):
        assert asked(*given) is None
    with torch.autocast(V.device.type):
        assert asked(values, x, weight, bias) is None


class Dispatched(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        return function(*arguments, **(options or {}))


class Functional(TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), options=None):
        return function(*arguments, **(options or {}))


def others():
    """Operands that Python has to look at."""
    shrunk = X.clone()
    shrunk.untyped_storage().resize_(8)
    return {
        "a vector": (V, X[:, 0]),
        "a batch": (V, X.expand(2, -1, -1)),
        "no values": (None, X),
        "too few values": (V[:-1], X),
        "too few rows": (V, X[:-1]),
        "another type": (V, X.float()),
        "no type of values": (V.bool(), X.bool()),
        "every other column": (V, X.repeat_interleave(2, 1)[:, ::2]),
        "every other value": (V.repeat_interleave(2)[::2], X),
        "one row for all": (V, X[:1].expand(COLUMNS, -1)),
        "a negative view": (V, torch._neg_view(X)),
        "zeros without memory": (V, torch._efficientzerotensor(X.shape, dtype=X.dtype, device=X.device)),
        "a sparse tensor": (V, X.to_sparse_csr()),
        "a tensor without memory": (V, X.to("meta")),
        "no tensor": (V, X.cpu().numpy()),
        "a shrunk storage": (V, shrunk),
        "no columns": (V, X[:, :0].clone()),
        "a width without a plan": (V, X[:, :1]),
    }


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_other_operands_are_left_to_python():
    gt.spmm(P, V, X)
    assert found(V, X) is not None
    for name, operands in others().items():
        assert found(*operands) is None, name


def test_calls_that_somebody_sees_are_left_to_python(device):
    gt.spmm(P, V, X)
    seen = {
        "a dispatch mode": Dispatched(),
        "a function mode": Functional(),
        "a profiler": torch.profiler.profile(),
        "tangents": forward_ad.dual_level(),
        "autocast": torch.autocast(device),
    }
    for name, context in seen.items():
        with context:
            assert found(V, X) is None, name
    inner = []
    torch.func.vmap(lambda t: (inner.append(found(V, X)), t)[1])(X)
    torch.func.grad(lambda t: (inner.append(found(V, X)), t.sum())[1])(X)
    assert inner == [None, None]
    assert found(V, X) is not None


def test_a_pattern_elsewhere_is_left_to_python():
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    for one, other in ((P.cpu(), X.cuda()), (P.cuda(), X.cpu())):
        gt.spmm(one, V.to(one.device), X.to(one.device))
        assert found(V.to(other.device), other, pattern=one) is None
        with pytest.raises(ValueError, match="and the pattern on"):
            gt.spmm(one, V.to(other.device), other)


def test_what_is_recorded():
    gt.spmm(P, V, X)
    values, x = V.clone().requires_grad_(), X.clone().requires_grad_()
    assert found(V, x) is None and found(values, X) is None
    with torch.no_grad():
        assert not found(values, x).requires_grad
    for inputs in ((values, X), (V, x), (values, x)):
        y = gt.spmm(P, *inputs)
        assert y.grad_fn.name() == "RecordedSpmmBackward"
        leaves = [t for t in inputs if t.requires_grad]
        # By Python, which has the operator's rules.
        torch.testing.assert_close(
            torch.autograd.grad(y.square().sum(), leaves, retain_graph=True),
            torch.autograd.grad(torch.ops.gustav.spmm(P._handle, ROWS, *inputs, False).square().sum(), leaves),
        )
    # The dense operand is held for the gradient of the values alone.
    of_x, of_both = gt.spmm(P, V, x), gt.spmm(P, values, x)
    assert of_x.grad_fn.saved_tensors[1] is None
    assert of_both.grad_fn.saved_tensors[1] is x


def test_writes_to_what_was_saved_are_noticed():
    values, x = V.clone().requires_grad_(), X.clone()
    gt.spmm(P, V, X)
    y = gt.spmm(P, values, x)
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_plans_of_other_numbers_of_threads(device):
    if device == "cuda":
        pytest.skip("products on a GPU have no threads")
    gt.spmm(P, V, X)
    threads = gustav.get_num_threads()
    with contextlib.ExitStack() as stack:
        stack.callback(gustav.set_num_threads, threads)
        gustav.set_num_threads(threads + 1)
        assert found(V, X) is None
        torch.testing.assert_close(gt.spmm(P, V, X), P.spmm(V, X, False, ()))
        assert found(V, X) is not None


def test_more_plans_than_are_found():
    widths = range(1, 40)
    operands = {width: X[:, :1].repeat(1, width) for width in widths}
    for x in operands.values():
        gt.spmm(P, V, x)
    assert found(V, operands[39]) is not None
    assert found(V, operands[1]) is None
    # It is found again when it was used again.
    gt.spmm(P, V, operands[1])
    assert found(V, operands[1]) is not None
    for width in widths[20:]:
        assert found(V, operands[1]) is not None
        gt.spmm(P, V, operands[width])
    P._eager.clear()
    assert found(V, operands[1]) is None


def forget(pattern, values, x):
    pattern._eager.clear()


def plan_others(pattern, values, x):
    for width in range(10, 40):
        gt.spmm(pattern, values.detach(), x.detach()[:, :1].repeat(1, width))


# What makes a repeated call go another way than the first: how backward is run, and what is done before.
DISTURBANCES = {
    "nothing": (contextlib.nullcontext, lambda *_: None),
    "forgotten plans": (contextlib.nullcontext, forget),
    "other plans": (contextlib.nullcontext, plan_others),
    "a profiler": (torch.profiler.profile, lambda *_: None),
}


@pytest.mark.parametrize("name", DISTURBANCES)
@pytest.mark.parametrize("is_planned", [False, True])
@pytest.mark.parametrize("needs_values", [False, True])
def test_a_repeated_forward_pass_saves_the_same(device, name, is_planned, needs_values):
    within, disturb = DISTURBANCES[name]
    with torch.device(device):
        pattern, values, full = made(COLUMNS, COLUMNS)
    values, x = values.detach().requires_grad_(needs_values), X.clone().requires_grad_()
    if is_planned:
        for transpose in (False, True):
            gt.spmm(pattern, values.detach(), x.detach(), transpose=transpose)
    layer = torch.utils.checkpoint.checkpoint(
        lambda x: gt.spmm(pattern, values, x).tanh(), x, use_reentrant=False
    )
    disturb(pattern, values, x)
    with within():
        (of_x,) = torch.autograd.grad(layer.sum(), x)
    torch.testing.assert_close(of_x, full.T @ (1 - (full @ x).tanh() ** 2))


def test_tensors_without_elements_that_were_taken_out_of_transforms():
    with torch.device(X.device):
        empty = gt.Pattern(torch.tensor([0, 0, 0]), torch.empty(0, dtype=torch.int64), (2, 0))
        values, x = torch.empty(0), torch.empty(0, 3)
    torch.testing.assert_close(gt.spmm(empty, values, x), x.new_zeros(2, 3))
    taken = []
    torch.func.functionalize(lambda t: (taken.append(t), t + 1)[1])(x)
    assert found(values, taken[0], pattern=empty) is None
    assert _eager.is_recorded((taken[0],)) is None


def test_values_may_be_written_that_no_gradient_needs():
    values = V.clone().requires_grad_()
    gt.spmm(P, V, X)
    for _ in range(2):
        y = gt.spmm(P, values, X)
        with torch.no_grad():
            values.mul_(2)
        torch.testing.assert_close(torch.autograd.grad(y.sum(), values)[0], gt.sddmm(P, torch.ones_like(y), X))
