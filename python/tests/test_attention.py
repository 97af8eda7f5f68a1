"""Attention over a pattern, beside PyTorch's dense attention with a mask."""

import numpy as np
import pytest
import torch
from gustav import _gustav
from tensors import DEVICES, F64, check_replays, checked, made, random
from torch.library import opcheck
from torch.nn.functional import scaled_dot_product_attention

import gustav.torch as gt



@pytest.fixture(autouse=True, params=DEVICES)
def device(request):
    """Each test on each device."""
    global P, MASK, ROW, COLUMN
    with torch.device(request.param):
        _, _, full = made(7, 5, density=0.6)
        MASK = full != 0
        # A row that attends to nothing, and a key that nothing attends to.
        MASK[3] = MASK[:, 2] = False
        P = gt.Pattern.from_sparse(MASK.to(F64).to_sparse_csr())
        ROW, COLUMN = MASK.nonzero().T
        yield request.param


def operands(heads=None, bias=None, dtype=F64, width=3, value_width=4):
    """Queries, keys, values, and a bias, if there is one: `shared`, or of each `head`."""
    of_heads = () if heads is None else (heads,)
    made = [random(7, *of_heads, width), random(5, *of_heads, width), random(5, *of_heads, value_width)]
    if bias is not None:
        made.append(random(P.nnz, *(of_heads if bias == "head" else ())))
    return [t.detach().to(dtype).requires_grad_() for t in made]


def dense(q, k, v, bias=None, scale=None, negative_slope=None):
    """PyTorch's attention over all pairs, of which the mask leaves those of the pattern."""
    heads = q.ndim == 3
    if negative_slope is not None:
        return leaky(q, k, v, bias, scale, negative_slope)
    q, k, v = (t.transpose(0, 1) if heads else t[None] for t in (q, k, v))
    mask = torch.full((q.shape[0], 7, 5), -torch.inf, dtype=q.dtype)
    values = torch.zeros(P.nnz, dtype=q.dtype) if bias is None else bias
    mask = mask.index_put((torch.arange(q.shape[0])[:, None], ROW, COLUMN), values.T if values.ndim == 2 else values)
    o = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
    # A row without any is zero.
    o = o.where(MASK.any(1, keepdim=True), 0.0)
    return o.transpose(0, 1) if heads else o[0]


def leaky(q, k, v, bias, scale, negative_slope):
    """The same by products of all pairs, with a leaky ReLU between."""
    heads = q.ndim == 3
    q, k, v = (t.transpose(0, 1) if heads else t[None] for t in (q, k, v))
    scores = (q @ k.mT) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if bias is not None:
        scores = scores + torch.zeros(q.shape[0], 7, 5, dtype=q.dtype).index_put(
            (torch.arange(q.shape[0])[:, None], ROW, COLUMN), bias.T if bias.ndim == 2 else bias
        )
    scores = torch.nn.functional.leaky_relu(scores, negative_slope).masked_fill(~MASK, -torch.inf)
    o = torch.softmax(scores, -1).where(MASK.any(1, keepdim=True), 0.0) @ v
    return o.transpose(0, 1) if heads else o[0]


def gradients(o, inputs):
    weights = torch.linspace(-1.0, 2.0, o.numel(), dtype=o.dtype).reshape(o.shape)
    return torch.autograd.grad((o * weights).sum(), inputs)


def same(found, expected, inputs, **tolerances):
    """Whether both have the same values and gradients."""
    torch.testing.assert_close(found, expected, **tolerances)
    for one, two in zip(gradients(found, inputs), gradients(expected, inputs), strict=True):
        torch.testing.assert_close(one, two.nan_to_num(), **tolerances)


CASES = [(None, None), (None, "shared"), (1, "head"), (3, None), (3, "shared"), (3, "head")]


@pytest.mark.parametrize(("heads", "bias"), CASES)
def test_values_and_gradients_are_those_of_dense_attention(heads, bias):
    inputs = operands(heads, bias)
    q, k, v, *b = inputs
    for scale, negative_slope in ((None, None), (0.7, None), (None, 0.2), (0.7, 1.5)):
        options = dict(scale=scale, negative_slope=negative_slope)
        same(gt.attention(P, q, k, v, bias=b[0] if b else None, **options), dense(*inputs, **options), inputs)


@pytest.mark.parametrize("negative_slope", [None, 0.2])
@pytest.mark.parametrize(("heads", "bias"), CASES)
def test_gradients_and_theirs_are_differences(heads, bias, negative_slope):
    def attention(q, k, v, bias=None):
        return gt.attention(P, q, k, v, scale=0.6, bias=bias, negative_slope=negative_slope)

    assert checked(attention, *operands(heads, bias))
    # Where some have none.
    q, k, v, *b = operands(heads, bias)
    k, b = k.detach(), [t.detach() for t in b]
    assert checked(lambda q, v: gt.attention(P, q, k, v, None, *b), q, v)


def test_gradients_of_their_third_order_exist():
    q, k, v = operands(2)
    (of_q,) = torch.autograd.grad(gt.attention(P, q, k, v).square().sum(), q, create_graph=True)
    (of_k,) = torch.autograd.grad(of_q.square().sum(), k, create_graph=True)
    (found,) = torch.autograd.grad(of_k.square().sum(), v)
    (of_q,) = torch.autograd.grad(dense(q, k, v).square().sum(), q, create_graph=True)
    (of_k,) = torch.autograd.grad(of_q.nan_to_num().square().sum(), k, create_graph=True)
    (expected,) = torch.autograd.grad(of_k.square().sum(), v)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("bias", [None, "shared", "head"])
def test_values_of_other_types(dtype, bias):
    inputs = operands(2, bias, dtype)
    exact = [t.detach().to(F64).requires_grad_() for t in inputs]
    q, k, v, *b = inputs
    found = gt.attention(P, q, k, v, None, *b)
    assert found.dtype == dtype
    close = 1e-5 if dtype == torch.float32 else 0.04
    torch.testing.assert_close(found.to(F64), dense(*exact), rtol=close, atol=close)
    for one, two in zip(
        torch.autograd.grad(found.sum(), inputs),
        torch.autograd.grad(dense(*exact).sum(), exact),
        strict=True,
    ):
        assert one.dtype == dtype
        torch.testing.assert_close(one.to(F64), two.nan_to_num(), rtol=close, atol=close)


@pytest.mark.parametrize(("width", "value_width"), [(300, 4), (3, 257), (256, 256)])
def test_heads_of_any_width(width, value_width):
    inputs = operands(2, "head", width=width, value_width=value_width)
    q, k, v, bias = inputs
    for slope in (None, 0.3):
        same(gt.attention(P, q, k, v, bias=bias, negative_slope=slope), dense(*inputs, negative_slope=slope), inputs)


def test_layouts_of_operands():
    packed = random(7, 3, 2, 4).detach()
    leading = random(2, 5, 4).detach()
    for q in (packed[:, 1], packed[..., :3].repeat(1, 1, 1, 2)[:, 0, :, :4], packed[:, 0].flip(0)):
        for k in (leading.transpose(0, 1), leading[0][:, None].expand(5, 2, 4), leading.permute(1, 0, 2)):
            v = leading.transpose(1, 2).contiguous().permute(2, 0, 1)
            torch.testing.assert_close(gt.attention(P, q, k, v), dense(q, k, v))
    q, k = packed[:, 0, 0], leading[0].T.contiguous().T
    bias = random(2, P.nnz).detach()
    torch.testing.assert_close(gt.attention(P, q, k, k, bias=bias[0]), dense(q, k, k, bias[0]))
    q, k = packed[:, 1], leading.transpose(0, 1)
    torch.testing.assert_close(gt.attention(P, q, k, k, bias=bias.T), dense(q, k, k, bias.T))


def test_nothing_of_the_size_of_the_nonzeros_is_saved():
    pattern, _, _ = made(20, 30, density=1.0)
    q, k = random(20, 2, 3), random(30, 2, 3)
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.numel()) or t, lambda t: t):
        gt.attention(pattern, q, k, k)
    # q, k, v, O and the logarithms.
    assert sorted(saved) == sorted([120, 180, 180, 120, 40])


def test_rows_of_minus_infinity_and_nan():
    q, k, v, bias = operands(2, "shared")
    first = P.crow[1]
    with torch.no_grad():
        bias[:first] = -torch.inf
    found = gt.attention(P, q, k, v, bias=bias)
    assert bool((found[0] == 0.0).all()) and bool((found[3] == 0.0).all())
    assert all(bool(g.isfinite().all()) for g in torch.autograd.grad(found.sum(), (q, k, v, bias)))
    with torch.no_grad():
        bias[0] = torch.nan
    found = gt.attention(P, q, k, v, bias=bias)
    assert bool(found[0].isnan().all()) and bool(found[1:].isfinite().all())


def test_empty_operands():
    none = gt.Pattern(torch.zeros(4, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), (3, 2))
    q, k, v = random(3, 2, 4), random(2, 2, 4), random(2, 2, 5)
    o = gt.attention(none, q, k, v)
    assert o.shape == (3, 2, 5) and not o.any()
    assert not any(g.any() for g in torch.autograd.grad(o.sum(), (q, k, v)))
    assert gt.attention(none, q[:, :0], k[:, :0], v[:, :0]).shape == (3, 0, 5)
    assert gt.attention(none, q, k, v[..., :0]).shape == (3, 2, 0)
    empty = gt.Pattern(torch.zeros(1, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), (0, 2))
    assert gt.attention(empty, q[:0], k, v).shape == (0, 2, 5)


# What opcheck itself does.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.parametrize(("heads", "bias"), CASES)
def test_operators_are_registered_as_pytorch_wants_them(heads, bias):
    ops = torch.ops.gustav
    q, k, v, *b = operands(heads, bias)
    b = b[0] if b else None
    for scores in ((None, None), (0.5, None), (None, 0.2)):
        arguments = (P._handle, P.nnz, q, k, v, b, *scores)
        assert set(opcheck(ops.attention.default, arguments).values()) == {"SUCCESS"}
    o, lse = (t.detach() for t in ops.attention(P._handle, P.nnz, q, k, v, b, None, 0.2))
    for with_bias in {False, bias is not None}:
        arguments = (P._handle, P.nnz, q, k, v, b, o, lse, o, None, 0.2, with_bias)
        assert set(opcheck(ops.attention_gradients.default, arguments).values()) == {"SUCCESS"}


def layer(pattern, q, k, v, bias, scale):
    return torch.relu(gt.attention(pattern, q, k, v, scale, bias)).square().sum()


def test_compiled_in_one_graph_for_any_shape_and_pattern():
    torch.compiler.reset()
    compiled = torch.compile(layer, fullgraph=True, dynamic=True)
    for rows in range(4, 12):
        pattern, bias, _ = made(rows, 5 + rows % 4)
        for width, scale in ((3, 0.5), (4, 0.25)):
            inputs = random(rows, 2, width), random(5 + rows % 4, 2, width), random(5 + rows % 4, 2, 6), bias
            for one, two in zip(
                torch.autograd.grad(compiled(pattern, *inputs, scale), inputs),
                torch.autograd.grad(layer(pattern, *inputs, scale), inputs),
                strict=True,
            ):
                torch.testing.assert_close(one, two)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype, device):
    inputs = operands(2, "head", torch.float32)
    q, k, v, bias = inputs
    with torch.autocast(device, dtype=dtype):
        found = gt.attention(P, q, k, v, bias=bias)
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), dense(*inputs), rtol=0.04, atol=0.04)
    assert {g.dtype for g in torch.autograd.grad(found.sum(), inputs)} == {torch.float32}


def test_a_step_that_a_graph_replays(device):
    if device == "cpu":
        pytest.skip("graphs are of a GPU")
    inputs = operands(2, "shared", torch.float32)
    q, k, v, bias = inputs

    def step():
        o = gt.attention(P, q, k, v, bias=bias)
        return o.detach(), *torch.autograd.grad(o.square().sum(), inputs)

    check_replays(step, inputs, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (dict(q=lambda: random(4)), ValueError, "q: expected two dimensions, or three"),
        (dict(k=lambda: random(5, 3)), ValueError, "k: expected two dimensions, or three"),
        (dict(q=lambda: random(6, 2, 3)), ValueError, "q: expected 7 in dimension 0"),
        (dict(k=lambda: random(4, 2, 3)), ValueError, "k: expected 5 in dimension 0"),
        (dict(v=lambda: random(4, 2, 4)), ValueError, "v: expected 5 in dimension 0"),
        (dict(k=lambda: random(5, 2, 4)), ValueError, "k: expected 3 in dimension -1"),
        (dict(k=lambda: random(5, 3, 3)), ValueError, "k: expected 2 in dimension -2"),
        (dict(q=lambda: random(7, 2, 0), k=lambda: random(5, 2, 0)), ValueError, "a column at least"),
        (dict(bias=lambda: random(3)), ValueError, "bias: expected"),
        (dict(bias=lambda: random(P.nnz, 3)), ValueError, "bias: expected 2 in dimension 1"),
        (dict(bias=lambda: random(P.nnz, 2, 1)), ValueError, "nonzeros x heads"),
        (dict(v=lambda: random(5, 2, 4, dtype=torch.float32)), TypeError, "give all in one type"),
        (dict(v=lambda: random(5, 2, 4).to("meta")), ValueError, "give all on one"),
    ],
)
def test_misuse(change, error, text):
    q, k, v = operands(2)
    change = {name: make() for name, make in change.items()}
    with pytest.raises(error, match=text):
        gt.attention(P, **{"q": q, "k": k, "v": v, **change})


def test_misuse_without_heads():
    q, k, v = operands()
    with pytest.raises(ValueError, match="there are no heads"):
        gt.attention(P, q, k, v, bias=random(P.nnz, 1))
    with pytest.raises(TypeError, match="floating-point"):
        gt.attention(P, *(t.detach().to(torch.int64) for t in (q, k, v)))


def test_plans_of_the_module_refuse_what_does_not_fit():
    pattern = P.cpu()
    plan = _gustav.AttentionPlan(pattern._native, 1, 3, 3, "float64")
    q, k = np.ones((7, 3)), np.ones((5, 3))
    o, lse = np.zeros((7, 3)), np.zeros(7)
    with pytest.raises(ValueError, match="o overlaps q"):
        plan.execute_into(q, k, k, q, lse, None, None)
    with pytest.raises(ValueError, match="lse overlaps o"):
        plan.execute_into(q, k, k, o, o.reshape(-1)[:7], None, None)
    with pytest.raises(ValueError, match="lse"):
        plan.execute_into(q, k, k, o, lse[:6], None, None)
    with pytest.raises(ValueError, match="bias"):
        plan.execute_into(q, k, k, o, lse, None, None, (np.ones(3), "shared"))
    with pytest.raises(ValueError, match="head_major"):
        plan.execute_into(q, k, k, o, lse, None, None, (np.ones(pattern.nnz), "column_major"))
    with pytest.raises(ValueError, match="row-major"):
        plan.execute_into(np.asfortranarray(q), k, k, o, lse, None, None)
    with pytest.raises(TypeError, match="float32"):
        plan.execute_into(q, k, k, o, lse.astype(np.float32), None, None)
    plan.execute_into(q, k, k, o, lse, None, None)
    with pytest.raises(ValueError, match="the gradient of v overlaps the gradient of k"):
        to = np.zeros((5, 3))
        plan.gradients_into(q, k, k, o, lse, q, np.zeros((7, 3)), to, to, None, None)
    with pytest.raises(NotImplementedError, match="256 columns"):
        _gustav.AttentionPlan(pattern._native, 1, 257, 3, "float64")


def laid_out(t):
    """Rows × heads × columns with the strides of several layouts, by their names."""
    rows, heads, columns = t.shape

    def block(shape, place, back):
        whole = torch.zeros(shape, dtype=t.dtype)
        part = whole[place]
        part.copy_(t.permute(back) if back else t)
        return part.permute(back) if back else part

    yield "beside", t.contiguous()
    yield "above", t.transpose(0, 1).contiguous().transpose(0, 1)
    yield "columns first", t.permute(2, 1, 0).contiguous().permute(2, 1, 0)
    yield "half of the columns", block((rows, heads, 2 * columns), (..., slice(columns)), None)
    yield "half of the heads", block((rows, 2 * heads, columns), (slice(None), slice(heads)), None)
    yield "every other head", block((rows, 2 * heads, columns), (slice(None), slice(None, None, 2)), None)
    yield "every other row", block((2 * rows, heads, columns), (slice(None, None, 2),), None)
    yield "above, half of the columns", block((heads, rows, 2 * columns), (..., slice(columns)), (1, 0, 2))
    yield "above, half of the rows", block((heads, 2 * rows, columns), (slice(None), slice(rows)), (1, 0, 2))
    for dimension, length in enumerate(t.shape):
        if length == 1:
            strides = list(t.contiguous().stride())
            strides[dimension] = 977
            yield f"any step in dimension {dimension}", t.contiguous().as_strided(t.shape, strides)


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("rows", [1, 6])
def test_heads_are_read_in_any_layout(rows, heads, columns):
    full = torch.ones(rows, rows, dtype=F64)
    full[rows // 2 :, 0] = 0.0 if rows > 1 else 1.0
    pattern = gt.Pattern.from_sparse(full.to_sparse_csr())
    given = [random(rows, heads, columns).detach() * k for k in (1.0, 0.5, 2.0, 1.5)]

    def step(q, k, v, g):
        inputs = [t.detach().requires_grad_() for t in (q, k, v)]
        o = gt.attention(pattern, *inputs)
        return o.detach(), *torch.autograd.grad(o, inputs, g)

    expected = step(*given)
    for place in range(4):
        for name, t in laid_out(given[place]):
            assert torch.equal(t, given[place]), name
            for one, two in zip(step(*given[:place], t, *given[place + 1 :]), expected, strict=True):
                torch.testing.assert_close(one, two, msg=lambda m, name=name: f"{name}: {m}")


def test_what_is_saved_may_come_back_in_another_layout():
    pattern = gt.Pattern.from_sparse(torch.ones(5, 5, dtype=F64).to_sparse_csr())
    inputs = [random(5, 3, 2) for _ in range(3)]
    expected = torch.autograd.grad(gt.attention(pattern, *inputs).square().sum(), inputs)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t.mT.contiguous().mT):
        found = torch.autograd.grad(gt.attention(pattern, *inputs).square().sum(), inputs)
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two)
