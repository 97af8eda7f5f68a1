"""Calls of PyTorch on four nonzeros, for what the host takes for one; of python_speed.py."""

import gustav
import gustav.torch as gt
import torch

SIGNATURE = "(SymInt handle, SymInt rows, Tensor? values, Tensor x, bool transpose) -> Tensor"


def of_torch(device):
    """The calls by name, beside operators of the same signature that do nothing but make their result."""
    crow = torch.arange(5, dtype=torch.int32, device=device)
    col, values = crow[:4].clone(), torch.ones(4, device=device)
    b, out = torch.ones(4, 2, device=device), torch.ones(4, 2, device=device)
    plan, pattern = gustav.plan_spmm((crow, col, values, (4, 4)), 2), gt.Pattern(crow, col, (4, 4))
    csr = torch.sparse_csr_tensor(crow, col, values, size=(4, 4), check_invariants=False)
    tracked = values.clone().requires_grad_()
    empty, filling = _operator("empty", _make, device), _operator("filling", _fill, device)
    with_gradients, filling_with_gradients = (
        _with_gradients(name, kernel, device) for name, kernel in (("empty", _make), ("filling", _fill))
    )
    return {
        "plan.execute(values, b, out) of torch": lambda: plan.execute(values, b, out),
        "plan.execute(values, b) of torch": lambda: plan.execute(values, b),
        "gustav.torch.spmm(P, values, b)": lambda: gt.spmm(pattern, values, b),
        "gustav.torch.spmm(P, values, b), recorded for gradients": lambda: gt.spmm(pattern, tracked, b),
        "gustav's operator by the dispatcher": lambda: torch.ops.gustav.spmm(pattern._handle, 4, values, b, False),
        "an empty operator": lambda: empty(1, 4, values, b, False),
        "an empty operator that has gradients": lambda: with_gradients(1, 4, values, b, False),
        "an empty operator, recorded for gradients": lambda: with_gradients(1, 4, tracked, b, False),
        "an operator that fills its result": lambda: filling(1, 4, values, b, False),
        "an operator that fills its result and has gradients": lambda: filling_with_gradients(1, 4, values, b, False),
        "gustav.spmm(a, b) of torch": lambda: gustav.spmm(csr, b),
        "torch.sparse csr @ b": lambda: csr @ b,
    }


_library = torch.library.Library("gustav_bench", "FRAGMENT")


def _make(handle, rows, values, x, transpose):
    return x.new_empty((rows, x.shape[1]))


def _fill(handle, rows, values, x, transpose):
    """Does the least that an operator with a result can: on a GPU PyTorch launches one kernel for it."""
    return x.new_empty((rows, x.shape[1])).fill_(1.0)


def _operator(name, kernel, device):
    _library.define(name + SIGNATURE)
    _library.impl(name, kernel, device.upper())
    return getattr(torch.ops.gustav_bench, name)


def _with_gradients(name, kernel, device):
    def keep(ctx, inputs, output):
        ctx.save_for_backward(inputs[2], inputs[3])

    operator = _operator(f"{name}_with_gradients", kernel, device)
    full = f"gustav_bench::{name}_with_gradients"
    torch.library.register_fake(full, _make, lib=_library)
    torch.library.register_autograd(
        full, lambda ctx, g: (None, None, g, g, None), setup_context=keep, lib=_library
    )
    return operator
