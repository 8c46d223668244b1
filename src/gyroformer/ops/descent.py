r"""Points that go downhill, each head in its own space: Adam along geodesics.

A step moves a point to :math:`x \oplus \varepsilon`, so that a vector :math:`\varepsilon` means the same length at
every point. In half-angle coordinates (:mod:`gyroformer.ops.lifted`) that changes

.. math:: \delta P = \frac{\varepsilon - \kappa\langle P, \varepsilon\rangle P}{C}, \qquad
          \delta C = -\kappa\langle P, \varepsilon\rangle

to first order, from which the slope in :math:`\varepsilon` follows. Tangent vectors at the origin would not do: a turn
of one that is far out in a hyperbolic space moves its point by many times its own length.

The second moment is one number for each head of a node, which no rotation of its frame changes.
"""

import torch
from torch import Tensor

from gyroformer.ops.lifted import sine_cosine, translate

#: of Adam's first and second moment
BETAS = 0.9, 0.99
#: no division by a cosine nearer to 0: opposite the origin of a sphere all directions are one
LEAST_COSINE = 1e-3


class Descent:
    """Points ``(N, H, d)`` on their way.

    Args:
        sine: P where they begin.
        cosine: C where they begin, ``(N, H, 1)``.
        k: curvatures ``(H, 1)``.
    """

    def __init__(self, sine: Tensor, cosine: Tensor, k: Tensor) -> None:
        self.sine, self.cosine, self.k = sine, cosine, k
        self.first, self.second, self.steps = torch.zeros_like(sine), torch.zeros_like(cosine), 0

    @torch.no_grad()
    def step(self, by_sine: Tensor, by_cosine: Tensor, rate: float) -> None:
        """Move against the slopes in P and C, about ``rate`` far."""
        self.steps += 1
        slope = self._local(by_sine, by_cosine)
        for moment, value, beta in (
            (self.first, slope, BETAS[0]),
            (self.second, (slope * slope).mean(-1, keepdim=True), BETAS[1]),
        ):
            moment.lerp_(value, 1 - beta)
        first, second = (
            moment / (1 - beta**self.steps)
            for moment, beta in zip((self.first, self.second), BETAS, strict=True)
        )
        tiny = torch.finfo(slope.dtype).tiny ** 0.5
        away = first * (-rate / (second.sqrt() + tiny))
        u, _, _ = translate((self.sine, self.cosine), *sine_cosine(away, self.k), self.k)
        # from the tangent vector: rounding would take P and C off C² + k|P|² = 1, a little more in each step
        self.sine, self.cosine = sine_cosine(u, self.k)

    def _local(self, by_sine: Tensor, by_cosine: Tensor) -> Tensor:
        """Return the slope in a step from each point."""
        p, c = self.sine, self.cosine
        c = torch.where(c.abs() < LEAST_COSINE, LEAST_COSINE, c)
        along = (by_sine * p).sum(-1, keepdim=True)
        return by_sine / c - (self.k * (along / c + by_cosine)) * p
