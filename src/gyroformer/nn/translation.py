"""A bias for points of hyperbolic spaces: translation by Möbius addition."""

import torch
from torch import Tensor, nn

from gyroformer.ops.lifted import sine_cosine, translate_hyperbolic


class MobiusBias(nn.Module):
    r"""A learned translation, :math:`x \oplus_\kappa \exp_0(b)`, of points kept as tangent vectors at the origin.

    It is the same point as :math:`\exp_x` of b transported from the origin to x, and x + b at k = 0.

    Args:
        heads: number of heads.
        width: width of a head.
    """

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(heads, width))

    def forward(self, u: Tensor, k: Tensor, scale: float = 1.0) -> Tensor:
        """Return the translated tangent vectors ``(..., heads, d)``, in units of ``scale``; ``k (heads, 1)``."""
        bias = sine_cosine(scale * self.bias, k)
        return translate_hyperbolic(sine_cosine(scale * u, k), *bias, k) / scale
