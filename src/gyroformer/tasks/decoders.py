r"""From the distance of two nodes to the probability that an edge joins them.

.. math:: p = \frac{1}{e^{(d^2 - r)/t} + 1}

the Fermi–Dirac distribution with radius r and temperature t; or the same with the plain distance d. Both are kept as
logits, which neither overflow nor saturate. With degrees :math:`g_u`, the numbers of edges that the nodes are known to
have, the logit of a pair is

.. math:: z_{uv} = (r - d_{uv}^2)/t + a\,(\log(1 + g_u) + \log(1 + g_v)),

because a node with many edges is likelier to have another, at the same distance: a distance alone cannot say that of a
hub without bringing all its neighbours close to each other. An edge that is known is not counted in the degrees of its
own ends.

A distance is the same both ways. In a directed graph the logit of an edge from u to v is

.. math:: z_{uv} = (r - d_{uv}^2)/t + a\log(1 + g^+_u) + b\log(1 + g^-_v) + c\,(\rho_u - \rho_v)

with the numbers :math:`g^+` of edges that leave a node and :math:`g^-` of those that come to it, and its distance
:math:`\rho` from the origin: if c > 0, edges lead to the centre.

After training the logits are calibrated, :math:`\alpha z + \beta`, on pairs that were held out.
"""

import math
from typing import TYPE_CHECKING, Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from gyroformer.errors import UsageError
from gyroformer.options import check_choice
from gyroformer.tasks.scores import radius

if TYPE_CHECKING:
    from gyroformer.ops.positions import Positions

DecoderKind = Literal["fermi-dirac", "distance"]
DECODERS: tuple[DecoderKind, ...] = ("fermi-dirac", "distance")


class LinkDecoder(nn.Module):
    """Logits of edges from squared distances and, if given, degrees.

    Args:
        kind: ``"fermi-dirac"`` for squared distances, ``"distance"`` for plain ones.
        radius: r, what a distance must stay below for an edge to be likelier than none.
        temperature: t > 0, how soft that border is.
        learn: whether training changes both. What is learned is the change (of r, and of log t, so that t stays
            positive): weight decay then pulls towards the given values, not to zero.
        degrees: whether the nodes' degrees count; :meth:`know` tells them.
        directed: whether an edge from u to v is another than one from v to u.
    """

    degree: Tensor
    calibration: Tensor

    def __init__(
        self,
        kind: DecoderKind = "fermi-dirac",
        *,
        radius: float = 2.0,
        temperature: float = 1.0,
        learn: bool = False,
        degrees: bool = False,
        directed: bool = False,
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
        # one for the first node of a pair and one for the second where these are not the same
        self.degree_weight = nn.Parameter(torch.zeros((2, 1) if directed else ())) if degrees else None
        self.depth_weight = nn.Parameter(torch.zeros(())) if directed else None
        self.register_buffer("degree", torch.zeros(2, 0), persistent=False)
        self.register_buffer("calibration", torch.tensor([1.0, 0.0]))

    @property
    def radius(self) -> Tensor | float:
        """The present r."""
        return self._radius if self.radius_change is None else self._radius + self.radius_change

    @property
    def temperature(self) -> Tensor | float:
        """The present t."""
        change = self.log_temperature_change
        return self._temperature if change is None else self._temperature * change.exp()

    @property
    def directed(self) -> bool:
        """Whether an edge from u to v is another than one from v to u."""
        return self.depth_weight is not None

    def know(self, edges: Tensor, nodes: int) -> Self:
        """Take the degrees, as first and as second node of a pair, of the known edges ``(2, E)``; return itself."""
        ends = edges if self.directed else (edges.flatten(),) * 2
        self.degree = torch.stack([end.bincount(minlength=nodes) for end in ends]).float()
        return self

    def forward(self, squared_dist: Tensor) -> Tensor:
        """Return what the distances alone say, of the shape of ``squared_dist``."""
        far = squared_dist if self.kind == "fermi-dirac" else plain_distance(squared_dist)
        return (self.radius - far) / self.temperature

    def pairs(self, positions: "Positions", pairs: Tensor, *, known: bool = False) -> Tensor:
        """Return the logits ``(M,)`` of pairs ``(2, M)``, not calibrated.

        Args:
            positions: where the nodes are.
            pairs: the nodes.
            known: whether the pairs are known edges, each of which is not to count itself.
        """
        logit = self(positions.pair_squared_dist(*pairs))
        if self.degree_weight is not None:
            logit = logit + (
                self.degree_weight * torch.log1p(self.degree.gather(1, pairs) - float(known))
            ).sum(0)
        if self.depth_weight is not None:
            depth = radius(positions)
            logit = logit + self.depth_weight * (depth[pairs[0]] - depth[pairs[1]])
        return logit

    def rows(self, positions: "Positions", rows: Tensor) -> Tensor:
        """Return the logits ``(R, N)`` of pairs of the nodes ``rows`` with all nodes, not calibrated."""
        logit = self(positions.squared_dist_rows(rows))
        if self.degree_weight is not None:
            first, second = self.degree_weight * torch.log1p(self.degree)
            logit = logit + (first[rows].unsqueeze(1) + second)
        if self.depth_weight is not None:
            depth = radius(positions)
            logit = logit + self.depth_weight * (depth[rows].unsqueeze(1) - depth)
        return logit

    def calibrated(self, logit: Tensor) -> Tensor:
        """Return log odds that hold for pairs of which half are edges."""
        scale, shift = self.calibration.to(logit.dtype)
        return scale * logit + shift

    def about(self) -> dict[str, Any]:
        """Return what the decoder has learned, for ``results.json``."""
        degrees, depth = self.degree_weight, self.depth_weight
        return {
            "kind": self.kind,
            "radius": float(self.radius),
            "temperature": float(self.temperature),
            "degree_weight": None
            if degrees is None
            else degrees.flatten().tolist()
            if self.directed
            else float(degrees),
            "depth_weight": None if depth is None else float(depth),
            "calibration": self.calibration.tolist(),
        }

    @torch.no_grad()
    def calibrate(self, edges: Tensor, others: Tensor) -> None:
        """Set α > 0 and β by maximum likelihood on logits of pairs that training has not seen (Platt 1999).

        The targets are a little inside of 0 and 1, as Platt has them, so that logits which tell all pairs apart do not
        send α to infinity.
        """
        # a few thousand numbers, in float64, which not every device has
        logit = torch.cat((edges, others)).double().cpu()
        high, low = (edges.numel() + 1) / (edges.numel() + 2), 1 / (others.numel() + 2)
        truth = torch.where(
            torch.arange(logit.numel(), device=logit.device) < edges.numel(), high, low
        ).double()
        found = _platt(logit, truth)
        if found is not None:
            self.calibration = self.calibration.new_tensor(found)

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        # runs of versions without calibration have none
        state_dict.setdefault(f"{prefix}calibration", self.calibration.new_tensor([1.0, 0.0]))
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _platt(logit: Tensor, truth: Tensor, steps: int = 100) -> tuple[float, float] | None:
    """Return the maximum of the likelihood by Newton's method with halved steps; None if the scale is not above 0."""
    scale = float(logit.std()) or 1.0
    x = torch.stack((logit / scale, torch.ones_like(logit)), 1)
    w = logit.new_tensor([1.0, 0.0])

    def loss(w: Tensor) -> float:
        z = x @ w
        return float((softplus(z) - truth * z).sum())

    for _ in range(steps):
        p = (x @ w).sigmoid()
        gradient = x.mT @ (p - truth)
        curvature = x.mT @ (x * (p * (1 - p)).unsqueeze(1)) + 1e-9 * torch.eye(
            2, dtype=x.dtype, device=x.device
        )
        step = torch.linalg.solve(curvature, gradient)
        before, size = loss(w), 1.0
        while loss(w - size * step) > before and size > 1e-6:
            size /= 2
        w = w - size * step
        if float(step.abs().max()) * size < 1e-10:
            break
    return (float(w[0]) / scale, float(w[1])) if float(w[0]) > 0 else None


def plain_distance(squared_dist: Tensor) -> Tensor:
    """Return the square root; where two nodes coincide, and it has no derivative, the derivative counts as 0."""
    apart = squared_dist > 0
    return torch.where(apart, torch.where(apart, squared_dist, 1.0).sqrt(), 0.0)
