"""Exponential map, Möbius sum, transport."""

from itertools import pairwise

import torch

from figures.style import COLOURS, FAINT, INK, broken, directions, tensor, three_panels
from gyroformer import geometry


def exponential():
    """A square net of tangent vectors at the origin, and the points that it leads to."""
    figure, axes = three_panels(extent=2.4)
    for k, axis in axes.items():
        reach = axis.get_xlim()[1]
        along = torch.linspace(-2.4, 2.4, 200, dtype=torch.float64)
        for level in torch.arange(-2.4, 2.41, 0.3, dtype=torch.float64):
            across = torch.full_like(along, level)
            for pair in ((along, across), (across, along)):
                u = torch.stack(pair, -1)
                # half a turn and more would come back from the other side
                u = torch.where(u.norm(dim=-1, keepdim=True) < 1.5, u, torch.nan) if k > 0 else u
                axis.plot(*broken(geometry.expmap0(u, k=float(k)), reach * 2).T, color=COLOURS[k], lw=0.8)
        axis.plot(0, 0, "o", color=INK, ms=4)
    return figure


def translation():
    """A figure, and its images under repeated translation by one point."""
    figure, axes = three_panels(extent=2.1)
    flag = tensor((0, 0), (0, 0.36), (0.2, 0.36), (0.2, 0.27), (0.09, 0.27), (0.09, 0.2), (0.17, 0.2))
    flag = torch.cat((flag, tensor((0.17, 0.12), (0.09, 0.12), (0.09, 0), (0, 0)))) - tensor(0.05, 0.18)
    dense = torch.cat(
        [torch.lerp(a, b, torch.linspace(0, 1, 15).double()[:, None]) for a, b in pairwise(flag)]
    )
    for k, axis in axes.items():
        by = tensor(0.34, 0.10)
        for power in range(-4, 5):
            x = geometry.mobius_scalar_mul(tensor(float(power)), by, k=float(k))
            image = geometry.mobius_add(x, dense, k=float(k)).numpy()
            own = power == 0
            axis.fill(*image.T, color=INK if own else COLOURS[k], alpha=1 if own else 0.8, lw=0)
    return figure


def transport():
    """One vector at the origin, carried to other points: it keeps its direction and changes its length."""
    figure, axes = three_panels(extent=2.1)
    for k, axis in axes.items():
        v = tensor(0.16, 0.22)
        rings = [0.33, 0.62, 0.85] if k < 0 else [0.6, 1.15, 1.75]
        points = torch.cat([radius * directions(8, 0.3 + i * 0.39) for i, radius in enumerate(rings)])
        moved = geometry.parallel_transport0(points, v.expand_as(points), k=float(k))
        for point, arrow in zip(points, moved, strict=True):
            axis.plot(*torch.stack((torch.zeros(2), point)).numpy().T, color=FAINT, lw=0.5, zorder=1)
            style = {"arrowstyle": "-|>", "color": COLOURS[k], "lw": 1.2, "shrinkA": 0, "shrinkB": 0}
            axis.annotate("", point + arrow, point, arrowprops=style | {"mutation_scale": 8})
        style = {"arrowstyle": "-|>", "color": INK, "lw": 2, "shrinkA": 0, "shrinkB": 0}
        axis.annotate("", v, tensor(0.0, 0.0), arrowprops=style)
    return figure
