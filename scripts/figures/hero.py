"""One rule in three spaces: from every node three edges of length 1 at equal angles."""

import math

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.collections import LineCollection

from figures.style import FAINT, INK, tensor
from gyroformer import geometry

#: where three edges of length 1 close to a dodecahedron: cos of its edge's angle is √5/3
ROUND = math.acos(math.sqrt(5) / 3) ** 2
#: where they just never meet again: the edge of the tiling of infinite polygons is ln 3
OPEN = -(math.log(3) ** 2)
STEPS = 24


def grow(k, depth):
    """Return edges ``(E, STEPS, 2)`` as geodesics, nodes ``(N, 2)``, and the hops of both."""
    origin = torch.zeros(2, dtype=torch.float64)
    nodes, hops, edges, levels = [origin], [0], [], []
    front = [(origin, d) for d in turned(tensor(0.0, 1.0), [0, 2 * math.pi / 3, -2 * math.pi / 3])]
    for level in range(1, depth + 1):
        following = []
        for start, heading in front:
            end = geometry.geodesic_unit(tensor(1.0), start, heading, k=k)
            share = torch.linspace(0, 1, STEPS, dtype=torch.float64)[:, None]
            edges.append(geometry.geodesic_unit(share, start, heading, k=k))
            levels.append(level)
            known = geometry.dist(torch.stack(nodes), end, k=k).min() < 1e-3
            if not known:
                nodes.append(end)
                hops.append(level)
                ahead = -geometry.logmap(end, start, k=k)
                following += [(end, d) for d in turned(ahead, [math.pi / 3, -math.pi / 3])]
        front = following
    return torch.stack(edges).numpy(), levels, torch.stack(nodes).numpy(), hops


def turned(vector, angles):
    """Return the vector turned by each angle; the charts are conformal, so angles are what they look like."""
    x, y = vector
    return [
        torch.stack((c * x - s * y, s * x + c * y)) for c, s in ((math.cos(a), math.sin(a)) for a in angles)
    ]


def three_ways():
    """Return the picture: a tree, a honeycomb, a dodecahedron."""
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.5), layout="constrained")
    shades = plt.get_cmap("viridis")
    for axis, k, depth, title in zip(
        axes,
        (OPEN, 0.0, ROUND),
        (8, 8, 5),
        (f"k = −{-OPEN:.2f}: a tree", "k = 0: a honeycomb", f"k = +{ROUND:.2f}: a dodecahedron"),
        strict=True,
    ):
        edges, levels, nodes, hops = grow(k, depth)
        axis.set_aspect("equal")
        axis.set_axis_off()
        axis.set_title(title, fontsize=11)
        draw = on_sphere if k > 0 else in_chart
        draw(
            axis,
            edges,
            levels,
            nodes,
            hops,
            k,
            lambda level, depth=depth: shades(0.12 + 0.72 * level / depth),
        )
    return figure


def in_chart(axis, edges, levels, nodes, hops, k, shade):
    """Draw in the stereographic chart: the ball, or the plane."""
    radius = 1 / math.sqrt(-k) if k else 3.9
    widths = [2.4 * (1 - abs(e[-1] @ e[-1]) * -k) ** 0.35 + 0.35 if k else 1.6 for e in edges]
    axis.add_collection(
        LineCollection(edges, colors=[shade(n) for n in levels], linewidths=widths, capstyle="round")
    )
    sizes = 26 * (1 + k * (nodes**2).sum(-1)) ** 0.8 + 0.5 if k else np.full(len(nodes), 16.0)
    axis.scatter(*nodes.T, s=sizes, c=[shade(n) for n in hops], zorder=3, lw=0)
    if k:
        axis.add_patch(plt.Circle((0, 0), radius, fill=False, color=INK, lw=1))
    reach = radius * (1.04 if k else 1.0)
    axis.set(xlim=(-reach, reach), ylim=(-reach, reach))


def on_sphere(axis, edges, levels, nodes, hops, k, shade):
    """Draw on the sphere that the chart stands for, seen from a little aside; its back is faint."""
    turn = view(0.42, 0.30)

    def seen(points):
        ambient = geometry.inv_sproj(torch.from_numpy(points), k=k).numpy() * math.sqrt(k)
        return ambient @ turn.T

    axis.add_patch(plt.Circle((0, 0), 1, facecolor="#f6f4ef", edgecolor=FAINT, lw=1))
    for edge, level in zip(edges, levels, strict=True):
        x, y, z = seen(edge).T
        front = z.mean() > 0
        axis.plot(
            x,
            y,
            color=shade(level),
            lw=2.2 if front else 1.0,
            alpha=1 if front else 0.35,
            zorder=2 if front else 1,
            solid_capstyle="round",
        )
    x, y, z = seen(nodes).T
    colours = np.array([shade(n) for n in hops])
    colours[:, 3] = np.where(z > 0, 1.0, 0.35)
    axis.scatter(x, y, s=np.where(z > 0, 26, 10), c=colours, zorder=3, lw=0)
    axis.set(xlim=(-1.06, 1.06), ylim=(-1.06, 1.06))


def view(tilt, spin):
    """Return the rotation of a viewer's eye."""
    a = np.array([[1, 0, 0], [0, math.cos(tilt), -math.sin(tilt)], [0, math.sin(tilt), math.cos(tilt)]])
    b = np.array([[math.cos(spin), 0, math.sin(spin)], [0, 1, 0], [-math.sin(spin), 0, math.cos(spin)]])
    return a @ b
