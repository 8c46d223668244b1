r"""Mean average precision of a reconstruction: do a node's neighbours come before all others in distance?

For node u let :math:`v_1, \dots, v_n` be its neighbours by growing distance. Then

.. math:: \mathrm{AP}(u) = \frac1n \sum_{i=1}^n \frac{i}{i + \#\{w \not\sim u,\ w \ne u : d(u, w) \le d(u, v_i)\}}

A non-neighbour at the same distance counts as nearer, so that a constant distance does not look like a perfect
one. The mean goes over the nodes that have neighbours.
"""

import dataclasses as dc
import math
from collections.abc import Callable

import torch
from torch import Tensor

from gyroformer.errors import DataError, DivergedError, UsageError
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.ranks import others_before
from gyroformer.processes.tensors import share, sum_numbers

#: nodes at a time, and distances at a time: a few times as many bytes are at work as a block has distances
MOST_ROWS, BLOCK = 256, 1 << 24


@torch.no_grad()
def mean_average_precision(
    rows_of_distances: Callable[[Tensor], Tensor],
    neighbours: Neighbours,
    *,
    block: int | None = None,
    nodes: Tensor | None = None,
) -> float:
    """Return the mean average precision, between 0 and 1.

    Args:
        rows_of_distances: takes nodes ``(R,)`` and returns their distances, or squared distances, to all nodes,
            ``(R, N)``.
        neighbours: the graph.
        block: nodes at a time; by default so many that memory does not grow with the graph.
        nodes: a sample of nodes to average over, int64 ``(M,)``; all nodes if not given.

    Raises:
        DivergedError: a distance is not finite.
        DataError: none of the nodes has a neighbour.
    """
    if block is not None and block < 1:
        raise UsageError(f"block must be at least 1 node, got {block}")
    return mean_precision_and_rank(rows_of_distances, neighbours, block=block, nodes=nodes)[0]


@dc.dataclass(frozen=True, slots=True)
class Precision:
    """Means over nodes.

    Attributes:
        mean: the mean average precision, between 0 and 1.
        rank: the mean rank of a neighbour of u: 1 and the number of non-neighbours that are no farther.
        half: half of the 95 % interval of the mean over all nodes; None where the mean is over all.
    """

    mean: float
    rank: float
    half: float | None

    def interval_as(self, name: str) -> dict[str, float]:
        """Return half of the interval in percent as a metric; nothing where there is none."""
        return {} if self.half is None else {name: 100 * self.half}


@torch.no_grad()
def precision_of(
    rows_of_distances: Callable[[Tensor], Tensor],
    neighbours: Neighbours,
    *,
    block: int | None = None,
    nodes: Tensor | None = None,
    heard: Callable[[int, int], None] | None = None,
) -> Precision:
    """Return mean average precision and mean rank; the arguments are those of :func:`mean_average_precision`.

    Processes that compute as one take some nodes each. ``heard`` is told after each block how many nodes of how many
    are done.
    """
    rows = _with_neighbours(neighbours, nodes)
    block = block or max(1, min(MOST_ROWS, BLOCK // neighbours.num_nodes))
    sums, wrong, done = [0.0, 0.0, 0.0], None, 0
    try:
        mine = rows[share(rows.numel())]
        for some in mine.split(block) if mine.numel() else ():
            distances = rows_of_distances(some)
            _check(distances, some, neighbours.num_nodes)
            precision, rank = precision_and_ranks(distances, some, neighbours)
            found = (precision.sum(), precision.double().square().sum(), rank.sum())
            sums = [total + part.item() for total, part in zip(sums, found, strict=True)]
            done += some.numel()
            if heard is not None:
                heard(done, mine.numel())
    except DivergedError as error:
        wrong = error
    total, squares, ranks, failed = sum_numbers([*sums, float(wrong is not None)])
    if wrong is not None or failed:  # in all processes or in none
        raise wrong or DivergedError(
            "mean average precision: another process found a distance that is not finite"
        )
    count, half = rows.numel(), None
    if nodes is not None and count > 1:
        everyone = int((neighbours.degree > 0).sum())
        # drawn without putting back: the interval closes as the sample comes to hold all
        left = max(0.0, 1 - count / everyone)
        variance = max(0.0, squares - total * total / count) / (count - 1)
        half = 1.96 * math.sqrt(variance * left / count)
    return Precision(total / count, ranks / int(neighbours.degree[rows].sum()), half)


def mean_precision_and_rank(
    rows_of_distances: Callable[[Tensor], Tensor],
    neighbours: Neighbours,
    *,
    block: int | None = None,
    nodes: Tensor | None = None,
) -> tuple[float, float]:
    """Return the mean average precision and the mean rank, as :func:`precision_of` does."""
    found = precision_of(rows_of_distances, neighbours, block=block, nodes=nodes)
    return found.mean, found.rank


def _with_neighbours(neighbours: Neighbours, nodes: Tensor | None) -> Tensor:
    """Return the nodes to average over that have at least one neighbour."""
    if nodes is None:
        nodes = torch.arange(neighbours.num_nodes, device=neighbours.indptr.device)
    elif nodes.dtype != torch.int64 or nodes.dim() != 1:
        raise UsageError(f"nodes must be a vector of int64, got {nodes.dtype} {tuple(nodes.shape)}")
    elif nodes.numel() and (nodes.min() < 0 or nodes.max() >= neighbours.num_nodes):
        raise UsageError(f"nodes must be from 0 to {neighbours.num_nodes - 1}")
    rows = nodes[neighbours.degree[nodes] > 0]
    if rows.numel() == 0:
        raise DataError(f"mean average precision: none of the {nodes.numel()} nodes has a neighbour")
    return rows


def _check(distances: Tensor, rows: Tensor, num_nodes: int) -> None:
    """Refuse distances that cannot be ranked: NaN is below nothing, and every neighbour would come first."""
    if distances.shape != (rows.numel(), num_nodes):
        raise UsageError(
            f"rows_of_distances must return the shape ({rows.numel()}, {num_nodes}), got {tuple(distances.shape)}"
        )
    finite = distances.isfinite()
    if not finite.all():
        row, column = (~finite).nonzero()[0].tolist()
        raise DivergedError(
            f"mean average precision: the distance from node {int(rows[row])} to node {column} is "
            f"{distances[row, column].item()}; the embedding has diverged: lower the learning rate"
        )


def average_precision(distances: Tensor, rows: Tensor, neighbours: Neighbours) -> Tensor:
    """Return AP, float64 ``(R,)``, of nodes that all have neighbours, from their distances ``(R, N)``."""
    return precision_and_ranks(distances, rows, neighbours)[0]


def precision_and_ranks(distances: Tensor, rows: Tensor, neighbours: Neighbours) -> tuple[Tensor, Tensor]:
    """Return AP and the sum of the ranks of a node's neighbours, float64 ``(R,)`` each."""
    degree = neighbours.degree[rows]
    before = others_before(distances, rows, neighbours)
    order = torch.arange(before.shape[1], device=rows.device)
    real = order < degree[:, None]
    rank = (order + 1).double()
    ranks = (1.0 + before.double()).where(real, 0.0).sum(1)
    return (rank / (rank + before)).where(real, 0.0).sum(1) / degree, ranks
