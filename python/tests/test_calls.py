"""Eager calls skip PyTorch's dispatcher: what has to see them sees them, and both ways give the same."""

import subprocess
import sys

import gustav
import pytest
import torch
from tensors import DEVICES, Seen, made, random

import gustav.torch as gt
from gustav.torch import _calls
from gustav.torch.pyg import graph_attention


@pytest.fixture(autouse=True, params=DEVICES)
def device(request):
    """Each test on each device; not within `torch.device`, which is a mode."""
    global P, V, X, CALLS
    with torch.device(request.param):
        P, V, _ = made(7, 5)
        square, u, _ = made(5, 5)
        X, z, s = random(5, 3), random(7, 3), random(P.nnz)
        q, k = random(7, 2, 3), random(5, 2, 3)
        h, att = random(5, 2, 3), (random(2, 3), random(1, 2, 3))
    # Most calls find their plans.
    for found, transpose in ((X, False), (z, True)):
        gt.spmm(P, V.detach(), found.detach(), transpose=transpose)
    CALLS = {
        "spmm": (lambda: gt.spmm(P, V, X), (V, X)),
        "spmm of the transpose": (lambda: gt.spmm(P, V, z, transpose=True), (V, z)),
        "spmm mean of ones": (lambda: gt.spmm(P, None, X, reduce="mean"), (X,)),
        "spmm max": (lambda: gt.spmm(P, V, X, reduce="max"), (V, X)),
        "sddmm": (lambda: gt.sddmm(P, z, X), (z, X)),
        "softmax": (lambda: gt.softmax(P, s), (s,)),
        "attention": (lambda: gt.attention(P, q, k, k, bias=s), (q, k, s)),
        "graph attention": (lambda: graph_attention(square, h, *att), (h, *att)),
        "spgemm": (lambda: gt.spgemm(P, V, square, u)[1], (V, u)),
    }
    yield request.param


NAMES = (
    "spmm",
    "spmm of the transpose",
    "spmm mean of ones",
    "spmm max",
    "sddmm",
    "softmax",
    "attention",
    "graph attention",
    "spgemm",
)


def gradients(call, inputs):
    """The result, its gradients, and theirs."""
    y = call()
    first = torch.autograd.grad(y.square().sum(), inputs, create_graph=True)
    second = torch.autograd.grad(sum(g.square().sum() for g in first), inputs)
    return y, *first, *second


@pytest.mark.parametrize("name", NAMES)
def test_both_ways_give_the_same(name):
    call, inputs = CALLS[name]
    direct = gradients(call, inputs)
    with Seen() as seen:
        registered = gradients(call, inputs)
    assert seen.names
    for one, two in zip(direct, registered, strict=True):
        torch.testing.assert_close(one, two, rtol=0.0, atol=0.0)
    with torch.no_grad():
        torch.testing.assert_close(call(), direct[0].detach(), rtol=0.0, atol=0.0)
    assert direct[0].requires_grad and not call().detach().requires_grad


def test_inference_mode():
    expected = gt.spmm(P, V, X).detach()
    with torch.inference_mode():
        y = gt.spmm(P, V, X)
        assert y.is_inference()
        torch.testing.assert_close(y, expected)
        torch.testing.assert_close(gt.spmm(P, V.clone(), X.clone()), expected)


def test_profilers_see_operators():
    with torch.profiler.profile() as profile:
        gt.spmm(P, V, X)
    assert "gustav::spmm" in {event.name for event in profile.events()}


def test_tensors_that_are_more_than_their_memory():
    values, x = V.detach(), X.detach()
    negative = torch.complex(x, x).conj().imag
    assert negative.is_neg()
    torch.testing.assert_close(gt.spmm(P, values, negative), gt.spmm(P, values, -x))
    zero = torch._efficientzerotensor(x.shape, dtype=x.dtype, device=x.device)
    assert not gt.spmm(P, values, zero).any()
    with pytest.raises(TypeError, match="x: expected a dense tensor"):
        gt.spmm(P, values, x.to_sparse_csr())


def test_negative_views_where_no_operator_is(tmp_path):
    values, x = V.detach(), X.detach()
    arrays, negative = (P.crow, P.col), torch._neg_view(values)
    of_transpose, order = P.transposed()
    other = (of_transpose.crow, of_transpose.col, values[order], of_transpose.shape)
    matrix, expected = ((*arrays, v, P.shape) for v in (negative, -values))
    torch.testing.assert_close(gustav.spgemm(matrix, other).data, gustav.spgemm(expected, other).data)
    torch.testing.assert_close(gustav.spmm(matrix, torch._neg_view(x)), gustav.spmm(expected, -x))
    plan = gustav.plan_spmm(matrix, x.shape[1])
    torch.testing.assert_close(plan.execute(None, x), plan.execute(-values, x))
    with pytest.raises(ValueError, match="out: a negative view"):
        plan.execute(values, x, torch._neg_view(x.new_zeros(P.shape[0], x.shape[1])))
    gustav.write(tmp_path / "a.mtx", (*(t.cpu() for t in arrays), torch._neg_view(values.cpu()), P.shape))
    written = torch.from_numpy(gustav.read(tmp_path / "a.mtx").toarray()).to(x)
    torch.testing.assert_close(written @ x, -gt.spmm(P, values, x))


def test_hooks_that_put_negative_views_in_place_of_what_was_saved():
    x = X.detach().clone().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: -t, torch._neg_view):
        hooked = torch.autograd.grad(gt.spmm(P, V, x).sum(), [V, x])
    torch.testing.assert_close(hooked, torch.autograd.grad(gt.spmm(P, V, x).sum(), [V, x]))


def test_tensors_that_were_taken_out_of_transforms():
    taken = []
    x = X.detach()
    torch.func.grad(lambda t: (taken.append(t.detach()), t.sum())[1])(x)
    torch.testing.assert_close(gt.spmm(P, V.detach(), taken[0]), gt.spmm(P, V.detach(), x))


def test_exports_without_dynamo_of_transforms():
    values = V.detach()

    class Batched(torch.nn.Module):
        def forward(self, x):
            return torch.vmap(lambda t: gt.spmm(P, values, t))(x)

    x = torch.stack([X.detach(), 2 * X.detach()])
    program = torch.export.export(Batched(), (x,), strict=False)
    assert "gustav.spmm" in program.graph_module.code
    torch.testing.assert_close(program.module()(x), Batched()(x))


class Named(torch.Tensor):
    """A tensor of a class of the program's."""


def test_tensors_of_other_classes_stay_what_they_are():
    x = X.detach().as_subclass(Named)
    y = gt.spmm(P, V.detach(), x)
    assert type(y) is Named
    torch.testing.assert_close(y.as_subclass(torch.Tensor), gt.spmm(P, V.detach(), X.detach()))
    parameter = torch.nn.Parameter(X.detach())
    gt.spmm(P, V.detach(), parameter).sum().backward()
    assert parameter.grad.shape == X.shape


@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning", "ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_a_traced_function_has_the_operator():
    values, x = V.detach(), X.detach()
    traced = torch.jit.trace(lambda x: gt.spmm(P, values, x), x, check_trace=False)
    assert "gustav::spmm" in str(traced.graph)
    torch.testing.assert_close(traced(2 * x), gt.spmm(P, values, 2 * x))


def test_tensors_elsewhere_than_in_host_memory_go_by_the_dispatcher():
    here, there = torch.empty(1, device="cpu"), torch.empty(1, device="meta")
    assert _calls._way((here, 1)) == (_calls._BY_DISPATCHER if gt._eager.eager is None else _calls._STRAIGHT)
    assert _calls._way((here, there)) == _calls._BY_DISPATCHER


def test_names_of_pytorch_that_are_missing():
    code = """
import torch
del torch._C._dispatch_tls_is_dispatch_key_excluded
import gustav.torch as gt
assert gt._eager.eager is None
P = gt.Pattern(torch.tensor([0, 2, 3]), torch.tensor([0, 2, 1]), (2, 3))
values, x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.ones(3, 1)
y = gt.spmm(P, values, x)
y.sum().backward()
print(y.ravel().tolist(), values.grad.tolist())
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ended.stdout == "[3.0, 3.0] [1.0, 1.0, 1.0]\n", ended.stderr


def test_a_call_below_autograd_records_nothing():
    with torch._C._AutoDispatchBelowAutograd():
        assert not gt.spmm(P, V, X).requires_grad
