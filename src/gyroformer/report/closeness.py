"""Who is near whom: the nearest nodes of each, and where its neighbours come among all others.

One pass over blocks of rows of the distance matrix gives everything; the whole matrix never exists. The pass ranks by
distances to about six digits, which a matrix product gives much faster than the exact ones; the nearest are then taken
by their exact distances from a few more than are wanted, and where these might not suffice, from all. Without a graph,
whose average precision needs all distances, the index of nearest nodes is asked where it is faster.
"""

import dataclasses as dc
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gyroformer.ops.nearest import has_index, nearest_nodes, row_blocks
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.positions import Positions, StereographicPositions
from gyroformer.tasks.average_precision import average_precision

Array = np.ndarray[Any, Any]
#: called with (nodes done, nodes in all)
Progress = Callable[[int, int], None]

#: nodes beyond those wanted that are looked at exactly
SPARE = 8
#: distances that are worked on at a time: as many as stay in a processor's own cache
TILE = 1 << 17
#: relative error of quick squared distances, with room to spare
QUICK_ERROR = 1e-5
#: largest absolute error of sine² in the matrix product for which it is used at all
PRODUCT_ERROR = 1e-9


@dc.dataclass(frozen=True, slots=True)
class Closeness:
    """Distances in the product of all heads.

    Attributes:
        nearest: the nodes nearest to each, ``(N, K)``, nearest first.
        distance: how far they are, ``(N, K)``.
        precision: each node's own average precision, from 0 to 1; NaN for a node without neighbours; None without a
            graph.
    """

    nearest: Array
    distance: Array
    precision: Array | None


@torch.no_grad()
def closeness(
    positions: Positions, count: int, edges: Array | None, *, progress: Progress | None = None
) -> Closeness:
    """Return the ``count`` nearest nodes of each node and, with ``edges (2, E)``, each node's average precision."""
    nodes = len(positions)
    count = min(count, nodes - 1)
    graph = None if edges is None else Neighbours.of(edges, nodes)
    everyone = torch.arange(nodes)
    if graph is None and count and has_index(positions, nodes):
        if progress is not None:
            progress(0, nodes)
        return Closeness(*_ranked(positions, nearest_nodes(positions, everyone, count)[0]), None)
    rows_of = quick_rows(positions)
    precision = torch.full((nodes,), torch.nan, dtype=torch.float64)
    found, done = [], 0
    # nodes of about equal degree together: what a block costs depends on the largest
    order = everyone if graph is None else graph.degree.argsort(stable=True)
    for block in row_blocks(order, nodes):
        squared = rows_of(block)
        squared[torch.arange(block.numel()), block] = torch.inf
        if graph is not None:
            joined = graph.degree[block] > 0
            if bool(joined.any()):
                precision[block[joined]] = average_precision(squared[joined], block[joined], graph)
        found.append(squared.topk(min(count + SPARE, nodes - 1), largest=False))
        done += block.numel()
        if progress is not None:
            progress(done, nodes)
    back = order.argsort()
    quick, candidates = (torch.cat(part)[back] for part in zip(*found, strict=True))
    nearest, far = _nearest(positions, candidates, quick, count)
    return Closeness(nearest, far, None if graph is None else precision.numpy())


def _ranked(positions: Positions, candidates: Tensor) -> tuple[Array, Array]:
    """Return candidates ``(N, K)`` of each node by their exact distances, and these."""
    # sorted by number first: equals stay in their own order
    candidates = candidates.sort(dim=1).values
    source = torch.arange(len(candidates)).unsqueeze(1).expand_as(candidates)
    exact = torch.from_numpy(pair_distances(positions, torch.stack((source, candidates)).flatten(1).numpy()))
    far, order = exact.reshape(candidates.shape).sort(dim=1, stable=True)
    return candidates.gather(1, order).numpy(), far.numpy()


def _nearest(positions: Positions, candidates: Tensor, quick: Tensor, count: int) -> tuple[Array, Array]:
    """Return the ``count`` nearest nodes and their distances, from candidates and their quick squared distances."""
    nodes, looked = candidates.shape
    nearest, far = (part[:, :count] for part in _ranked(positions, candidates))
    if looked < nodes - 1 and count:
        # a node that was not looked at is at least as far as the last that was, but for the quick error
        limit = quick.amax(1).double() * (1 - QUICK_ERROR) - 8 * PRODUCT_ERROR
        unsure = torch.from_numpy(np.square(far[:, -1])) >= limit
        if bool(unsure.any()):
            found, again = nearest_nodes(positions, unsure.nonzero()[:, 0], count)
            nearest[unsure.numpy()] = found.numpy()
            far[unsure.numpy()] = again.clamp(min=0).sqrt().double().numpy()
    return nearest, far


def quick_rows(positions: Positions) -> Callable[[Tensor], Tensor]:
    r"""Return a function from nodes ``(R,)`` to their squared distances ``(R, N)``, to a relative 1e-5.

    With half-angle coordinates P and C, :math:`|C_vP_u - C_uP_v|^2 = C_v^2|P_u|^2 + C_u^2|P_v|^2 - 2\,C_uP_u \cdot
    C_vP_v` is a matrix product. It cancels where points lie far out; there the exact distances are used.
    """
    if not isinstance(positions, StereographicPositions):
        return positions.squared_dist_rows
    sine, cosine, k = positions.sine.double(), positions.cosine.double(), positions.k.double()[:, 0]
    square, size = cosine.square()[..., 0], sine.square().sum(-1)  # C² and |P|², (N, heads)
    error = 4 * torch.finfo(torch.float64).eps * (square.amax(0) * size.amax(0)).max()
    if float(error) > PRODUCT_ERROR:
        return positions.squared_dist_rows
    # one product for each head: -2 C_u P_u · C_v P_v + |P_u|² C_v² + C_u² |P_v|²
    mixed, square, size = cosine * sine, square.unsqueeze(-1), size.unsqueeze(-1)
    left = torch.cat((-2 * mixed, size, square), -1)
    right = torch.cat((mixed, square, size), -1).movedim(0, -1).contiguous()

    def rows(some: Tensor) -> Tensor:
        total = torch.zeros(some.numel(), len(positions))
        for tile in torch.arange(len(positions)).split(max(1, TILE // some.numel())):
            columns = slice(int(tile[0]), int(tile[-1]) + 1)
            for head, curvature in enumerate(k.tolist()):
                sines = (left[some, head] @ right[head, :, columns]).float().clamp_(min=0)
                total[:, columns] += _squared_from_sine(sines, curvature)
        return total

    return rows


def _squared_from_sine(q: Tensor, k: float) -> Tensor:
    """Return squared distances from the squared sine of half of them; ``q`` is overwritten."""
    if k == 0:
        return q.mul_(4)
    z = q.mul_(abs(k))
    if k > 0:
        angle = z.clamp_(max=1).sqrt_().asin_()
    else:  # arsinh √z: torch's own takes ten times as long
        root = z.sqrt()
        angle = z.div_(z.add(1).sqrt_().add_(1)).add_(root).log1p_()
    return angle.square_().mul_(4 / abs(k))


@torch.no_grad()
def pair_distances(positions: Positions, pairs: Array) -> Array:
    """Return the distances of pairs ``(2, M)``."""
    source, target = (torch.from_numpy(np.ascontiguousarray(end)).long() for end in pairs)
    # some million pairs at a time: their coordinates are gathered
    parts = [
        positions.pair_squared_dist(a, b).clamp(min=0).sqrt().double().numpy()
        for a, b in zip(source.split(1 << 20), target.split(1 << 20), strict=True)
    ]
    return np.concatenate(parts) if parts else np.zeros(0)
