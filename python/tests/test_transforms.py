"""Transforms of functions, and tangents: beside the gradients of autograd, which other tests check."""

import pytest
import torch
from tensors import DEVICES, F64, made
from torch.autograd import forward_ad

import gustav
import gustav.torch as gt
from gustav.torch import pyg

# PyTorch itself calls what it deprecates when tangents are first seen.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is:FutureWarning")

ROWS, COLUMNS = 6, 5


@pytest.fixture(params=DEVICES, autouse=True)
def device(request):
    """Each test on each device."""
    with torch.device(request.param):
        yield


class Patterns:
    """On the device of a test."""

    def __init__(self):
        shapes = ((ROWS, COLUMNS), (COLUMNS, ROWS), (ROWS, ROWS))
        self.p, self.q, self.square = (made(*shape)[0] for shape in shapes)


def _spmm(s, **options):
    return lambda values, x: gt.spmm(s.p, values, x, **options)


#: Of each name, given patterns: a function, and the shapes of what it takes.
FUNCTIONS = {
    "spmm": lambda s: (_spmm(s), [(s.p.nnz,), (COLUMNS, 3)]),
    "spmm of the transpose": lambda s: (_spmm(s, transpose=True), [(s.p.nnz,), (ROWS, 3)]),
    "spmm of ones": lambda s: (lambda x: gt.spmm(s.p, None, x), [(COLUMNS, 3)]),
    "mean": lambda s: (_spmm(s, reduce="mean"), [(s.p.nnz,), (COLUMNS, 3)]),
    "max": lambda s: (_spmm(s, reduce="max"), [(s.p.nnz,), (COLUMNS, 3)]),
    "sddmm": lambda s: (lambda q, k: gt.sddmm(s.p, q, k), [(ROWS, 3), (COLUMNS, 3)]),
    "softmax": lambda s: (lambda scores: gt.softmax(s.p, scores), [(s.p.nnz,)]),
    "attention": lambda s: (
        lambda q, k, v, bias: gt.attention(s.p, q, k, v, bias=bias),
        [(ROWS, 3), (COLUMNS, 3), (COLUMNS, 2), (s.p.nnz,)],
    ),
    "attention with a slope": lambda s: (
        lambda q, k, v: gt.attention(s.p, q, k, v, negative_slope=0.2),
        [(ROWS, 2, 3), (COLUMNS, 2, 3), (COLUMNS, 2, 2)],
    ),
    "graph attention": lambda s: (
        lambda x, of_source, of_target: pyg.graph_attention(s.square, x, of_source, of_target, 0.2),
        [(ROWS, 2, 3), (2, 3), (2, 3)],
    ),
    "graph convolution": lambda s: (
        lambda values, x, weight, bias: pyg.graph_convolution(s.p, x, weight, bias, edge_weight=values),
        [(s.p.nnz,), (COLUMNS, 4), (3, 4), (3,)],
    ),
    "spgemm": lambda s: (lambda a, b: gt.spgemm(s.p, a, s.q, b)[1], [(s.p.nnz,), (s.q.nnz,)]),
}
each = pytest.mark.parametrize("name", FUNCTIONS)


def _random(*shape):
    return torch.randn(*shape, dtype=F64)


def _case(name):
    """A function, what it takes, and other values of that."""
    torch.manual_seed(7)
    f, shapes = FUNCTIONS[name](Patterns())
    return f, tuple(_random(*shape) for shape in shapes), tuple(_random(*shape) for shape in shapes)


def _sum_of_sines(f):
    """A number whose second derivatives are those of f too."""
    return lambda *inputs: f(*inputs).sin().sum()


def _gradients(f, inputs):
    inputs = tuple(t.detach().requires_grad_() for t in inputs)
    return torch.autograd.grad(f(*inputs), inputs)


@each
def test_tangents_are_those_of_two_gradients(name):
    f, inputs, tangents = _case(name)
    expected = torch.autograd.functional.jvp(f, inputs, tangents)[1]
    torch.testing.assert_close(torch.func.jvp(f, inputs, tangents)[1], expected)
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(f(*map(forward_ad.make_dual, inputs, tangents))).tangent
    torch.testing.assert_close(found, expected)
    # A tangent of one operand alone: the others are constants.
    for place, (t, tangent) in enumerate(zip(inputs, tangents, strict=True)):

        def of_one(x, place=place):
            return f(*inputs[:place], x, *inputs[place + 1 :])

        expected = torch.autograd.functional.jvp(of_one, t, tangent)[1]
        torch.testing.assert_close(torch.func.jvp(of_one, (t,), (tangent,))[1], expected)


@each
def test_tangents_of_gradients_that_are_not_recorded(name):
    """A backward pass that records no gradients may carry tangents all the same."""
    f, inputs, tangents = _case(name)
    f, places = _sum_of_sines(f), tuple(range(len(inputs)))
    expected = torch.autograd.functional.jvp(lambda *t: _gradients_of_gradients(f, t), inputs, tangents)[1]
    with torch.no_grad():
        found = torch.func.jvp(torch.func.jacrev(f, places), inputs, tangents)[1]
    torch.testing.assert_close(found, expected)
    with forward_ad.dual_level():
        duals = [forward_ad.make_dual(t.detach().requires_grad_(), of_t) for t, of_t in zip(inputs, tangents, strict=True)]
        of_duals = torch.autograd.grad(f(*duals), duals)
        found = tuple(forward_ad.unpack_dual(t).tangent for t in of_duals)
    torch.testing.assert_close(found, expected)


def _gradients_of_gradients(f, inputs):
    return torch.autograd.grad(f(*inputs), inputs, create_graph=True)


@each
def test_gradients_of_a_function_are_those_of_autograd(name):
    f, inputs, _ = _case(name)
    f, places = _sum_of_sines(f), tuple(range(len(inputs)))
    torch.testing.assert_close(torch.func.grad(f, places)(*inputs), _gradients(f, inputs))


@each
def test_second_derivatives_by_every_order_of_transforms(name):
    f, inputs, tangents = _case(name)
    f, places = _sum_of_sines(f), tuple(range(len(inputs)))
    expected = torch.autograd.functional.hvp(f, inputs, tangents)[1]

    def gradient(*inputs):
        return torch.func.grad(f, places)(*inputs)

    def along(*inputs):
        return torch.func.jvp(f, inputs, tangents)[1]

    torch.testing.assert_close(torch.func.jvp(gradient, inputs, tangents)[1], expected)
    torch.testing.assert_close(torch.func.grad(along, places)(*inputs), expected)
    torch.testing.assert_close(torch.func.vjp(gradient, *inputs)[1](tangents), expected)
    twice = torch.func.jvp(along, inputs, tangents)[1]
    torch.testing.assert_close(twice, sum((e * t).sum() for e, t in zip(expected, tangents, strict=True)))


@each
def test_gradients_of_each_sample(name):
    f, inputs, others = _case(name)
    f, places = _sum_of_sines(f), tuple(range(len(inputs)))
    # The batch of the first operand comes last.
    batch = tuple(torch.stack(pair, -1 if k == 0 else 0) for k, pair in enumerate(zip(inputs, others, strict=True)))
    in_dims = (-1,) + (0,) * (len(inputs) - 1)
    found = torch.vmap(torch.func.grad(f, places), in_dims)(*batch)
    for sample, of_sample in enumerate((inputs, others)):
        torch.testing.assert_close(tuple(g[sample] for g in found), _gradients(f, of_sample))
    # Of one operand alone.
    found = torch.vmap(lambda x: f(x, *inputs[1:]), -1)(batch[0])
    torch.testing.assert_close(found, torch.stack([f(x, *inputs[1:]) for x in (inputs[0], others[0])]))


@each
def test_a_batch_of_nothing(name):
    f, inputs, _ = _case(name)
    shape = f(*inputs).shape
    none = torch.zeros((0, *inputs[0].shape), dtype=F64)
    assert torch.vmap(lambda x: f(x, *inputs[1:]))(none).shape == (0, *shape)
    gradients = torch.vmap(torch.func.grad(lambda x: f(x, *inputs[1:]).sum()))(none)
    assert gradients.shape == none.shape


def test_a_constant_has_no_tangent():
    """Zeros for it would be multiplied with what is infinite."""
    pattern = gt.Pattern(torch.tensor([0, 1, 2]), torch.tensor([0, 1]), (2, 2))
    values, x = torch.tensor([1.0, 2.0]), torch.tensor([[float("inf")], [3.0]])
    for reduce in ("sum", "mean", "max"):
        along = torch.func.jvp(lambda x, r=reduce: gt.spmm(pattern, values, x, reduce=r), (x,), (torch.ones(2, 1),))[1]
        assert along.tolist() == [[1.0], [2.0]]
    along = torch.func.jvp(lambda k: gt.sddmm(pattern, x, k), (torch.ones(2, 1),), (torch.ones(2, 1),))[1]
    assert along.tolist() == [float("inf"), 3.0]


def test_patterns_without_nonzeros():
    pattern = gt.Pattern(torch.zeros(4, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), (3, 4))
    x, values = _random(4, 2), _random(0)
    for reduce in ("sum", "mean", "max"):

        def f(values, x, reduce=reduce):
            return gt.spmm(pattern, values, x, reduce=reduce)

        found = torch.func.jvp(f, (values, x), (values, x))
        assert not found[0].any() and not found[1].any()
        hessian = torch.func.hessian(_sum_of_sines(f), (0, 1))(values, x)
        assert [[tuple(part.shape) for part in row] for row in hessian] == [[(0, 0), (0, 4, 2)], [(4, 2, 0), (4, 2, 4, 2)]]


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
def test_what_has_no_gradient_is_refused():
    """By every order of transforms: a number that loses its tangent, entries of which one gets the gradient of both."""
    pattern, q = made(3, 3)[0], _random(3, 2)
    one = torch.tensor(1.0, dtype=F64)
    for option in ("scale", "negative_slope"):

        def attended(number, option=option):
            return gt.attention(pattern, q, q, q, **{option: number})

        for transformed in (
            lambda: torch.func.jvp(attended, (one,), (one,)),
            lambda: torch.func.grad(lambda s: attended(s).sum())(one),
        ):
            with pytest.raises(NotImplementedError, match=f"{option}.*nearest that works: float"):
                transformed()
    twice = gt.Pattern(torch.tensor([0, 2, 3]), torch.tensor([0, 0, 1]), (2, 2))
    once = gt.Pattern(torch.tensor([0, 1, 2]), torch.tensor([0, 1]), (2, 2))
    a, b = _random(3), _random(2)

    def multiplied(a):
        return gt.spgemm(twice, a, once, b)[1]

    for transformed in (
        lambda: torch.func.grad(lambda a: torch.vmap(multiplied)(a[None]).sum())(a),
        lambda: torch.func.jacrev(torch.func.jacfwd(multiplied))(a),
    ):
        with pytest.raises(ValueError, match="pattern_a: two entries are in one position"):
            transformed()
    compiled = torch.compile(lambda a: torch.vmap(multiplied)(a[None]).sum(), backend="eager")
    multiplied(a)
    with pytest.raises(Exception, match="two entries are in one position|is_unique"):
        compiled(a.requires_grad_()).backward()
    with forward_ad.dual_level(), pytest.raises(TypeError, match=r"has a tangent.*gustav\.torch does"):
        gustav.spmm(torch.eye(3, dtype=F64).to_sparse_csr(), forward_ad.make_dual(q, q))


def test_gradcheck_of_tangents():
    f, inputs, _ = _case("spmm")
    inputs = tuple(t.requires_grad_() for t in inputs)
    assert torch.autograd.gradcheck(f, inputs, check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(f, inputs, check_fwd_over_rev=True, check_rev_over_rev=True)


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace:UserWarning")
def test_tangents_are_not_lost_by_compilers():
    f, inputs, tangents = _case("spmm")

    def along(*inputs):
        return torch.func.jvp(f, inputs, tangents)[1]

    with pytest.raises(torch._dynamo.exc.Unsupported, match="NotImplementedError"):
        torch.compile(along, backend="eager", fullgraph=True)(*inputs)
    torch._dynamo.reset()
    with forward_ad.dual_level():
        duals = tuple(map(forward_ad.make_dual, inputs, tangents))
        found = forward_ad.unpack_dual(torch.compile(f, backend="aot_eager")(*duals)).tangent
    torch.testing.assert_close(found, along(*inputs))
    # Functionalization has no rule for functions of autograd, and none is needed.
    torch.testing.assert_close(torch.func.functionalize(f)(*inputs), f(*inputs))
    with pytest.raises(RuntimeError, match="Functionalize rule"):
        torch.func.jvp(torch.func.functionalize(f), inputs, tangents)


def test_graphs_inside_of_transforms():
    """What is made of a graph is made outside of them, and is not made anew."""
    edge_index = torch.tensor([[1, 2, 0, 1], [0, 0, 2, 1]])
    x = _random(3, 2)

    def gathered(x, edge_index):
        return pyg.spmm(edge_index, x).sin().sum()

    expected = _gradients(lambda x: gathered(x, edge_index), (x,))[0]
    torch.testing.assert_close(torch.func.grad(gathered)(x, edge_index), expected)
    found = torch.vmap(torch.func.grad(gathered), (0, None))(torch.stack((x, x)), edge_index)
    torch.testing.assert_close(found, torch.stack((expected, expected)))
    assert pyg._pattern(edge_index, (3, 3)) is pyg._pattern(edge_index, (3, 3))
    with pytest.raises(NotImplementedError, match="vmap over indices"):
        torch.vmap(gathered)(torch.stack((x, x)), torch.stack((edge_index, edge_index)))

    def of_new_pattern(x):
        pattern = gt.Pattern(torch.tensor([0, 1, 2]), torch.tensor([1, 0]), (2, 2))
        return gt.spmm(gt.spgemm(pattern, x, pattern, x)[0], None, x).sum()

    torch.testing.assert_close(torch.func.grad(of_new_pattern)(_random(2)), torch.ones(2, dtype=F64))
    patterns = []

    def of_transpose(x):
        patterns.append(gt.Pattern.from_edge_index(edge_index, (3, 3)))
        patterns.append(patterns[0].transposed()[0])
        return gt.spmm(patterns[1], None, x).sum()

    torch.func.grad(of_transpose)(x)
    for t in (patterns[0].permutation, patterns[0].transposed()[1]):
        assert not torch._C._functorch.is_functorch_wrapped_tensor(t)


def test_a_pattern_of_edges_in_a_compiled_function():
    pattern = gt.Pattern.from_edge_index(torch.tensor([[1, 2, 0, 1], [0, 0, 2, 1]]))
    weights, x = _random(4).requires_grad_(), _random(3, 2)

    def gathered(weights, x):
        return pyg.spmm(pattern, x, edge_weight=weights)

    found = torch.compile(gathered, backend="eager", fullgraph=True)(weights, x)
    torch.testing.assert_close(found, gathered(weights, x))
