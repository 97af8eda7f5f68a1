"""The layer of graph convolutional networks, beside products of dense matrices."""

import pytest
import torch
from tensors import DEVICES, F64, Seen, check_replays, made, random, same
from torch.autograd import gradcheck, gradgradcheck
from torch.library import opcheck
from torch.nn.functional import linear

import gustav.torch as gt
from gustav.torch import pyg
from gustav.torch._graph_convolution import is_product_first

TARGETS, SOURCES = 9, 12
# Features before and after the linear map: with either order of the two products.
WIDTHS = [(7, 4), (4, 7), (5, 5)]


@pytest.fixture(autouse=True, params=DEVICES)
def device(request):
    """Each test on each device."""
    with torch.device(request.param):
        yield request.param


def layer(of_in, of_out, dtype=F64):
    """Features, weight and bias."""
    return random(SOURCES, of_in, dtype=dtype), random(of_out, of_in, dtype=dtype), random(of_out, dtype=dtype)


def dense(full, values, pattern):
    """The matrix as a function of its values."""
    row, col = pattern._arrays()[0].diff(), pattern.col.long()
    return torch.zeros_like(full).index_put((torch.arange(full.shape[0]).repeat_interleave(row), col), values)


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("dtype", [F64, torch.float32])
def test_values_and_gradients_are_those_of_dense_products(widths, dtype):
    pattern, values, full = made(TARGETS, SOURCES, dtype=dtype)
    x, weight, bias = layer(*widths, dtype=dtype)
    close = dict(rtol=1e-4, atol=1e-5) if dtype == torch.float32 else {}
    inputs = (values, x, weight, bias)
    # The first call makes the plans, the second finds them.
    for _ in range(2):
        found = pyg.graph_convolution(pattern, x, weight, bias, edge_weight=values)
        same(found, linear(dense(full, values, pattern) @ x, weight, bias), inputs, **close)
        without = pyg.graph_convolution(pattern, x, weight, edge_weight=values)
        same(without, linear(dense(full, values, pattern) @ x, weight), inputs[:3], **close)
    ones = dense(full, torch.ones_like(values), pattern)
    same(pyg.graph_convolution(pattern, x, weight, bias), linear(ones @ x, weight, bias), inputs[1:], **close)


def test_a_convolution_is_one_operator_and_its_products():
    pattern, values, _ = made(TARGETS, SOURCES)
    x, weight, _ = layer(5, 3)
    with Seen() as seen:
        torch.autograd.grad(pyg.graph_convolution(pattern, x, weight, edge_weight=values).sum(), (values, x, weight))
    assert seen.names == {"graph_convolution", "spmm", "sddmm"}


@pytest.mark.parametrize("widths", WIDTHS)
def test_gradients_and_theirs_are_differences(widths):
    pattern, values, _ = made(TARGETS, SOURCES)
    inputs = values, *layer(*widths)

    def convolution(values, x, weight, bias):
        return pyg.graph_convolution(pattern, x, weight, bias, edge_weight=values)

    # cuBLAS adds in an order that may differ from run to run.
    assert gradcheck(convolution, inputs, nondet_tol=1e-12)
    assert gradgradcheck(convolution, inputs, nondet_tol=1e-12)


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("of", [(0,), (1,), (2,), (3,), (0, 2), (1, 3)])
def test_some_gradients_are_those_of_all(widths, of):
    pattern, values, _ = made(TARGETS, SOURCES)
    all_of_them = [values, *layer(*widths)]
    given = [t if k in of else t.detach() for k, t in enumerate(all_of_them)]

    def gradients(operands, wanted):
        values, *others = operands
        y = pyg.graph_convolution(pattern, *others, edge_weight=values)
        return torch.autograd.grad(y.square().sum(), wanted)

    expected = gradients(all_of_them, all_of_them)
    for place, found in zip(of, gradients(given, [given[k] for k in of]), strict=True):
        torch.testing.assert_close(found, expected[place])


def test_the_order_of_fewer_operations():
    x, weight = random(SOURCES, 6), random(4, 6)
    assert not is_product_first(x, weight)
    assert is_product_first(random(SOURCES, 3), random(4, 3))
    # Without a gradient of the features their order saves the product of the backward pass.
    assert is_product_first(x.detach(), weight)
    assert not is_product_first(x.detach(), weight.detach())
    with torch.no_grad():
        assert not is_product_first(x.detach(), weight)


def test_no_features_are_saved_that_no_gradient_needs():
    pattern, values, _ = made(TARGETS, SOURCES)
    x, weight, _ = layer(7, 4)
    saved = []

    def pack(t):
        saved.append(tuple(t.shape))
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        pyg.graph_convolution(pattern, x, weight, edge_weight=values.detach())
    assert sorted(saved) == sorted([tuple(values.shape), tuple(x.shape), tuple(weight.shape)])


def test_weights_in_the_order_of_an_edge_index():
    source, target = torch.randint(0, SOURCES, (2, 30), generator=torch.Generator("cpu").manual_seed(1), device="cpu")
    edges = torch.stack((source, target)).to(torch.get_default_device())
    edge_weight, (x, weight, bias) = random(30), layer(5, 3)
    full = torch.zeros(SOURCES, SOURCES, dtype=F64).index_put((edges[1], edges[0]), edge_weight, accumulate=True)
    expected = linear(full @ x, weight, bias)
    inputs = (edge_weight, x, weight, bias)
    found = pyg.graph_convolution(edges, x, weight, bias, edge_weight=edge_weight, size=(SOURCES, SOURCES))
    same(found, expected, inputs)
    pattern = gt.Pattern.from_edge_index(edges, (SOURCES, SOURCES))
    same(pyg.graph_convolution(pattern, x, weight, bias, edge_weight=edge_weight), expected, inputs)


def test_a_sparse_tensor_has_its_values():
    _, _, full = made(TARGETS, SOURCES)
    x, weight, bias = layer(5, 3)
    for t in (full.to_sparse_csr(), full.to_sparse_coo()):
        torch.testing.assert_close(
            pyg.graph_convolution(t, x, weight, bias), linear(full @ x, weight, bias)
        )


def test_a_batch_of_weights_in_the_order_of_an_edge_index():
    edges = torch.tensor([[1, 2, 0], [2, 0, 1]])
    of_edges, (x, weight) = random(3, 3), (random(3, 4), random(2, 4))
    full = torch.zeros(3, 3, 3, dtype=F64)
    full[:, edges[1], edges[0]] = of_edges.detach()
    torch.testing.assert_close(pyg.graph_convolution(edges, x, weight, edge_weight=of_edges), linear(full @ x, weight))
    torch.testing.assert_close(pyg.spmm(edges, x, edge_weight=of_edges), full @ x)


def test_batches_lead():
    pattern, values, full = made(TARGETS, SOURCES)
    x, weight, bias = random(2, SOURCES, 5), random(3, 5), random(3)
    full = dense(full, values, pattern)
    found = pyg.graph_convolution(pattern, x, weight, bias, edge_weight=values)
    same(found, linear(full @ x, weight, bias), (values, x, weight, bias))
    of_values = torch.stack((values, 2.0 * values))
    found = pyg.graph_convolution(pattern, x[0], weight, bias, edge_weight=of_values)
    torch.testing.assert_close(found, linear(torch.stack((full, 2.0 * full)) @ x[0], weight, bias))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("widths", WIDTHS)
def test_16_bits(dtype, widths, device):
    pattern, values, full = made(TARGETS, SOURCES)
    x, weight, bias = layer(*widths)
    expected = linear(full @ x, weight, bias)
    close = dict(rtol=0.06, atol=0.12)
    given = [t.to(dtype) for t in (x, weight, bias)]
    found = pyg.graph_convolution(pattern, *given, edge_weight=values.to(dtype))
    assert found.dtype == dtype
    torch.testing.assert_close(found.to(F64), expected, **close)
    with torch.autocast(device, dtype=dtype), Seen() as seen:
        found = pyg.graph_convolution(pattern, *(t.float() for t in (x, weight, bias)), edge_weight=values.float())
    assert "graph_convolution" in seen.names
    assert found.dtype == dtype
    torch.testing.assert_close(found.to(F64), expected, **close)


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("create_graph", [False, True])
def test_autocast_that_begins_after_the_forward_pass(widths, create_graph, device):
    pattern, values, _ = made(TARGETS, SOURCES, dtype=torch.float32)
    inputs = values, *layer(*widths, dtype=torch.float32)
    y = pyg.graph_convolution(pattern, *inputs[1:], edge_weight=values).square().sum()
    expected = torch.autograd.grad(y, inputs, retain_graph=True)
    with torch.autocast(device, dtype=torch.bfloat16):
        found = torch.autograd.grad(y, inputs, create_graph=create_graph)
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two)


def test_a_storage_that_was_shrunk():
    pattern, values, _ = made(TARGETS, SOURCES)
    for widths in WIDTHS:
        for place in range(3):
            operands = [t.detach().clone() for t in layer(*widths)]
            operands[place].untyped_storage().resize_(8)
            with pytest.raises(ValueError, match="a storage of 8 bytes"):
                pyg.graph_convolution(pattern, *operands, edge_weight=values)


def test_nothing_to_sum():
    pattern, values, _ = made(TARGETS, SOURCES)
    for of_in, of_out in ((0, 3), (3, 0), (0, 0)):
        x, weight, bias = layer(of_in, of_out)
        y = pyg.graph_convolution(pattern, x, weight, bias, edge_weight=values)
        torch.testing.assert_close(y, bias.expand(TARGETS, of_out))
        assert [t.shape for t in torch.autograd.grad(y.sum(), (x, weight, bias))] == [x.shape, weight.shape, bias.shape]
    none = gt.Pattern(torch.zeros(TARGETS + 1, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), (TARGETS, SOURCES))
    x, weight, bias = layer(5, 3)
    y = pyg.graph_convolution(none, x, weight, bias, edge_weight=torch.zeros(0, dtype=F64))
    torch.testing.assert_close(y, bias.expand(TARGETS, 3))


# What opcheck itself does.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.parametrize("product_first", [False, True])
def test_the_operator_is_registered_as_pytorch_wants_it(product_first):
    pattern, values, _ = made(TARGETS, SOURCES)
    of = torch.ops.gustav.graph_convolution.default
    x, weight, bias = layer(5, 3)
    for given in ((values, x, weight, bias), (None, x, weight, None)):
        assert set(opcheck(of, (pattern._handle, TARGETS, *given, product_first)).values()) == {"SUCCESS"}


def test_a_step_that_a_graph_replays(device):
    if device == "cpu":
        pytest.skip("graphs are of a GPU")
    pattern, values, _ = made(TARGETS, SOURCES, dtype=torch.float32)
    inputs = values, *layer(5, 3, dtype=torch.float32)

    def step():
        values, *others = inputs
        y = pyg.graph_convolution(pattern, *others, edge_weight=values)
        return y.detach(), *torch.autograd.grad(y.square().sum(), inputs)

    check_replays(step, inputs)


@pytest.mark.parametrize("widths", WIDTHS)
def test_compiled_in_one_graph(widths):
    torch.compiler.reset()
    pattern, values, _ = made(TARGETS, SOURCES)
    x, weight, bias = layer(*widths)

    def of(values, x, weight, bias):
        return pyg.graph_convolution(pattern, x, weight, bias, edge_weight=values)

    inputs = (values, x, weight, bias)
    same(torch.compile(of, fullgraph=True)(*inputs), of(*inputs), inputs)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (dict(x=lambda: random(SOURCES)), ValueError, "x: expected nodes x features"),
        (dict(x=lambda: random(SOURCES + 1, 5)), ValueError, "x: expected 12 in dimension -2"),
        (dict(weight=lambda: random(3, 4)), ValueError, "weight: expected out x 5"),
        (dict(weight=lambda: random(5)), ValueError, "weight: expected out x 5"),
        (dict(weight=lambda: [[1.0]]), TypeError, "weight: expected a tensor"),
        (dict(bias=lambda: random(4)), ValueError, "bias: expected 3 elements"),
        (dict(bias=lambda: random(3, dtype=torch.float32)), TypeError, "give all in one type"),
        (dict(edge_weight=lambda: random(3)), ValueError, "edge_weight: expected"),
        (dict(edge_weight=lambda: random(1, 1, made(TARGETS, SOURCES)[0].nnz)), ValueError, "edge_weight: expected 1 dim"),
        (dict(x=lambda: torch.ones(SOURCES, 5, dtype=F64).to_sparse()), TypeError, "x: expected a dense tensor"),
        (dict(src=lambda: [[0], [1]]), TypeError, "src: expected a tensor"),
        (dict(src=lambda: torch.eye(12, dtype=F64).to_sparse_csr()), ValueError, "a sparse tensor has its own values"),
    ],
)
def test_misuse(change, error, text):
    pattern, values, _ = made(TARGETS, SOURCES)
    x, weight, bias = layer(5, 3)
    arguments = dict(src=pattern, x=x, weight=weight, bias=bias, edge_weight=values)
    for _ in range(2):
        with pytest.raises(error, match=text):
            pyg.graph_convolution(**{**arguments, **{name: make() for name, make in change.items()}})
        pyg.graph_convolution(**arguments)


def test_integers_are_refused():
    pattern, values, _ = made(TARGETS, SOURCES)
    x, weight = (torch.ones(shape, dtype=torch.int64) for shape in ((SOURCES, 5), (3, 5)))
    with pytest.raises(TypeError, match="floating-point types are"):
        pyg.graph_convolution(pattern, x, weight, edge_weight=torch.ones(values.shape, dtype=torch.int64))
