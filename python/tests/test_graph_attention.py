"""The layer of graph attention networks, beside sums over edges."""

import pytest
import torch
from tensors import DEVICES, F64, Seen, check_replays, random, same
from torch.autograd import gradcheck, gradgradcheck
from torch.library import opcheck
from torch.nn.functional import leaky_relu

import gustav.torch as gt
from gustav.torch import pyg

NODES, EDGES, HEADS, FEATURES = 12, 50, 3, 5


@pytest.fixture(autouse=True, params=DEVICES)
def device(request):
    """Each test on each device."""
    with torch.device(request.param):
        yield request.param


def edges_of(sources, targets):
    """Edges to all targets but one."""
    generator = torch.Generator().manual_seed(0)
    source = torch.randint(0, sources, (EDGES,), generator=generator, device="cpu")
    target = torch.randint(1, targets, (EDGES,), generator=generator, device="cpu")
    # Softmax over edges that repeat is of each of them.
    return torch.stack((source, target)).to(torch.get_default_device())


def by_edges(edges, x, att_src, att_dst, negative_slope=0.2):
    of_sources, of_targets = x if isinstance(x, tuple) else (x, x)
    source, target = edges
    scores = (of_sources * att_src).sum(-1)[source] + (of_targets * att_dst).sum(-1)[target]
    weights = leaky_relu(scores, negative_slope).exp()
    sums = torch.zeros(of_targets.shape[:2], dtype=weights.dtype).index_add(0, target, weights)
    weights = weights / sums[target]
    return torch.zeros_like(of_targets).index_add(0, target, weights.unsqueeze(-1) * of_sources[source])


def vectors(dtype=F64):
    return tuple(t.clone().requires_grad_() for t in random(2, 1, HEADS, FEATURES, dtype=dtype).detach())


@pytest.mark.parametrize("slope", [0.2, 0.0, 1.0])
@pytest.mark.parametrize("dtype", [F64, torch.float32])
def test_values_and_gradients_are_those_of_sums_over_edges(slope, dtype):
    edges, x = edges_of(NODES, NODES), random(NODES, HEADS, FEATURES, dtype=dtype)
    att = vectors(dtype)
    close = dict(rtol=1e-4, atol=1e-5) if dtype == torch.float32 else {}
    pattern = gt.Pattern.from_edge_index(edges, (NODES, NODES))
    expected = by_edges(edges, x, *att, slope)
    for src in (edges, pattern):
        same(pyg.graph_attention(src, x, *att, slope), expected, (x, *att), **close)
    two_dimensional = [t[0] for t in att]
    torch.testing.assert_close(pyg.graph_attention(edges, x, *two_dimensional, slope), expected, **close)


def test_sources_and_targets_of_different_nodes():
    edges = edges_of(NODES, 7)
    of_sources, of_targets = random(NODES, HEADS, FEATURES), random(7, HEADS, FEATURES)
    att = vectors()
    found = pyg.graph_attention(edges, (of_sources, of_targets), *att)
    same(found, by_edges(edges, (of_sources, of_targets), *att), (of_sources, of_targets, *att))
    assert found[0].abs().sum() == 0


def test_a_sparse_tensor_is_the_transposed_adjacency():
    edges, x = edges_of(NODES, NODES).unique(dim=1), random(NODES, HEADS, FEATURES)
    att = vectors()
    ones = torch.ones(edges.shape[1], dtype=F64)
    adjacency = torch.sparse_coo_tensor(edges.flip(0), ones, (NODES, NODES)).coalesce()
    expected = by_edges(edges, x, *att)
    for t in (adjacency, adjacency.to_sparse_csr(), adjacency.to_sparse_csc()):
        torch.testing.assert_close(pyg.graph_attention(t, x, *att), expected)


def test_gradients_and_theirs_are_differences():
    edges = edges_of(NODES, NODES)
    inputs = random(NODES, HEADS, FEATURES), *vectors()
    # cuBLAS adds in an order that may differ from run to run.
    options = dict(nondet_tol=1e-12)
    assert gradcheck(lambda *t: pyg.graph_attention(edges, *t), inputs, **options)
    assert gradgradcheck(lambda *t: pyg.graph_attention(edges, *t), inputs, **options)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bits(dtype, device):
    edges, x = edges_of(NODES, NODES), random(NODES, HEADS, FEATURES)
    att = vectors()
    expected = by_edges(edges, x, *att)
    found = pyg.graph_attention(edges, *(t.to(dtype) for t in (x, *att)))
    assert found.dtype == dtype
    torch.testing.assert_close(found.to(F64), expected, rtol=0.06, atol=0.06)
    with torch.autocast(device, dtype=dtype), Seen() as seen:
        found = pyg.graph_attention(edges, *(t.float() for t in (x, *att)))
    assert "graph_attention" in seen.names
    assert found.dtype == dtype
    torch.testing.assert_close(found.to(F64), expected, rtol=0.06, atol=0.06)


def test_heads_do_not_meet():
    """A NaN or an infinity of one head stays there, forward and backward."""
    edges, att = edges_of(NODES, NODES), vectors()
    for special in (torch.inf, torch.nan):
        x = random(NODES, HEADS, FEATURES).detach()
        x[3, 1, 2] = special
        x.requires_grad_()
        found, expected = (of(edges, x, *att) for of in (pyg.graph_attention, by_edges))
        assert torch.equal(found.isnan().any(-1)[:, ::2], expected.isnan().any(-1)[:, ::2])
        assert not found[:, ::2].isnan().any()
        (of_x,) = torch.autograd.grad(found.sum(), x)
        assert not of_x[:, ::2].isnan().any()


def test_deterministic_algorithms(device):
    edges, x, att = edges_of(NODES, NODES), random(NODES, HEADS, FEATURES), vectors()
    expected = pyg.graph_attention(edges, x, *att).detach()
    torch.use_deterministic_algorithms(True, warn_only=device == "cuda")
    try:
        found = pyg.graph_attention(edges, x, *att)
        torch.autograd.grad(found.sum(), (x, *att))
    finally:
        torch.use_deterministic_algorithms(False)
    torch.testing.assert_close(found.detach(), expected)


def test_autocast_that_begins_after_the_forward_pass(device):
    edges, x, att = edges_of(NODES, NODES), random(NODES, HEADS, FEATURES, dtype=torch.float32), vectors(torch.float32)
    y = pyg.graph_attention(edges, x, *att).square().sum()
    expected = torch.autograd.grad(y, (x, *att), create_graph=True)
    with torch.autocast(device, dtype=torch.bfloat16):
        found = torch.autograd.grad(y, (x, *att), create_graph=True)
        torch.autograd.grad(found[0].sum(), x, retain_graph=True)
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two)


def test_nothing_to_attend_to_or_with():
    edges, att = edges_of(NODES, NODES), vectors()
    for heads, features in ((0, FEATURES), (0, 300), (HEADS, 0)):
        x = random(NODES, heads, features)
        y = pyg.graph_attention(edges, x, random(heads, features), random(heads, features))
        assert y.shape == x.shape and y.requires_grad
    none = edges[:, :0]
    x = random(NODES, HEADS, FEATURES)
    y = pyg.graph_attention(none, x, *att)
    assert not y.any() and not torch.autograd.grad(y.sum(), x)[0].any()


# What opcheck itself does.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
def test_operators_are_registered_as_pytorch_wants_them():
    ops = torch.ops.gustav
    pattern = gt.Pattern.from_edge_index(edges_of(NODES, NODES), (NODES, NODES))
    x, (att_src, att_dst) = random(NODES, HEADS, FEATURES), (t[0] for t in vectors())
    arguments = (pattern._handle, pattern.nnz, x, att_src, att_dst, 0.2)
    assert set(opcheck(ops.graph_attention.default, arguments).values()) == {"SUCCESS"}
    left = [t.detach() for t in ops.graph_attention(*arguments)]
    assert set(opcheck(ops.graph_attention_gradients.default, (*arguments, *left, left[0])).values()) == {"SUCCESS"}


def test_gradients_of_the_third_order():
    edges, x, att = edges_of(NODES, NODES), random(NODES, HEADS, FEATURES), vectors()
    found, expected = (of(edges, x, *att) for of in (pyg.graph_attention, by_edges))
    for _ in range(3):
        found, expected = (
            torch.autograd.grad(t.square().sum(), x, create_graph=True)[0] for t in (found, expected)
        )
        # Sums of both signs, whose error is beside the largest.
        torch.testing.assert_close(found, expected, rtol=0.0, atol=1e-10 * float(expected.detach().abs().max()))


def test_heads_of_any_width():
    edges, x, att = edges_of(NODES, NODES), random(NODES, 1, 300), random(2, 1, 300)
    same(pyg.graph_attention(edges, x, att[0], att[1]), by_edges(edges, x, att[0], att[1]), (x, att))


def test_features_with_gaps():
    wide, att = random(NODES, 2, HEADS, FEATURES), vectors()
    edges, x = edges_of(NODES, NODES), wide[:, 1]
    same(pyg.graph_attention(edges, x, *att), by_edges(edges, x, *att), (wide, *att))


def test_a_step_that_a_graph_replays(device):
    if device == "cpu":
        pytest.skip("graphs are of a GPU")
    pattern = gt.Pattern.from_edge_index(edges_of(NODES, NODES), (NODES, NODES))
    inputs = random(NODES, HEADS, FEATURES, dtype=torch.float32), *vectors(torch.float32)

    def step():
        o = pyg.graph_attention(pattern, *inputs)
        return o.detach(), *torch.autograd.grad(o.square().sum(), inputs)

    check_replays(step, inputs)


# What the compiler itself does for the gradient of diag_embed.
@pytest.mark.filterwarnings("ignore:.*torch._prims_common.check:FutureWarning")
def test_compiled_in_one_graph():
    torch.compiler.reset()
    pattern = gt.Pattern.from_edge_index(edges_of(NODES, NODES), (NODES, NODES))
    x, att = random(NODES, HEADS, FEATURES), vectors()
    compiled = torch.compile(pyg.graph_attention, fullgraph=True)
    same(compiled(pattern, x, *att), pyg.graph_attention(pattern, x, *att), (x, *att))


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (dict(x=lambda: random(NODES, FEATURES)), ValueError, "x: expected nodes x heads x features"),
        (dict(x=lambda: random(NODES + 1, HEADS, FEATURES)), ValueError, "x: expected 12 in dimension 0"),
        (dict(att_src=lambda: random(HEADS, 4)), ValueError, "att_src: expected 3 x 5"),
        (dict(att_dst=lambda: random(2, FEATURES)), ValueError, "att_dst: expected 3 x 5"),
        (dict(att_dst=lambda: random(HEADS, FEATURES, dtype=torch.float32)), TypeError, "give all in one type"),
        (
            dict(x=lambda: (random(NODES, HEADS, FEATURES), random(NODES, 2, FEATURES))),
            ValueError,
            "x of the targets: expected nodes x 3 x 5",
        ),
        (dict(x=lambda: [random(NODES, HEADS, FEATURES)] * 3), ValueError, "sources and of targets, found 3"),
        (dict(x=lambda: random(NODES, HEADS, FEATURES).detach().long()), TypeError, "give all in one type"),
        (dict(negative_slope=lambda: "0.2"), TypeError, "negative_slope: expected a number"),
        (dict(negative_slope=lambda: random(1)), NotImplementedError, "negative_slope: gradients"),
        (dict(src=lambda: [[0], [1]]), TypeError, "src: expected a tensor"),
    ],
)
def test_misuse(change, error, text):
    arguments = dict(
        src=gt.Pattern.from_edge_index(edges_of(NODES, NODES), (NODES, NODES)),
        x=random(NODES, HEADS, FEATURES),
        att_src=random(HEADS, FEATURES),
        att_dst=random(HEADS, FEATURES),
    )
    with pytest.raises(error, match=text):
        pyg.graph_attention(**{**arguments, **{name: make() for name, make in change.items()}})
