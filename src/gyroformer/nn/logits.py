"""Class scores of points: signed distances to hyperplanes, or distances to learned points."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gyroformer.errors import UsageError
from gyroformer.geometry import logmap0
from gyroformer.geometry.precision import wide_dtype
from gyroformer.geometry.trig import arsin_ratio, safe_sqrt
from gyroformer.nn.curvature import HeadCurvature
from gyroformer.ops.lifted import lift, sine_cosine
from gyroformer.options import FromOptions, takes
from gyroformer.options.layers import LogitsOptions, head_width


class StereographicLogits(FromOptions, nn.Module):
    r"""Smooth class scores on a product of spaces.

    .. math:: \ell_c(x) = \sum_h \lambda_{p_h}|a_h|\,\sin_{\kappa_h}^{-1}
              \Bigl(\frac{2\langle z_h, a_h\rangle}{(1 + \kappa_h|z_h|^2)|a_h|}\Bigr), \qquad z = (-p) \oplus x

    which is :math:`4\langle x - p, a\rangle` in flat space. With (P, C) the half-angle sine and cosine of p and
    :math:`\hat a = a/|a|`, the sine is linear in the lifted point, one matrix product for all classes:

    .. math:: \langle \lambda x,\ \hat a - 2\kappa P\langle P, \hat a\rangle\rangle
              - 2C\langle P, \hat a\rangle\,(\lambda - 1)
    """

    @takes(LogitsOptions)
    def __init__(self, options: LogitsOptions) -> None:
        super().__init__()
        dim, heads, classes = options.dim, options.heads, options.classes
        own = options.curvature is not None
        self.space = HeadCurvature.from_options(heads, options) if own else None
        width = head_width(dim, heads)
        self.normal = nn.Parameter(torch.empty(classes, heads, width))
        #: tangent vectors at the origin that lead to the points p
        self.offset = nn.Parameter(torch.zeros(classes, heads, width))
        # the factor 4 of the flat case is taken out of the usual initial scale
        nn.init.normal_(self.normal, std=0.25 * dim**-0.5)

    @classmethod
    def of_model(cls, dim: int, heads: int, classes: int | None) -> "StereographicLogits | None":
        """Return the scores of a model whose last space is its own, passed at each call; None without classes."""
        return cls(dim, heads, classes, curvature=None) if classes else None

    def tangent(
        self, u: Float[Tensor, "*B heads d"], k: Float[Tensor, "heads 1"] | None = None
    ) -> Float[Tensor, "*B classes"]:
        """Return scores ``(..., classes)`` of tangent vectors ``(..., heads, d)``."""
        k = self._curvature(k)
        lifted = lift(*sine_cosine(u, k))  # (..., H, d + 1)
        p, cosine = sine_cosine(self.offset, k)  # (classes, H, d), (classes, H, 1)
        size = safe_sqrt((self.normal * self.normal).sum(-1, keepdim=True))
        normal = self.normal / torch.where(size > 0, size, 1.0)
        along = (p * normal).sum(-1, keepdim=True)
        plane = torch.cat((normal - 2 * k * p * along, -2 * cosine * along), dim=-1)  # (classes, H, d + 1)
        sine = torch.einsum("...hd,chd->...ch", lifted, plane)
        z = k.squeeze(-1) * sine * sine
        # rounding may carry the sine past its end at the hyperplane's pole (k > 0)
        sine = torch.where(z > 1, sine * torch.where(z > 1, z, 1.0).rsqrt(), sine)
        weight = (2 * cosine * cosine * size).squeeze(-1)
        return (weight * sine * arsin_ratio(z)).sum(-1)

    def forward(
        self, x: Float[Tensor, "*B heads d"], k: Float[Tensor, "heads 1"] | None = None
    ) -> Float[Tensor, "*B classes"]:
        """Return scores ``(..., classes)`` of points ``(..., heads, d)``; ``k (heads, 1)`` if not its own."""
        k = self._curvature(k)
        return self.tangent(logmap0(x, k=k), k)

    def _curvature(self, k: Tensor | None) -> Tensor:
        if k is None and self.space is None:
            raise UsageError("these logits have no curvature of their own (curvature=None): pass k")
        return k if k is not None else self.space()  # type: ignore[misc]


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
        # about one unit from the origin in every direction, like the points they are compared with
        self.centroid = nn.Parameter(torch.randn(centroids, dim) * dim**-0.5)
        self.linear = nn.Linear(centroids, classes)

    def distances(self, u: Float[Tensor, "N dim"], k: Float[Tensor, "1 1"]) -> Float[Tensor, "N centroids"]:
        r"""Return the distances ``(N, centroids)`` of tangent vectors ``(N, dim)``; ``k (1, 1)``, at most 0.

        In half-angle coordinates :math:`d = 2\sin_\kappa^{-1}|C_y P_x - C_x P_y|`. The square is expanded, so that
        all pairs cost one matrix product and no ``(N, centroids, dim)``; the wide dtype pays for the digits
        that the expansion cancels.
        """
        wide = wide_dtype(u.dtype, u.device)
        (px, cx), (py, cy) = (tuple(part.to(wide) for part in sine_cosine(v, k)) for v in (u, self.centroid))
        square_x, square_y = (px * px).sum(-1, keepdim=True), (py * py).sum(-1, keepdim=True)
        left = torch.cat((square_x, cx * cx, -2 * cx * px), -1)
        right = torch.cat((cy * cy, square_y, cy * py), -1)
        between = (left @ right.mT).clamp(min=0).to(u.dtype)
        return 2 * safe_sqrt(between) * arsin_ratio(k * between)

    def forward(self, u: Float[Tensor, "N dim"], k: Float[Tensor, "1 1"]) -> Float[Tensor, "N classes"]:
        """Return scores ``(N, classes)`` of tangent vectors ``(N, dim)`` at the origin; ``k (1, 1)``."""
        return self.linear(self.distances(u, k))
