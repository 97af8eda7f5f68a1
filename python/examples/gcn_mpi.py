"""The graph convolutional network of gcn.py, trained on all ranks of an MPI job, each with a part of the nodes.

    pip install '.[mpi,torch]'
    mpirun -n 4 python python/examples/gcn_mpi.py

The losses are those of one rank but for rounding: the whole graph takes part in every step, and ranks send each other the
rows of features that their edges need.
"""

from __future__ import annotations

import sys

import gustav.mpi as gm
import gustav.mpi.torch as gmt
import numpy as np
import torch
from mpi4py import MPI
from torch import Tensor, nn

NODES, COMMUNITIES, FEATURES = 2000, 5, 16


def graph(nodes: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Edges, most of them within a community, weak features, communities, and which nodes are trained on: the same on
    every rank, of which each keeps its part."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, COMMUNITIES, (nodes,), generator=generator)
    ends = torch.randint(0, nodes, (2, 40 * nodes), generator=generator)
    inside = labels[ends[0]] == labels[ends[1]]
    ends = ends[:, inside | (torch.rand(ends.shape[1], generator=generator) < 0.05)]
    edges = torch.cat([ends, torch.arange(nodes).expand(2, -1)], 1)
    features = torch.randn(nodes, FEATURES, generator=generator, dtype=torch.float64)
    features += 0.5 * nn.functional.one_hot(labels, FEATURES)
    known = torch.rand(nodes, generator=generator) < 0.1
    return edges, features, labels, known


class Network(nn.Module):
    """Two graph convolutions."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(FEATURES, 32, dtype=dtype)
        self.second = nn.Linear(32, COMMUNITIES, dtype=dtype)

    def forward(self, pattern: gm.DistPattern, values: Tensor, x: Tensor) -> Tensor:
        hidden = torch.relu(gmt.spmm(pattern, values, self.first(x)))
        return gmt.spmm(pattern, values, self.second(hidden))


def train(comm: MPI.Intracomm, dtype: torch.dtype = torch.float32, nodes: int = NODES, epochs: int = 60) -> list[float]:
    """The losses of the epochs, over all nodes that are trained on."""
    ranks = gm.Ranks(comm)
    torch.set_num_threads(ranks.threads)
    edges, x, labels, known = graph(nodes)
    mine = slice(nodes * ranks.rank // ranks.size, nodes * (ranks.rank + 1) // ranks.size)
    inside = (edges[0] >= mine.start) & (edges[0] < mine.stop)
    source, target = edges[:, inside]
    rows = torch.sparse_coo_tensor(
        torch.stack([source - mine.start, target]),
        torch.ones(len(source), dtype=dtype),
        (mine.stop - mine.start, nodes),
    ).coalesce()
    pattern = gm.DistPattern(ranks, rows.to_sparse_csr())
    # D^-1/2 (A + I) D^-1/2, of which the degrees are a product and the values another.
    degree = gmt.spmm(pattern, None, torch.ones(mine.stop - mine.start, dtype=dtype)).rsqrt().unsqueeze(1)
    values = gmt.sddmm(pattern, degree, degree)
    x, labels, known = x[mine].to(dtype), labels[mine], known[mine]
    count = comm.allreduce(int(known.sum()))

    network = Network(dtype)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.05)
    losses = []
    for _ in range(epochs):
        optimiser.zero_grad()
        out = network(pattern, values, x)
        # This rank's part of the mean; gradients of the parts are summed.
        loss = nn.functional.cross_entropy(out[known], labels[known], reduction="sum") / count
        loss.backward()
        for parameter in network.parameters():
            gradient: np.ndarray = parameter.grad.numpy()
            comm.Allreduce(MPI.IN_PLACE, gradient)
        optimiser.step()
        losses.append(comm.allreduce(float(loss.detach())))
    return losses


if __name__ == "__main__":
    kind = torch.float64 if "--f64" in sys.argv else torch.float32
    found = train(MPI.COMM_WORLD, kind)
    if MPI.COMM_WORLD.rank == 0:
        for epoch in range(0, len(found), 10):
            print(f"epoch {epoch:3}: loss {found[epoch]:.10f}")
        print(f"last loss {found[-1]:.10f} on {MPI.COMM_WORLD.size} ranks")
