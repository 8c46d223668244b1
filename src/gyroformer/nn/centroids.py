"""Class scores from distances to learned points."""

import torch
from torch import Tensor, nn

from gyroformer.errors import UsageError
from gyroformer.geometry.precision import wide_dtype
from gyroformer.geometry.trig import arsin_ratio, safe_sqrt
from gyroformer.ops.lifted import sine_cosine


class CentroidScores(nn.Module):
    r"""Scores linear in the distances to learned centroids, :math:`\ell(x) = V\,(d(x, c_1), \dots, d(x, c_C)) + v`.

    The centroids are :math:`c = \exp_0(w)` of free vectors w.

    Args:
        dim: width of the space.
        centroids: number of centroids.
        classes: number of classes.
    """

    def __init__(self, dim: int, centroids: int, classes: int) -> None:
        super().__init__()
        if centroids < 1:
            raise UsageError(f"centroids must be at least 1, got {centroids}")
        # about one unit from the origin in every direction, like the points they are compared with
        self.centroid = nn.Parameter(torch.randn(centroids, dim) * dim**-0.5)
        self.linear = nn.Linear(centroids, classes)

    def distances(self, u: Tensor, k: Tensor) -> Tensor:
        r"""Return the distances ``(N, centroids)`` of tangent vectors ``(N, dim)``; ``k (1, 1)``, at most 0.

        In half-angle coordinates :math:`d = 2\sin_\kappa^{-1}|C_y P_x - C_x P_y|`. The square is expanded, so that
        all pairs cost one matrix product and no ``(N, centroids, dim)``; the wide format pays for the digits
        that the expansion cancels.
        """
        wide = wide_dtype(u.dtype, u.device)
        (px, cx), (py, cy) = (tuple(part.to(wide) for part in sine_cosine(v, k)) for v in (u, self.centroid))
        square_x, square_y = (px * px).sum(-1, keepdim=True), (py * py).sum(-1, keepdim=True)
        left = torch.cat((square_x, cx * cx, -2 * cx * px), -1)
        right = torch.cat((cy * cy, square_y, cy * py), -1)
        between = (left @ right.mT).clamp(min=0)
        return (2 * safe_sqrt(between) * arsin_ratio(k.to(wide) * between)).to(u.dtype)

    def forward(self, u: Tensor, k: Tensor) -> Tensor:
        """Return scores ``(N, classes)`` of tangent vectors ``(N, dim)`` at the origin; ``k (1, 1)``."""
        return self.linear(self.distances(u, k))
