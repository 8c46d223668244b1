r"""From the points of a head, in as many dimensions as it has, to a picture in two.

1. The points are moved by an isometry that takes their midpoint m to the origin, :math:`x \mapsto -m \oplus x`: no
   distance changes, and the picture is centred.
2. Their tangent vectors there, :math:`u = \log_0 x`, are turned to their two principal directions. What the other
   directions hold is lost; the picture says how much.
3. Each point is drawn in its direction at its true distance :math:`2|u|` from the midpoint, in a map of the
   two-dimensional space of the same curvature, which keeps that distance readable:

   - k < 0: the Poincaré disc, radius :math:`\tanh(\sqrt{-\kappa}\,|u|)`; the circle is infinitely far away;
   - k > 0: the equidistant map of the sphere, radius :math:`2\sqrt\kappa\,|u|/\pi`; the outer circle is the opposite
     point, the inner one the equator;
   - k = 0, or so near it that nothing could be seen of it: the plane.

Edges are drawn as shortest paths of that two-dimensional space.
"""

import dataclasses as dc
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gyroformer import geometry

Array = np.ndarray[Any, Any]

#: distance in radii of curvature, √|k| 2|u|, up to which a space looks flat: a circle that large is 4 % off 2πr
FLAT_REACH = 0.5
#: points on the path that draws a bent edge
PATH_POINTS = 9
#: fraction of the picture's half width by which a path must leave the straight line to be drawn bent
BEND = 0.004


@dc.dataclass(frozen=True, slots=True)
class Drawing:
    """A head in two dimensions.

    Attributes:
        kind: ``"hyperbolic"``, ``"flat"`` or ``"spherical"``: which map it is.
        k: curvature of the head.
        points: ``(N, 2)``; in the disc of radius 1, or in the plane in units of distance.
        fraction: fraction of the tangent vectors' squared length that lies in the two directions drawn.
        reach: largest distance from the midpoint.
        vectors: ``(N, 2)``: where each point lies from the midpoint, its length the distance.
        planar: points of the two-dimensional space in stereographic coordinates, from which edges are drawn.
        planar_k: the curvature of that space: k, or 0 where the map is the plane.
    """

    kind: str
    k: float
    points: Array
    fraction: float
    reach: float
    vectors: Array
    planar: Tensor
    planar_k: float


def draw_head(tangents: Array, k: float) -> Drawing:
    """Return the picture of a head's points, given by their tangent vectors ``(N, d)`` at the origin."""
    curvature = torch.tensor(float(k), dtype=torch.float64)
    centred = centred_tangents(torch.as_tensor(tangents, dtype=torch.float64), curvature)
    flat, fraction = principal_plane(centred)
    reach = 2 * float(centred.norm(dim=-1).max())
    kind = space_kind(k, reach)
    planar_k = 0.0 if kind == "flat" else float(k)
    planar = geometry.expmap0(flat, k=torch.tensor(planar_k, dtype=torch.float64))
    points = on_the_map(planar, planar_k).numpy()
    return Drawing(kind, float(k), points, fraction, reach, 2 * flat.numpy(), planar, planar_k)


def space_kind(k: float, reach: float) -> str:
    """Return what a space of curvature ``k`` looks like to those who see as far as ``reach``."""
    if abs(k) * reach * reach < FLAT_REACH**2:
        return "flat"
    return "hyperbolic" if k < 0 else "spherical"


def centred_tangents(tangents: Tensor, k: Tensor) -> Tensor:
    """Return the tangent vectors of the points after the isometry that takes their midpoint to the origin."""
    points = geometry.expmap0(tangents, k=k)
    middle = geometry.weighted_midpoint(points, k=k)
    return geometry.logmap0(geometry.mobius_add(-middle, points, k=k), k=k)


def principal_plane(tangents: Tensor) -> tuple[Tensor, float]:
    """Return vectors ``(N, 2)`` of the same lengths in the two principal directions, and the fraction these hold."""
    if tangents.size(1) == 1:
        return torch.cat([tangents, torch.zeros_like(tangents)], 1), 1.0
    _, sizes, directions = torch.linalg.svd(tangents, full_matrices=False)
    axes = directions[:2]
    # a direction's sign is the solver's choice; ours makes the largest coordinate positive
    axes = axes * axes.gather(1, axes.abs().argmax(1, keepdim=True)).sign()
    flat = tangents @ axes.mT
    if flat.size(1) < 2:  # a single node
        flat = torch.cat([flat, torch.zeros_like(flat)], 1)
    total = float(sizes.square().sum())
    fraction = float(sizes[:2].square().sum()) / total if total else 1.0
    seen = flat.norm(dim=-1, keepdim=True)
    true = tangents.norm(dim=-1, keepdim=True)
    return torch.where(seen > 0, flat * (true / torch.where(seen > 0, seen, 1.0)), 0.0), fraction


def on_the_map(points: Tensor, k: float) -> Tensor:
    """Return where stereographic points ``(..., 2)`` of a two-dimensional space lie on its map."""
    if k == 0:
        return 2 * points
    root = math.sqrt(abs(k))
    if k < 0:
        return root * points
    size = root * points.norm(dim=-1, keepdim=True)
    return torch.where(size > 0, points * (root * 2 / math.pi) * size.atan() / size.clamp(min=1e-300), 0.0)


def edge_paths(drawing: Drawing, edges: Array) -> list[Array]:
    """Return the shortest path of each edge ``(2, E)`` on the map: two points if it is straight, else more."""
    first, second = (drawing.planar[torch.as_tensor(end)] for end in edges)
    k = torch.tensor(drawing.planar_k, dtype=torch.float64)
    steps = torch.linspace(0, 1, PATH_POINTS, dtype=torch.float64)[:, None, None]
    paths = on_the_map(geometry.geodesic(steps, first, second, k=k), drawing.planar_k).movedim(1, 0)
    paths = torch.where(
        torch.isfinite(paths), paths, math.nan
    )  # between opposite points there is no shortest
    straight = paths[:, :1] + steps[:, 0] * (paths[:, -1:] - paths[:, :1])
    bent = (paths - straight).norm(dim=-1).amax(-1) > BEND
    return [
        path if is_bent else path[[0, -1]]
        for path, is_bent in zip(paths.numpy(), bent.tolist(), strict=True)
        if bool(np.isfinite(path).all())
    ]
