"""The flat vectors of a trained model that keep most of what its distances say of the graph."""

import dataclasses as dc

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gyroformer.ops.flatten import flat_vectors
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.positions import Positions, StereographicPositions
from gyroformer.tasks.average_precision import mean_average_precision

#: what a file of flat vectors holds
FLAT_MEANING = (
    "embedding (nodes, 1, width): flat vectors whose Euclidean distances put the same nodes first as the distances of "
    "the model, as far as so few dimensions allow; no curvature belongs to them"
)
#: powers of the distance that are tried
POWERS = (2.0, 1.0)
#: nodes over which mAP is taken, beyond which it is a sample
MAP_NODES = 2_000


@dc.dataclass(frozen=True)
class Flattened:
    """Flat vectors, and what is left in them.

    Attributes:
        vectors: ``(N, dim)``, float32.
        map: mean average precision by their Euclidean distances, in percent.
        true_map: by the distances of the model.
        tangent_map: by the Euclidean distances of its tangent vectors, all of them.
        power: the power of the distance that their squared distances are near to; None for the tangent vectors
            themselves, turned so that the first columns hold most.
    """

    vectors: NDArray[np.float32]
    map: float
    true_map: float
    tangent_map: float
    power: float | None


@torch.no_grad()
def flattened(positions: Positions, neighbours: Neighbours, dim: int) -> Flattened:
    """Return the best flat vectors of so many dimensions, chosen by mAP."""
    nodes = len(positions)
    drawn = None
    if nodes > MAP_NODES:
        drawn = torch.randperm(nodes, generator=torch.Generator().manual_seed(0))[:MAP_NODES].sort().values

    def score(places: Positions) -> float:
        return 100 * mean_average_precision(places.squared_dist_rows, neighbours, nodes=drawn)

    tangent = positions.coordinates().flatten(1).cpu()
    candidates: dict[float | None, Tensor] = {
        power: flat_vectors(positions, dim, power=power).float() for power in POWERS
    }
    candidates[None] = principal(tangent, dim).float()
    scores = {power: score(StereographicPositions.flat(vectors)) for power, vectors in candidates.items()}
    best = max(scores, key=lambda power: scores[power])
    told = score(positions), score(StereographicPositions.flat(tangent))
    return Flattened(candidates[best].numpy(), scores[best], *told, best)


def principal(vectors: Tensor, dim: int) -> Tensor:
    """Return the first ``dim`` principal components of vectors, ``(N, dim)``; further columns are 0."""
    centred = vectors.double() - vectors.double().mean(0)
    _, axes = torch.linalg.eigh(centred.mT @ centred)
    found = centred @ axes.flip(1)[:, :dim]
    return torch.nn.functional.pad(found, (0, dim - found.size(1)))
