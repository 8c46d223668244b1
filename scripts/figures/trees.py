"""What the demo fits: a tree in the plane and in the learned space, a ring on the learned sphere."""

import matplotlib.pyplot as plt
import torch

from figures.style import COLOURS, FAINT, INK
from gyroformer import geometry
from gyroformer.demo.geometry import balanced_tree, cycle, embed, hop_distances, relative_errors


def tree_and_ring():
    """Return the picture: the same tree flat and hyperbolic, and the curvature on its way."""
    edges = balanced_tree(2, 6)
    hops = hop_distances(edges)
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained", width_ratios=(1, 1, 1.1))
    for axis, learn in zip(axes, (False, True), strict=False):
        tangents, k = embed(hops, learn=learn, seed=0, steps=400)
        error = relative_errors(tangents, hops, k).abs().mean().item()
        points = geometry.expmap0(tangents, k=k)
        share = torch.linspace(0, 1, 16)[:, None]
        for a, b in edges:
            line = geometry.geodesic(share, points[a], points[b], k=k)
            axis.plot(*line.numpy().T, color=COLOURS[-1 if learn else 0], lw=0.9)
        axis.scatter(*points.numpy().T, s=5, color=INK, zorder=3, lw=0)
        if learn:
            axis.add_patch(plt.Circle((0, 0), (-k).rsqrt().item(), fill=False, color=FAINT, lw=1))
        title = f"k learned: {k.item():.2f}".replace("-", "−") if learn else "k = 0"
        axis.set(aspect="equal", title=f"{title}, distortion {error:.1%}")
        axis.set_axis_off()
    _paths(axes[2])
    return figure


def _paths(axis):
    """Plot the curvature against the steps, in units of the one that fits best at the end."""
    axis.axhline(0, color=FAINT, lw=0.8)
    for name, edges, sign in (("tree of 127", balanced_tree(2, 6), -1), ("ring of 40", cycle(40), 1)):
        path = []
        embed(
            hop_distances(edges),
            learn=True,
            seed=0,
            steps=300,
            watch=lambda k, path=path: path.append(k.item()),
        )
        axis.plot(
            [0, *range(1, 301)],
            [0, *path],
            color=COLOURS[sign],
            label=f"{name}: {path[-1]:+.3f}".replace("-", "−"),
        )
    axis.set(title="the curvature finds its sign", xlabel="step", ylabel="k")
    axis.set_yscale("symlog", linthresh=0.02)
    axis.set_yticks([-1, -0.1, 0, 0.02], ["−1", "−0.1", "0", "0.02"])
    axis.legend(loc="center right")
