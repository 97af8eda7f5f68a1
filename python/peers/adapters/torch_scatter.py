"""What torch-sparse's tests expect, computed by PyTorch."""

import torch

__version__ = "2.1.2"


def scatter(src, index, dim, reduce):
    """Slices of `src` along `dim` that have one index, reduced; gradients of max and min go to the first."""
    slices = [src.index_select(dim, (index == k).nonzero().squeeze(1)) for k in range(int(index.max()) + 1)]
    zero = src.select(dim, 0) * 0
    return torch.stack([_reduced(s, dim, reduce) if s.shape[dim] else zero for s in slices], dim)


def _reduced(src, dim, reduce):
    match reduce:
        case "max" | "min":
            return getattr(src, reduce)(dim).values
        case "mean":
            return src.mean(dim)
        case _:
            return src.sum(dim)
