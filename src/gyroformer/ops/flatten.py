r"""Flat vectors whose Euclidean distances come as near to the distances on a curved space as so few dimensions allow.

Classical multidimensional scaling of :math:`d^p`: with :math:`D_{ij} = d(x_i, x_j)^p` and its rows and columns centred,
the leading eigenvectors of :math:`-\tfrac12 J D J` times the roots of their eigenvalues are the vectors whose squared
distances are nearest to D. p = 2 keeps the distances themselves; p = 1 keeps their roots, which put the same nodes
first and need fewer dimensions in a hyperbolic space, where room grows faster than any flat space has it.

Beyond ``LANDMARKS`` nodes so many of them are scaled, and every node is placed by its distances to these (de Silva and
Tenenbaum 2004).
"""

import torch
from torch import Tensor

from gyroformer.ops.positions import Positions

#: nodes up to which all pairs are scaled; beyond, the number of landmarks
LANDMARKS = 2_000


@torch.no_grad()
def flat_vectors(positions: Positions, dim: int, *, power: float = 2.0) -> Tensor:
    """Return vectors ``(N, dim)``, float64, on the CPU; columns without a positive eigenvalue are 0.

    Args:
        positions: where the nodes are.
        dim: number of columns.
        power: p.
    """
    nodes = len(positions)
    count = min(nodes, LANDMARKS)
    # a draw of its own, the same in every run
    chosen = torch.randperm(nodes, generator=torch.Generator().manual_seed(0))[:count].sort().values
    rows = torch.cat(
        [positions.squared_dist_rows(some.to(positions.device)).cpu() for some in chosen.split(256)]
    )
    scaled = rows.double().clamp(min=0) ** (power / 2)  # (L, N)
    own = scaled[:, chosen]
    own = 0.5 * (own + own.mT)
    mean = own.mean(0)
    centred = -0.5 * (own - mean - mean.unsqueeze(1) + mean.mean())
    values, vectors = torch.linalg.eigh(centred)
    values, vectors = values.flip(0)[:dim], vectors.flip(1)[:, :dim]
    real = values > values.abs().max() * torch.finfo(torch.float64).eps * count
    inverse = torch.where(real, values.where(real, 1.0).rsqrt(), 0.0)
    found = -0.5 * (scaled - mean.unsqueeze(1)).mT @ (vectors * inverse)
    result = found.new_zeros(nodes, dim)
    result[:, : found.size(1)] = found - found.mean(0)
    return result
