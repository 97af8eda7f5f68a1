"""A graph convolutional network (Kipf, Welling 2017) that learns the communities of a random graph.

    python python/examples/gcn.py

Needs PyTorch. The graph has a community of every node in it, and features that say almost nothing of it; what a
node has learnt comes from its neighbours.
"""

from __future__ import annotations

import gustav.torch as gt
import torch
from torch import Tensor, nn


def graph(nodes: int, communities: int, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Edges, most of them within a community, weak features, and the communities of the nodes."""
    labels = torch.randint(0, communities, (nodes,), generator=generator)
    source = torch.randint(0, nodes, (40 * nodes,), generator=generator)
    target = torch.randint(0, nodes, (40 * nodes,), generator=generator)
    inside = labels[source] == labels[target]
    kept = inside | (torch.rand(len(source), generator=generator) < 0.05)
    features = torch.randn(nodes, 16, generator=generator)
    features += 0.5 * nn.functional.one_hot(labels, 16)
    return torch.stack([source[kept], target[kept]]), features, labels


def normalised(edge_index: Tensor, nodes: int) -> tuple[gt.Pattern, Tensor]:
    """The pattern of A + I, and the values of D^-1/2 (A + I) D^-1/2."""
    loops = torch.arange(nodes).expand(2, -1)
    pattern = gt.Pattern.from_edge_index(torch.cat([edge_index, loops], 1), (nodes, nodes))
    degree = gt.spmm(pattern, None, torch.ones(nodes)).rsqrt().unsqueeze(1)
    return pattern, gt.sddmm(pattern, degree, degree)


class Network(nn.Module):
    """Two graph convolutions."""

    def __init__(self, features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first = nn.Linear(features, hidden)
        self.second = nn.Linear(hidden, classes)

    def forward(self, pattern: gt.Pattern, values: Tensor, x: Tensor) -> Tensor:
        hidden = torch.relu(gt.spmm(pattern, values, self.first(x)))
        return gt.spmm(pattern, values, self.second(hidden))


def train(nodes: int = 2000, communities: int = 5, epochs: int = 60) -> float:
    """Trains on a tenth of the nodes, and returns the part of the others that is classified right."""
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    edge_index, x, labels = graph(nodes, communities, generator)
    pattern, values = normalised(edge_index, nodes)
    network = Network(x.shape[1], 32, communities)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.05)
    known = torch.rand(nodes, generator=generator) < 0.1
    for _ in range(epochs):
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(network(pattern, values, x)[known], labels[known])
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        right = network(pattern, values, x).argmax(1) == labels
    return float(right[~known].float().mean())


if __name__ == "__main__":
    print(f"{train():.1%} of the nodes that it was not trained on")
