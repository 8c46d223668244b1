"""What the three spaces look like in their chart: sizes, geodesics, circles, hyperplanes, products."""

import matplotlib.pyplot as plt
import torch

from figures.style import COLOURS, FAINT, INK, broken, directions, grid, tensor, three_panels
from gyroformer import geometry


def equal_discs():
    """Discs of one and the same radius, drawn where they lie."""
    figure, axes = three_panels()
    for k, axis in axes.items():
        spacing = 0.62
        for ring in range({-1: 7, 0: 6, 1: 4}[k]):
            # as many as a circle of that radius has room for
            length = 2 * torch.pi * geometry.sin_k(tensor(spacing * ring), float(k)).item()
            around = max(1, int(length / spacing))
            centres = geometry.geodesic_unit(
                tensor(spacing * ring),
                torch.zeros(around, 2, dtype=torch.float64),
                directions(around),
                k=float(k),
            )
            for centre in centres:
                rim = geometry.geodesic_unit(tensor(0.17), centre, directions(40), k=float(k)).numpy()
                axis.fill(*rim.T, color=COLOURS[k], alpha=0.75, lw=0)
    return figure


def geodesics_and_circles():
    """All that leaves one point: geodesics, and circles at equal distances."""
    figure, axes = three_panels(extent=3.0)
    for k, axis in axes.items():
        start = tensor(0.45, 0.2) if k < 0 else tensor(0.7, 0.3)
        reach = axis.get_xlim()[1]
        longest = 3.1 if k > 0 else 6.0 if k == 0 else 4.5
        away = torch.linspace(0, longest, 160, dtype=torch.float64)[:, None]
        for heading in directions(24):
            line = geometry.geodesic_unit(away, start, heading, k=float(k))
            axis.plot(*broken(line, reach * 1.5).T, color=FAINT, lw=0.9)
        for radius in torch.arange(0.5, longest, 0.5):
            rim = geometry.geodesic_unit(radius.double(), start, directions(361, 0.01), k=float(k))
            axis.plot(*broken(rim, reach * 1.5).T, color=COLOURS[k], lw=1.3)
        axis.plot(*start.numpy(), "o", color=INK, ms=4)
    return figure


def hyperplanes():
    """Signed distance to a hyperplane."""
    figure, axes = three_panels(extent=2.4)
    for k, axis in axes.items():
        x, y, points = grid(axis, 240)
        p, normal = tensor(0.25, 0.1) if k < 0 else tensor(0.5, 0.2), tensor(0.8, 0.6)
        distance = geometry.dist2plane(points, p, normal, k=float(k), signed=True)
        distance[(k * points.square().sum(-1)) <= -0.999] = torch.nan
        steps = torch.arange(-3, 3.1, 0.5).tolist()
        steps.remove(0)
        axis.contour(x, y, distance, levels=steps, colors=COLOURS[k], linewidths=0.9, linestyles="solid")
        axis.contour(x, y, distance, levels=[0], colors=INK, linewidths=2)
        axis.annotate("", p + 0.32 * normal, p, arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1.4})
        axis.plot(*p.numpy(), "o", color=INK, ms=4)
    return figure


def products():
    """Points at equal distance from the origin of a product, by their distance in each factor's chart."""
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.1), layout="constrained")
    for axis, (k, h) in zip(axes, ((-1, 0), (-1, 1), (0, 1)), strict=True):
        edges = [0.999 if c < 0 else 2.2 for c in (k, h)]
        a, b = torch.meshgrid(*(torch.linspace(0, e, 240).double() for e in edges), indexing="xy")
        space = geometry.ProductSpace(torch.tensor([k, h], dtype=torch.float64))
        distance = space.dist0(torch.stack((a, b), -1).unsqueeze(-1))
        lines = axis.contour(
            a, b, distance, levels=torch.arange(0.5, 5, 0.5).tolist(), colors=INK, linewidths=1
        )
        axis.clabel(lines, lines.levels[1::2], fontsize=7)
        axis.set(
            title=f"k = ({k}, {h})".replace("-", "−"), xlabel="|x₁|", xlim=(0, edges[0]), ylim=(0, edges[1])
        )
    axes[0].set_ylabel("|x₂|")
    return figure
