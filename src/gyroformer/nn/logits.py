"""Class scores of points: signed distances to hyperplanes."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gyroformer.errors import UsageError
from gyroformer.geometry import logmap0
from gyroformer.geometry.trig import arsin_ratio, safe_sqrt
from gyroformer.nn.curvature import HeadCurvature, head_width
from gyroformer.ops.lifted import lift, sine_cosine


class StereographicLogits(nn.Module):
    r"""Smooth class scores on a product of spaces.

    .. math:: \ell_c(x) = \sum_h \lambda_{p_h}|a_h|\,\sin_{\kappa_h}^{-1}
              \Bigl(\frac{2\langle z_h, a_h\rangle}{(1 + \kappa_h|z_h|^2)|a_h|}\Bigr), \qquad z = (-p) \oplus x

    which is :math:`4\langle x - p, a\rangle` in flat space. With (P, C) the half-angle sine and cosine of p and
    :math:`\hat a = a/|a|`, the sine is linear in the lifted point, one matrix product for all classes:

    .. math:: \langle \lambda x,\ \hat a - 2\kappa P\langle P, \hat a\rangle\rangle
              - 2C\langle P, \hat a\rangle\,(\lambda - 1)

    Args:
        dim: width, all heads together.
        heads: number of heads.
        classes: number of classes.
        curvature: initial value, one for all heads or one for each; None if every call brings its own.
        learn_curvature: whether training changes the curvatures.
        share_curvature: one curvature for all heads.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        classes: int,
        *,
        curvature: float | Sequence[float] | None = 0.0,
        learn_curvature: bool = True,
        share_curvature: bool = False,
    ) -> None:
        super().__init__()
        if classes < 1:
            raise UsageError(f"classes must be at least 1, got {classes}")
        self.space = (
            None
            if curvature is None
            else HeadCurvature(heads, initial=curvature, learn=learn_curvature, shared=share_curvature)
        )
        width = head_width(dim, heads)
        self.normal = nn.Parameter(torch.empty(classes, heads, width))
        #: tangent vectors at the origin that lead to the points p
        self.offset = nn.Parameter(torch.zeros(classes, heads, width))
        # the factor 4 of the flat case is taken out of the usual initial scale
        nn.init.normal_(self.normal, std=0.25 * dim**-0.5)

    def tangent(self, u: Tensor, k: Tensor | None = None) -> Tensor:
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

    def forward(self, x: Tensor, k: Tensor | None = None) -> Tensor:
        """Return scores ``(..., classes)`` of points ``(..., heads, d)``; ``k (heads, 1)`` if not its own."""
        k = self._curvature(k)
        return self.tangent(logmap0(x, k=k), k)

    def _curvature(self, k: Tensor | None) -> Tensor:
        if k is None and self.space is None:
            raise UsageError("these logits have no curvature of their own (curvature=None): pass k")
        return k if k is not None else self.space()  # type: ignore[misc]
