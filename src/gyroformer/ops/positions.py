r"""Where the nodes of a graph are, in one of the spaces that models use, and how far apart.

A task knows a model's geometry through this class only: the distances of all pairs, of some pairs, and the
sum over all pairs that the reconstruction loss needs.
"""

import dataclasses as dc
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from gyroformer.geometry import expmap0
from gyroformer.ops.lifted import angle_over_sine, sine_cosine
from gyroformer.ops.native import fused_near, shared
from gyroformer.ops.near_field import NearField, near_log_partition
from gyroformer.ops.near_lists import Draws, renewed_lists
from gyroformer.ops.neighbours import Neighbours
from gyroformer.ops.pairs import (
    check_graph,
    checked_bias,
    checked_points,
    chosen_form,
    log_partition,
    pair_squared_dist,
    squared_dist_rows,
)
from gyroformer.processes.group import count as processes


class Positions(Protocol):
    """Points of N nodes in a space with a distance."""

    def __len__(self) -> int: ...

    @property
    def device(self) -> torch.device:
        """Where the points are stored."""
        ...

    def pair_squared_dist(self, source: Int[Tensor, " M"], target: Int[Tensor, " M"]) -> Float[Tensor, " M"]:
        """Return the squared distances ``(M,)`` of the pairs ``source[i], target[i]``."""
        ...

    def squared_dist_rows(self, rows: Int[Tensor, " R"]) -> Float[Tensor, "R N"]:
        """Return the squared distances ``(R, N)`` of the nodes ``rows`` to all nodes."""
        ...

    def log_partition(
        self,
        neighbours: Neighbours,
        *,
        columns: Tensor | None = None,
        scale: float = 1.0,
        squared: bool = True,
        bias: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Return ``(N,)``: see :func:`gyroformer.ops.pairs.log_partition`."""
        ...

    def near_log_partition(
        self, field: NearField, *, squared: bool = True, bias: tuple[Tensor, Tensor] | None = None
    ) -> Tensor:
        """Return ``(N,)``: see :mod:`gyroformer.ops.near_field`."""
        ...

    def renewed_lists(
        self, lists: Int[Tensor, "N K"], neighbours: Neighbours, pull: Tensor | None = None
    ) -> Int[Tensor, "N K"]:
        """Return lists of near nodes for where the nodes are: see :mod:`gyroformer.ops.near_lists`."""
        ...

    def coordinates(self) -> Tensor:
        """Return the nodes as tangent vectors at the origin, ``(N, heads, width)``: always finite."""
        ...

    def points(self) -> Tensor:
        """Return the nodes as points in the coordinates of their space, ``(N, heads, width)``."""
        ...


@dc.dataclass(frozen=True, slots=True)
class StereographicPositions:
    r"""Points of a product of stereographic spaces in half-angle coordinates (see ``gyroformer.ops.lifted``).

    Attributes:
        sine: :math:`P`, ``(N, heads, d)``.
        cosine: :math:`C`, ``(N, heads, 1)``; the point is :math:`x = P/C`.
        k: curvatures, ``(heads, 1)``.
    """

    sine: Float[Tensor, "N heads d"]
    cosine: Float[Tensor, "N heads 1"]
    k: Float[Tensor, "heads 1"]

    @classmethod
    def from_tangent(cls, u: Tensor, k: Tensor) -> "StereographicPositions":
        r"""Return the points :math:`\exp_0(u)`; ``u (N, heads, d)``, ``k (heads, 1)``."""
        return cls(*sine_cosine(u, k), k)

    @classmethod
    def flat(cls, h: Tensor) -> "StereographicPositions":
        """Return the vectors ``h (N, d)`` of a Euclidean space, whose distances are :math:`|h_i - h_j|`."""
        # a stereographic space at k = 0 measures twice the Euclidean distance
        sine = 0.5 * h.unsqueeze(1)
        return cls(sine, torch.ones_like(sine[..., :1]), h.new_zeros(1, 1))

    def __len__(self) -> int:
        return self.sine.size(0)

    @property
    def device(self) -> torch.device:
        """Where the points are stored."""
        return self.sine.device

    def pair_squared_dist(self, source: Int[Tensor, " M"], target: Int[Tensor, " M"]) -> Float[Tensor, " M"]:
        """Return the squared distances ``(M,)`` of the pairs ``source[i], target[i]``."""
        return pair_squared_dist(self.sine, self.cosine, self.k, source, target)

    def squared_dist_rows(self, rows: Int[Tensor, " R"]) -> Float[Tensor, "R N"]:
        """Return the squared distances ``(R, N)`` of the nodes ``rows`` to all nodes."""
        return squared_dist_rows(self.sine, self.cosine, self.k, rows)

    def log_partition(
        self,
        neighbours: Neighbours,
        *,
        columns: Tensor | None = None,
        scale: float = 1.0,
        squared: bool = True,
        bias: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Return ``(N,)``: see :func:`gyroformer.ops.pairs.log_partition`."""
        points = self.sine, self.cosine, self.k
        return log_partition(*points, neighbours, columns=columns, scale=scale, squared=squared, bias=bias)

    def near_log_partition(
        self,
        field: NearField,
        *,
        squared: bool = True,
        bias: tuple[Tensor, Tensor] | None = None,
        form: str = "auto",
    ) -> Tensor:
        """Return ``(N,)``: see :mod:`gyroformer.ops.near_field`; ``form`` is native, eager or auto."""
        check_graph(self.sine, field.neighbours, None)
        bias = checked_bias(bias, self.sine)
        sine, cosine, k = checked_points(self.sine, self.cosine, self.k)
        if chosen_form(form, sine, cosine, k, *(bias or ())) == "native":
            native = fused_near if processes() == 1 else shared
            points = fused_near.packed(sine, cosine)
            return native.near_log_partition(points, k, bias, field, squared=squared)
        return near_log_partition(self.pair_squared_dist, field, squared=squared, bias=bias)

    def renewed_lists(
        self,
        lists: Int[Tensor, "N K"],
        neighbours: Neighbours,
        pull: Tensor | None = None,
        *,
        exact: bool = False,
        form: str = "auto",
    ) -> Int[Tensor, "N K"]:
        """Return lists of near nodes for where the nodes are: see :mod:`gyroformer.ops.near_lists`.

        With ``exact`` every node is looked at. ``form`` is native, eager or auto.
        """
        draws = None if exact else Draws.usual(lists.shape[1], len(self))
        sine, cosine, k = (t.detach() for t in checked_points(self.sine, self.cosine, self.k))
        pull = None if pull is None else pull.detach().to(sine.dtype)
        if chosen_form(form, sine, cosine, k) != "native":
            return renewed_lists(self.pair_squared_dist, lists, neighbours, pull, draws)
        points, seed = fused_near.packed(sine, cosine), int(torch.randint(1 << 62, ()))
        native = fused_near if processes() == 1 else shared
        return native.renewed_lists(points, k, pull, neighbours, lists, draws=draws, seed=seed)

    def coordinates(self) -> Tensor:
        r"""Return the tangent vectors :math:`\log_0 x`, ``(N, heads, d)``: finite even at the antipode."""
        z = self.k * (self.sine * self.sine).sum(-1, keepdim=True)
        return self.sine * angle_over_sine(z, self.cosine, torch.finfo(z.dtype).tiny)

    def points(self) -> Tensor:
        """Return the stereographic coordinates x, ``(N, heads, d)``."""
        return expmap0(self.coordinates(), k=self.k)
