r"""New points beside points that stay where they are: nodes that were not there when a model was trained.

A new node u begins at the curved midpoint of its neighbours N and moves until these come before all others O, the other
new nodes among them, and until it comes early among the nodes that each neighbour v sees:

.. math:: L_u = \frac{1}{|N|} \sum_{v \in N} T \log\Bigl(1 + \sum_{w \in O} e^{(d_{uv}^2 - d_{uw}^2)/T}\Bigr)
          + \beta \log\Bigl(1 + e^{d_{uv}^2} \sum_{w \not\sim v} e^{-d_{vw}^2}\Bigr).

Both are terms of the loss of reconstruction as far as they say something about an order. Without the second, points go
far out, where an order is easily had and nobody sees them; with the loss itself, which also draws neighbours together
that are in order already, order is lost, for the known points cannot give way.

Far nodes weigh nothing, so each new node looks at its neighbours and the nearest others only, which are found anew a
few times. All new points move at once; derivatives are in closed form, by a C++ kernel
(:mod:`gyroformer.ops.native.fused_placing`) where there is one.
"""

import dataclasses as dc
from collections.abc import Iterator

import torch
from torch import Tensor

from gyroformer.ops.descent import Descent
from gyroformer.ops.lifted import lift, sine_cosine, unlift
from gyroformer.ops.native import fused_placing
from gyroformer.ops.native.fused_near import packed
from gyroformer.ops.pairs import chosen_form, squared_dist_rows
from gyroformer.ops.positions import StereographicPositions

#: T above: by how much squared distances differ before a node counts as clearly farther
TEMPERATURE = 0.5
#: β above: what the order that the neighbours see counts beside that of the new node
SEEN = 0.1
#: steps, the size of the first (they shrink to 0), and after how many the nearest others are found anew
STEPS, RATE, REFRESH = 64, 0.15, 16
#: after how many steps new nodes see where the others have gone; with the kernel after each
LOOK = 4
#: nodes that each new node looks at come in multiples of this, and at least half as many of them are no neighbours
NEAR = 64
#: deviation of what is added to a start: two new nodes with the same neighbours must not stay at one point
SPREAD = 0.1
#: distances that are formed at a time
BLOCK = 4_000_000
#: no quotient by a squared chord below this: two points at one place have no direction from each other
LEAST_CHORD = 1e-12
#: nor by a squared cosine below this: two points opposite each other on a sphere have none either
LEAST_COSINE = 1e-6
#: curvatures below which a space counts as flat: what that changes in a distance is less than float32 can tell
FLAT = 1e-6


def rounds(known: Tensor, source: Tensor, target: Tensor) -> Iterator[Tensor]:
    """Yield the nodes that can be placed one round after the other, each with a neighbour that has a place by then.

    Args:
        known: ``(N,)``, True for nodes that have a place.
        source: nodes without a place, ``(E,)``.
        target: their neighbours ``(E,)``; an edge of two nodes without a place comes in both directions.
    """
    placed = known.clone()
    while True:
        ready = source[placed[target] & ~placed[source]].unique()
        if not ready.numel():
            return
        yield ready
        placed[ready] = True


def place_nodes(
    positions: StereographicPositions,
    nodes: Tensor,
    source: Tensor,
    target: Tensor,
    placed: Tensor,
    crowd: Tensor,
    *,
    steps: int = STEPS,
    spread: float = SPREAD,
    form: str = "auto",
) -> StereographicPositions:
    """Return the positions with ``nodes`` moved to where their neighbours are nearest; all others stay.

    Args:
        positions: points of all N nodes; those of ``nodes`` do not matter.
        nodes: the nodes to place, ``(R,)``, ascending.
        source: of each edge the node to be placed, ``(E,)``.
        target: its neighbour ``(E,)``.
        placed: ``(N,)``, True for nodes that have a place: neighbours among them count, and of the others ``nodes``
            alone are kept away from.
        crowd: how many others each node has near it, the logarithm of the last sum above, ``(N,)``.
        steps: how many; 0 for where they begin.
        spread: deviation of what is added to the midpoints that they begin at.
        form: native, eager, or auto for the first where it can be had.
    """
    edges = _Edges(torch.searchsorted(nodes, source), target, placed[target], nodes.numel())
    field = _Field(positions, nodes, placed, crowd, form=form)
    u = _midpoints(positions, edges)
    generator = torch.Generator().manual_seed(0)
    u = u + spread * torch.randn(u.shape, generator=generator, dtype=u.dtype).to(u.device)
    way = Descent(*sine_cosine(u, positions.k), positions.k)
    for step in range(steps):
        field.move(way.sine, way.cosine)
        if step % REFRESH == 0:
            field.find(edges)
        way.step(*field.slopes(look=step % LOOK == 0), RATE * (1 - step / steps))
    field.move(way.sine, way.cosine)
    return field.positions()


class _Edges:
    """The edges of the nodes to be placed.

    Args:
        row: of each edge the node to be placed, by its place among these, ``(E,)``.
        target: its neighbour ``(E,)``.
        counts: whether the neighbour has a place, ``(E,)``.
        rows: number of nodes to be placed.
    """

    def __init__(self, row: Tensor, target: Tensor, counts: Tensor, rows: int) -> None:
        self.row, self.target, self.counts = row, target, counts
        self.degree = row[counts].bincount(minlength=rows)


def _midpoints(positions: StereographicPositions, edges: _Edges) -> Tensor:
    """Return the midpoints of neighbours as tangent vectors ``(R, H, d)``."""
    ambient = lift(positions.sine, positions.cosine)
    row, target = edges.row[edges.counts], edges.target[edges.counts]
    sums = ambient.new_zeros(edges.degree.numel(), *ambient.shape[1:]).index_add(0, row, ambient[target])
    return unlift(sums, positions.k)


@dc.dataclass(slots=True)
class _Part:
    """Some of the nodes to be placed, and the nodes that each looks at.

    Attributes:
        rows: which of the nodes to be placed, ``(r,)``.
        columns: nodes ``(r, W)``: its neighbours, then the nearest others.
        degree: number of neighbours, ``(r, 1)``.
        real: ``(r, W)``, False where there is no further node.
        sine: P of the columns, ``(H, r, W, d)``.
        cosine: C of the columns, ``(H, r, W, 1)``.
        crowd: how crowded the columns are, ``(r, W)``.
    """

    rows: Tensor
    columns: Tensor
    degree: Tensor
    real: Tensor
    sine: Tensor = dc.field(init=False)
    cosine: Tensor = dc.field(init=False)
    crowd: Tensor = dc.field(init=False)


@dc.dataclass(frozen=True, slots=True)
class _Lists:
    """What the nodes to be placed look at, as the kernel reads it.

    Attributes:
        order: where each of them stands among the nodes to be placed, ``(R,)``.
        nodes: which nodes they are, ``(R,)``.
        start: where the columns of each begin, ``(R + 1,)``.
        columns: the nodes that they look at, int32, -1 for none.
        degree: how many of these are neighbours, int32 ``(R,)``.
    """

    order: Tensor
    nodes: Tensor
    start: Tensor
    columns: Tensor
    degree: Tensor

    @classmethod
    def of(cls, parts: list[_Part], nodes: Tensor) -> "_Lists":
        order = torch.cat([part.rows for part in parts])
        width = torch.cat([torch.full_like(part.rows, part.columns.size(1)) for part in parts])
        columns = [part.columns.masked_fill(~part.real, -1).flatten() for part in parts]
        degree = torch.cat([part.degree.flatten() for part in parts])
        start = torch.cat((width.new_zeros(1), width.cumsum(0)))
        return cls(order, nodes[order], start, torch.cat(columns).to(torch.int32), degree.to(torch.int32))

    def slopes(self, points: Tensor, k: Tensor, crowd: Tensor, **loss: float) -> Tensor:
        """Return the slopes ``(R, H (d + 1))``, in the order of the nodes to be placed."""
        found = fused_placing.slopes(
            points, k, crowd, self.nodes, self.start, self.columns, self.degree, **loss
        )
        return torch.empty_like(found).index_copy_(0, self.order, found)


class _Field:
    """All points, of which some move."""

    def __init__(
        self,
        positions: StereographicPositions,
        nodes: Tensor,
        placed: Tensor,
        crowd: Tensor,
        *,
        form: str = "auto",
    ) -> None:
        self.sine, self.cosine = positions.sine.clone(), positions.cosine.clone()
        self.k, self.nodes, self.crowd = positions.k, nodes, crowd
        native = chosen_form(form, self.sine, self.cosine, self.k) == "native"
        #: the points as the kernel reads them; None where there is none
        self.packed = packed(self.sine, self.cosine) if native else None
        self.parts: list[_Part] = []
        present = placed.clone()
        present[nodes] = True
        self.absent = ~present

    def move(self, sine: Tensor, cosine: Tensor) -> None:
        self.sine[self.nodes], self.cosine[self.nodes] = sine, cosine
        if self.packed is not None:
            self.packed[self.nodes] = packed(sine, cosine)

    def positions(self) -> StereographicPositions:
        return StereographicPositions(self.sine, self.cosine, self.k)

    def find(self, edges: _Edges) -> None:
        """Find the nodes that each node to be placed looks at now, for those of like degree together."""
        self.parts = []
        total, degree = self.absent.numel(), edges.degree
        width = (degree.clamp(min=1).double().log2() / 4).ceil().long()  # by powers of sixteen
        for size in width.unique().tolist():
            alike = (width == size).nonzero().flatten()
            blocks = -(-(int(degree[alike].max()) + NEAR // 2) // NEAR)
            wide = min(total, blocks * NEAR)
            self.parts += [self._part(rows, edges, wide) for rows in alike.split(max(1, BLOCK // total))]
        if self.packed is not None:
            self.lists = _Lists.of(self.parts, self.nodes)

    def _part(self, rows: Tensor, edges: _Edges, wide: int) -> "_Part":
        place = torch.full_like(edges.degree, -1)
        place[rows] = torch.arange(rows.numel(), device=rows.device)
        mine = place[edges.row] >= 0
        far = squared_dist_rows(self.sine, self.cosine, self.k, self.nodes[rows])
        far[:, self.absent] = torch.inf
        far[place[rows], self.nodes[rows]] = torch.inf
        # neighbours without a place count neither way
        far[place[edges.row[mine]], edges.target[mine]] = torch.inf
        near = mine & edges.counts
        far[place[edges.row[near]], edges.target[near]] = -1.0
        closest = far.topk(wide, largest=False)
        return _Part(rows, closest.indices, edges.degree[rows].unsqueeze(1), closest.values.isfinite())

    def _look(self, part: _Part) -> None:
        """Take the present points of the nodes that a part looks at, some of which move."""
        columns = part.columns.flatten()
        for name, values in (("sine", self.sine), ("cosine", self.cosine)):
            taken = values.transpose(0, 1).index_select(1, columns)
            setattr(part, name, taken.unflatten(1, part.columns.shape))
        part.crowd = self.crowd[part.columns]

    def slopes(self, *, look: bool = True) -> tuple[Tensor, Tensor]:
        """Return the derivatives of the loss in P ``(R, H, d)`` and C ``(R, H, 1)`` of the nodes to be placed.

        Without ``look`` the others count as where they were seen last, which the kernel does not need.
        """
        sine, cosine = self.sine[self.nodes], self.cosine[self.nodes]
        if self.packed is not None:
            arguments = {"temperature": TEMPERATURE, "seen": SEEN}
            found = self.lists.slopes(self.packed, self.k.flatten(), self.crowd, **arguments)
            by_sine, by_cosine = found.split((sine[0].numel(), self.k.numel()), 1)
            return by_sine.view_as(sine), by_cosine.reshape(cosine.shape)
        for part in self.parts:
            if look:
                self._look(part)
            sine[part.rows], cosine[part.rows] = self._slopes_of(part)
        return sine, cosine

    def _slopes_of(self, part: _Part) -> tuple[Tensor, Tensor]:
        here = self.nodes[part.rows]
        near = torch.arange(part.columns.size(1), device=here.device) < part.degree
        p, c = part.sine, part.cosine
        own = (x[here].transpose(0, 1).unsqueeze(2) for x in (self.sine, self.cosine))  # (H, r, 1, d)
        delta = c * next(own) - next(own) * p
        chord = (delta * delta).sum(-1)  # (H, r, W)
        both = [_squared_and_slope(q, k) for q, k in zip(chord, self.k.flatten().tolist(), strict=True)]
        squared = torch.stack([one for one, _ in both]).sum(0)
        weight = _weights(squared, near, part)
        pull = (2 * weight * torch.stack([slope for _, slope in both])).unsqueeze(2)  # (H, r, 1, W)
        sine, cosine = pull @ (c * delta), -pull @ (p * delta).sum(-1, keepdim=True)
        return sine.squeeze(2).transpose(0, 1), cosine.squeeze(2).transpose(0, 1)


def _weights(squared: Tensor, near: Tensor, part: _Part) -> Tensor:
    """Return the derivatives ``(r, W)`` of the loss in the squared distances."""
    scaled = squared / TEMPERATURE
    others = (-scaled).masked_fill(near | ~part.real, -torch.inf)
    sums = others.logsumexp(1, keepdim=True)
    pulled = torch.sigmoid(sums + scaled).where(near, 0.0)
    pushed = torch.where(sums > -torch.inf, (others - sums).exp(), 0.0)
    seen = torch.sigmoid(squared + part.crowd).where(near, 0.0)
    return (pulled - pulled.sum(1, keepdim=True) * pushed + SEEN * seen) / part.degree.clamp(min=1)


def _distance(q: Tensor, k: float) -> Tensor:
    """Return the distance of a squared half chord q, for one curvature that is not learned."""
    if abs(k) < FLAT:
        return 2 * q.sqrt()
    root = abs(k) ** 0.5
    x = q.sqrt().mul_(root)
    return (torch.asinh(x) if k < 0 else torch.asin(x.clamp_(max=1.0))).mul_(2 / root)


def _squared_and_slope(q: Tensor, k: float) -> tuple[Tensor, Tensor]:
    r"""Return :math:`d^2` and its derivative in q, :math:`2d/\sqrt{q(1 - \kappa q)}`."""
    q = q.clamp(min=LEAST_CHORD)
    distance = _distance(q, k)
    # at the antipode, where 1 - k q is 0, every direction is as good
    return distance * distance, 2 * distance / (q * (1 - k * q).clamp(min=LEAST_COSINE)).sqrt()
