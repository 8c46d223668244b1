"""The geometry at work without a model: a graph drawn in the plane, and in the space whose curvature is learned.

Each node gets a tangent vector at the origin; gradient descent moves the vectors, and the curvature with
them, until distances between the points are the numbers of hops between the nodes. The curvature starts
at 0.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from gyroformer import geometry

STEPS = 250
#: nodes whose mutual distances are compared in one step
BATCH = 64
DIMENSION = 2
POINT_RATE = 0.05
CURVATURE_RATE = 0.03
Edges = Sequence[tuple[int, int]]


def balanced_tree(branching: int, depth: int) -> list[tuple[int, int]]:
    """Return the edges (parent, child) of a tree whose every inner node has ``branching`` children."""
    nodes = sum(branching**level for level in range(depth + 1))
    return [((child - 1) // branching, child) for child in range(1, nodes)]


def cycle(nodes: int) -> list[tuple[int, int]]:
    """Return the edges of a ring."""
    return [(i, (i + 1) % nodes) for i in range(nodes)]


def hop_distances(edges: Edges) -> Tensor:
    """Return the numbers of hops between all pairs of nodes of a connected graph, ``(N, N)``."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    ends = np.asarray(edges)
    nodes = int(ends.max()) + 1
    adjacency = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(nodes, nodes)).tocsr()
    return torch.from_numpy(shortest_path(adjacency, directed=False, unweighted=True)).float()


def flat_start(hops: Tensor, generator: torch.Generator) -> Tensor:
    """Return tangent vectors ``(N, 2)`` by classical scaling, the best flat layout of squared distances.

    A little noise separates nodes that it puts on one another. At k = 0 distances are twice the coordinates'.
    """
    # a symmetric graph has equal eigenvalues, and solvers choose among their vectors; this decides for them
    uneven = 1 + 0.01 * torch.rand(hops.shape, generator=generator, dtype=torch.float64)
    square = hops.double().square() * uneven * uneven.mT
    centred = square - square.mean(0) - square.mean(1, keepdim=True) + square.mean()
    values, vectors = torch.linalg.eigh(-0.5 * centred)
    layout = vectors[:, -DIMENSION:] * values[-DIMENSION:].clamp(min=0).sqrt()
    # an eigenvector's sign is the solver's choice; ours makes the largest coordinate positive
    largest = layout.gather(0, layout.abs().argmax(0, keepdim=True))
    noise = torch.randn(layout.shape, generator=generator, dtype=torch.float64)
    return (0.5 * layout * largest.sign() + 0.01 * noise).float()


def relative_errors(tangents: Tensor, hops: Tensor, k: Tensor) -> Tensor:
    """Return distance / hops − 1 for all pairs of different nodes."""
    points = geometry.expmap0(tangents, k=k)
    first, second = torch.triu_indices(len(hops), len(hops), 1)
    return geometry.pairwise_dist(points, points, k=k)[first, second] / hops[first, second] - 1


def embed(
    hops: Tensor,
    *,
    learn: bool,
    seed: int,
    steps: int = STEPS,
    watch: Callable[[Tensor], None] = lambda curvature: None,
) -> tuple[Tensor, Tensor]:
    """Return tangent vectors ``(N, 2)`` at the origin and the curvature that fit the hops.

    Args:
        hops: target distances ``(N, N)``.
        learn: whether the curvature learns with the points; it stays 0 otherwise.
        seed: seed of the noise and of the batches.
        steps: steps of Adam, each on the pairs among at most ``BATCH`` nodes.
        watch: is given the curvature after each step.
    """
    generator = torch.Generator().manual_seed(seed)
    tangents = flat_start(hops, generator).requires_grad_()
    k = torch.zeros((), requires_grad=learn)
    groups = [{"params": [tangents], "lr": POINT_RATE}]
    if learn:
        groups.append({"params": [k], "lr": CURVATURE_RATE})
    optimizer = torch.optim.Adam(groups)
    # falling to a tenth, so that the last steps settle
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.1 ** (step / steps))
    for _ in range(steps):
        batch = torch.randperm(len(hops), generator=generator)[:BATCH]
        optimizer.zero_grad()
        relative_errors(tangents[batch], hops[batch][:, batch], k).square().mean().backward()
        optimizer.step()
        schedule.step()
        watch(k.detach())
    return tangents.detach(), k.detach()
