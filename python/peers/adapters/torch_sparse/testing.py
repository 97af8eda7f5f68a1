import torch

reductions = ["sum", "add", "mean", "min", "max"]
dtypes = [torch.half, torch.float, torch.double, torch.int, torch.long, torch.bfloat16]
grad_dtypes = [torch.half, torch.float, torch.double, torch.bfloat16]
devices = [torch.device("cpu")]


def tensor(x, dtype, device):
    return None if x is None else torch.tensor(x, dtype=dtype, device=device)
