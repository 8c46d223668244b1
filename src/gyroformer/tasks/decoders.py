r"""From the distance of two nodes to the probability that an edge joins them.

.. math:: p = \frac{1}{e^{(d^2 - r)/t} + 1}

the Fermi–Dirac distribution with radius r and temperature t; or the same with the plain distance d. Both are kept as
logits, :math:`(r - d^2)/t`, which neither overflow nor saturate.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from gyroformer.errors import UsageError
from gyroformer.options import check_choice

DecoderKind = Literal["fermi-dirac", "distance"]
DECODERS: tuple[DecoderKind, ...] = ("fermi-dirac", "distance")


class LinkDecoder(nn.Module):
    """Logits of edges from squared distances.

    Args:
        kind: ``"fermi-dirac"`` for squared distances, ``"distance"`` for plain ones.
        radius: r, what a distance must stay below for an edge to be likelier than none.
        temperature: t > 0, how soft that border is.
        learn: whether training changes both. What is learned is the change (of r, and of log t, so that t stays
            positive): weight decay then pulls towards the given values, not to zero.
    """

    def __init__(
        self,
        kind: DecoderKind = "fermi-dirac",
        *,
        radius: float = 2.0,
        temperature: float = 1.0,
        learn: bool = False,
    ) -> None:
        super().__init__()
        check_choice("decoder", kind, DECODERS)
        if not (math.isfinite(radius) and math.isfinite(temperature) and temperature > 0):
            raise UsageError(
                f"the decoder needs a finite radius and a positive temperature, got {radius} and {temperature}"
            )
        self.kind, self._radius, self._temperature = kind, radius, temperature
        self.radius_change = nn.Parameter(torch.zeros(())) if learn else None
        self.log_temperature_change = nn.Parameter(torch.zeros(())) if learn else None

    @property
    def radius(self) -> Tensor | float:
        """The present r."""
        return self._radius if self.radius_change is None else self._radius + self.radius_change

    @property
    def temperature(self) -> Tensor | float:
        """The present t."""
        change = self.log_temperature_change
        return self._temperature if change is None else self._temperature * change.exp()

    def forward(self, squared_dist: Tensor) -> Tensor:
        """Return the logits, of the shape of ``squared_dist``."""
        far = squared_dist if self.kind == "fermi-dirac" else plain_distance(squared_dist)
        return (self.radius - far) / self.temperature


def plain_distance(squared_dist: Tensor) -> Tensor:
    """Return the square root; where two nodes coincide, and it has no derivative, the derivative counts as 0."""
    apart = squared_dist > 0
    return torch.where(apart, torch.where(apart, squared_dist, 1.0).sqrt(), 0.0)
