"""Layer normalisation of points."""

from collections.abc import Sequence

from torch import Tensor, nn

from gyroformer.nn.curvature import head_width
from gyroformer.nn.tangent import PointLayer


class StereographicLayerNorm(PointLayer):
    r"""Layer normalisation, :math:`\exp_0(\mathrm{LN}(\log_0 x))`, over the joined tangent vector of all heads.

    Args:
        dim: width, all heads together.
        heads: number of heads.
        curvature: initial value, one for all heads or one for each.
        learn_curvature: whether training changes the curvatures.
        share_curvature: one curvature for all heads.
    """

    def __init__(
        self,
        dim: int,
        *,
        heads: int = 1,
        curvature: float | Sequence[float] = 0.0,
        learn_curvature: bool = True,
        share_curvature: bool = False,
    ) -> None:
        super().__init__(
            heads, curvature=curvature, learn_curvature=learn_curvature, share_curvature=share_curvature
        )
        head_width(dim, heads)
        self.norm = nn.LayerNorm(dim)

    def tangent(self, u: Tensor) -> Tensor:
        """Return the normalised tangent vectors."""
        return self.norm(u)
