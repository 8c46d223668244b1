r"""An exact index for nearest nodes in few dimensions: cells around drawn centres, and a k-d tree in each.

A k-d tree knows Euclidean distances only. Seen from the centre c of its cell, a point x of a space with
:math:`\kappa \le 0` has the tangent vector :math:`2\log_c x`; on a sphere it has a place in the ambient space. Both
maps never stretch: the Euclidean distance of two images is at most that of the points, and near the centre about
that. So the tree gives candidates that are a superset of what is asked for, and the triangle inequality passes over
whole cells. Candidates are ranked by their true distances; the result is that of comparing with all nodes.

In many dimensions every point is about equally far from every cell, and nothing can be passed over: :func:`worthwhile`
says where the index is faster than comparing with all.
"""

import dataclasses as dc
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gyroformer.ops.lifted import lift, translate_hyperbolic
from gyroformer.ops.pairs import squared_dist_lists, squared_dist_rows

Array = NDArray[Any]

#: coordinates in all, up to which the index is faster than comparing with all (results/nearest.csv): where one cell is
#: enough, and where points lie far out in a hyperbolic space
WIDEST, WIDEST_FAR = 10, 5
#: queries and nodes from which building it pays
QUERIES, NODES = 256, 4096
#: √|k| times a point's distance up to which one cell is enough, and the number of cells beyond
NEAR, CELLS = 3.0, 48
#: candidates beyond those wanted
SPARE = 8
#: candidates of one cell beyond which a query is left to a comparison with all nodes: a multiple of those wanted, or
#: a share of the cell, whichever is more
MANY, MOST = 16, 0.25
#: candidates that are listed at once: some hundred MB of them and their distances
LISTED = 1 << 22


def worthwhile(sine: Tensor, k: Tensor, queries: int) -> bool:
    """Return whether the index is faster for so many queries among the points ``(N, H, d)`` of curvatures ``k``."""
    nodes, heads, width = sine.shape
    if sine.device.type != "cpu" or nodes < NODES or queries < QUERIES or heads * width > WIDEST:
        return False
    return heads * width <= WIDEST_FAR or farthest(sine, k) <= NEAR


def farthest(sine: Tensor, k: Tensor) -> float:
    """Return the largest √|k| d of a point from the origin in a hyperbolic space, 0 without one."""
    root = k.reshape(-1, 1).double().clamp(max=0).abs().sqrt()
    return float((2 * (root * sine.double().norm(dim=-1, keepdim=True)).asinh()).max())


@dc.dataclass(frozen=True, slots=True)
class _Cell:
    """The nodes nearest to a centre, and their images seen from it."""

    number: int
    nodes: Array
    tree: Any
    centre: int
    radius: float


class NearestIndex:
    """Finds the nearest nodes of points of a product of spaces, in half-angle coordinates.

    Args:
        sine: P ``(N, H, d)``.
        cosine: C ``(N, H, 1)``.
        k: curvatures ``(H, 1)``.
        cells: how many; by default one, or many where points lie far out in a hyperbolic space.
    """

    def __init__(self, sine: Tensor, cosine: Tensor, k: Tensor, *, cells: int | None = None) -> None:
        self.points = sine, cosine, k.reshape(-1)
        wide = sine.double(), cosine.double(), k.reshape(-1, 1).double()
        self._wide = wide
        self._origin = _image(wide, None)
        count = min(cells or (CELLS if farthest(sine, k) > NEAR else 1), len(sine))
        # rounding of float32 in a difference C_v P_u − C_u P_v, and of images
        size = float((wide[1].abs() * wide[0].norm(dim=-1, keepdim=True)).max())
        self.slack = 32 * float(torch.finfo(sine.dtype).eps) * (1 + size)
        drawn = torch.randperm(len(sine), generator=torch.Generator().manual_seed(0))[:count]
        self.far = (
            squared_dist_rows(*self.points, drawn).clamp(min=0).sqrt().double().cpu().numpy()
        )  # (cells, N)
        self.owner = owner = self.far.argmin(0)
        self.cells = [
            self._cell(number, int(drawn[number]))
            for number in range(count)
            if (owner == number).any()  # of centres at one place, one has a cell
        ]

    def _cell(self, number: int, centre: int) -> _Cell:
        from scipy.spatial import cKDTree  # few graphs need it, and every command would wait for it

        nodes = np.flatnonzero(self.owner == number)
        tree = cKDTree(self._seen(torch.from_numpy(nodes), centre))
        return _Cell(number, nodes, tree, centre, float(self.far[number][nodes].max()))

    def _seen(self, nodes: Tensor, centre: int) -> Array:
        """Return the images of nodes seen from a cell's centre."""
        if len(self.far) == 1:
            return self._origin[nodes.cpu().numpy()]
        sine, cosine, k = self._wide
        return _image((sine[nodes], cosine[nodes], k), (sine[centre], cosine[centre]))

    def query(self, rows: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the ``count`` nearest other nodes of each of ``rows`` and their squared distances.

        Nodes at equal distance come in their own order. The third result says for which rows the index cannot tell at
        a fair price (many nodes at one place, or all about equally far): their results are not to be used.
        """
        if not rows.numel():
            return self._query(rows, count)
        widest = max(self._most(cell, count + SPARE) for cell in self.cells)
        parts = [self._query(some, count) for some in rows.split(max(1, LISTED // widest))]
        nodes, squared, unsure = (torch.cat(part) for part in zip(*parts, strict=True))
        return nodes, squared, unsure

    def _query(self, rows: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return what :meth:`query` does, for so few rows that all their candidates can be listed at once."""
        found = _Found.empty(rows, count, self.points[0].dtype)
        bound = self._first_bound(rows, count)
        open_rows = np.isfinite(bound)
        for cell in self.cells:
            reach = bound * (1 + 1e-6) + self.slack
            near = open_rows & (self.far[cell.number][rows.cpu().numpy()] - cell.radius <= reach + self.slack)
            some = np.flatnonzero(near)
            if not some.size:
                continue
            lists, sure = self._candidates(cell, rows[torch.from_numpy(some)], reach[some], count)
            open_rows[some[~sure]] = False
            self._merge(found, some[sure], lists[sure])
            bound[some[sure]] = np.minimum(bound[some[sure]], found.bound(some[sure]))
        return found.nodes, found.squared, torch.from_numpy(~open_rows)

    def _first_bound(self, rows: Tensor, count: int) -> Array:
        """Return a distance within which each row has ``count`` others: that of the last in its own cell."""
        bound = np.full(rows.numel(), np.inf)
        for cell in self.cells:
            own = np.flatnonzero(self.owner[rows.cpu().numpy()] == cell.number)
            if not own.size or cell.nodes.size <= count:
                continue
            mine = rows[torch.from_numpy(own)]
            _, at = cell.tree.query(self._seen(mine, cell.centre), k=count + 1)
            squared = self._exact(mine, cell.nodes[at])
            squared[torch.from_numpy(cell.nodes[at]) == mine[:, None]] = -1.0
            bound[own] = squared.amax(1).clamp(min=0).sqrt().double().cpu().numpy()
        return bound

    @staticmethod
    def _most(cell: _Cell, wanted: int) -> int:
        """Return how many candidates of a cell a query may have."""
        return min(cell.nodes.size, max(MANY * wanted, int(MOST * cell.nodes.size)))

    def _candidates(self, cell: _Cell, rows: Tensor, reach: Array, count: int) -> tuple[Array, Array]:
        """Return nodes of a cell whose images are within reach of each row, -1 for none, and whether they are all."""
        images, wanted = self._seen(rows, cell.centre), min(count + SPARE, cell.nodes.size)
        most = self._most(cell, wanted)
        lists = np.full((rows.numel(), wanted), -1)
        todo, sure = np.arange(rows.numel()), np.ones(rows.numel(), bool)
        while todo.size:
            # the tree takes one reach for a call: the largest, and what is beyond a row's own is dropped
            far, at = cell.tree.query(
                images[todo], k=range(1, wanted + 1), distance_upper_bound=reach[todo].max()
            )
            inside = far <= reach[todo, None]
            full = inside[:, -1] & (wanted < cell.nodes.size)
            if lists.shape[1] < wanted:
                lists = np.pad(lists, ((0, 0), (0, wanted - lists.shape[1])), constant_values=-1)
            padded = np.append(cell.nodes, -1)[np.where(inside, at, cell.nodes.size)]
            lists[todo[~full], :wanted] = padded[~full]
            todo = todo[full]
            if wanted >= most:
                sure[todo] = False
                break
            wanted = min(4 * wanted, most)
        return lists, sure

    def _exact(self, rows: Tensor, lists: Array) -> Tensor:
        return squared_dist_lists(*self.points, rows, torch.from_numpy(lists))

    def _merge(self, found: "_Found", some: Array, lists: Array) -> None:
        """Put candidates in, the nearest of old and new, of equals the lower node."""
        index = torch.from_numpy(some)
        nodes = torch.from_numpy(lists)
        squared = self._exact(found.rows[index], nodes.clamp(min=0).cpu().numpy())
        squared[(nodes < 0) | (nodes == found.rows[index, None])] = torch.inf
        nodes = torch.cat((found.nodes[index], nodes), 1)
        squared = torch.cat((found.squared[index], squared), 1)
        order = nodes.argsort(dim=1, stable=True)
        nodes, squared = nodes.gather(1, order), squared.gather(1, order)
        order = squared.argsort(dim=1, stable=True)[:, : found.nodes.size(1)]
        found.nodes[index], found.squared[index] = nodes.gather(1, order), squared.gather(1, order)


@dc.dataclass(frozen=True, slots=True)
class _Found:
    """The nearest nodes so far."""

    rows: Tensor
    nodes: Tensor
    squared: Tensor

    @classmethod
    def empty(cls, rows: Tensor, count: int, dtype: torch.dtype) -> "_Found":
        size = rows.numel(), count
        return cls(rows, torch.full(size, -1), torch.full(size, torch.inf, dtype=dtype))

    def bound(self, some: Array) -> Array:
        """Return how far the last of each list is."""
        found: Array = self.squared[torch.from_numpy(some), -1].clamp(min=0).sqrt().double().cpu().numpy()
        return found


def _image(points: tuple[Tensor, Tensor, Tensor], centre: tuple[Tensor, Tensor] | None) -> Array:
    """Return Euclidean images of points, never farther apart than the points: seen from a centre, or the origin."""
    sine, cosine, k = points
    parts = []
    for head, curvature in enumerate(k.flatten().tolist()):
        p, c = sine[:, head], cosine[:, head]
        if curvature > 0:
            parts.append(lift(p, c) * torch.tensor([1.0] * p.size(-1) + [curvature**-0.5], dtype=p.dtype))
            continue
        # from the origin where there is no centre
        shift = (
            (p.new_zeros(1, p.size(-1)), p.new_ones(1, 1))
            if centre is None
            else (-centre[0][head : head + 1], centre[1][head : head + 1])
        )
        parts.append(2 * translate_hyperbolic(shift, p, c, k[head]))
    return torch.cat(parts, -1).cpu().numpy()
