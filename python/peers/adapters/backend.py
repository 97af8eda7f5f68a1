"""Where DGL's tests run."""

import torch


def ctx():
    return torch.device("cpu")
