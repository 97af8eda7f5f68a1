"""Patterns and tensors that the tests of PyTorch share, on PyTorch's default device."""

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.utils._python_dispatch import TorchDispatchMode

import gustav.torch as gt

F64 = torch.float64
DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
    ),
]


def made(rows, columns, density=0.4, dtype=F64):
    """A pattern, its values with gradients, and the matrix."""
    generator = torch.Generator("cpu").manual_seed(rows * 100 + columns)
    full = torch.randn(rows, columns, generator=generator, dtype=dtype, device="cpu")
    full *= torch.rand(rows, columns, generator=generator, device="cpu") < density
    full = full.to(torch.get_default_device())
    t = full.to_sparse_csr()
    return gt.Pattern.from_sparse(t), t.values().clone().requires_grad_(), full


def random(*shape, dtype=F64):
    generator = torch.Generator("cpu").manual_seed(sum(shape))
    t = torch.randn(*shape, generator=generator, dtype=dtype, device="cpu")
    return t.to(torch.get_default_device()).requires_grad_()


def checked(f, *inputs):
    return gradcheck(f, inputs) and gradgradcheck(f, inputs)


def same(found, expected, inputs, **tolerances):
    """Two results are close, and their gradients with respect to the inputs."""
    torch.testing.assert_close(found, expected, **tolerances)
    weights = torch.linspace(-1.0, 2.0, found.numel(), dtype=found.dtype).reshape(found.shape)
    for one, two in zip(
        torch.autograd.grad((found * weights).sum(), inputs),
        torch.autograd.grad((expected * weights).sum(), inputs, retain_graph=True),
        strict=True,
    ):
        torch.testing.assert_close(one, two, **tolerances)


class Seen(TorchDispatchMode):
    """The operators of the package that are called within it."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        if function.namespace == "gustav":
            self.names.add(function._opname)
        return function(*arguments, **(options or {}))


def captured(step):
    """A CUDA graph of a step that ran once before, and what its replays fill."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = step()
    return graph, found


def check_replays(step, inputs, **tolerances):
    """A CUDA graph that captures a step computes what the step does, after its inputs have changed too."""
    graph, found = captured(step)
    for factor in (2.0, 0.5):
        with torch.no_grad():
            for t in inputs:
                t.mul_(factor)
        graph.replay()
        torch.cuda.synchronize()
        for one, two in zip(found, step(), strict=True):
            torch.testing.assert_close(one, two, **tolerances)
