"""The lift to the ambient quadric, and the midpoint that it gives."""

import math

import matplotlib.pyplot as plt
import numpy as np
import torch

from figures.style import COLOURS, FAINT, INK, OTHER, OURS, tensor
from gyroformer import geometry


def lift_and_midpoint():
    """Return the picture: the lift for either sign, and two midpoints past the equator."""
    figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained", width_ratios=(1, 1, 1.25))
    for axis, k in zip(axes, (-1, 1), strict=False):
        _lift(axis, k)
    _past_the_equator(axes[2])
    return figure


def _lift(axis, k):
    """Draw the section of the quadric, points of the chart, and the lines through the pole that join them."""
    # points evenly along the curve itself, all round the circle for k > 0
    along = torch.linspace(-1.57, 1.57, 400).double()[:, None]
    curve = geometry.inv_sproj(
        geometry.expmap0(along * (1 if k > 0 else 0.75), k=float(k)), k=float(k)
    ).numpy()
    axis.axhline(0, color=FAINT, lw=1)
    axis.plot(*curve.T, color=COLOURS[k], lw=1.6)
    points = tensor(-0.5, 0.3, 0.62)[:, None] if k < 0 else tensor(-0.55, 0.5, 1.7)[:, None]
    weights = tensor(0.25, 0.25, 0.5)
    lifted = geometry.inv_sproj(points, k=float(k))
    for point, high in zip(points.numpy(), lifted.numpy(), strict=True):
        axis.plot([0, high[0]], [-1, high[1]], color=FAINT, lw=0.9, zorder=1)
        axis.plot(point[0], 0, "o", color=INK, ms=4)
        axis.plot(*high, "o", color=COLOURS[k], ms=4)
    mean = (weights[:, None] * lifted).sum(0).numpy()
    middle = geometry.weighted_midpoint(points, weights, k=float(k))
    top = geometry.inv_sproj(middle, k=float(k)).numpy()
    axis.plot(
        [0, max(mean[0], top[0], key=abs)],
        [0, mean[1] / mean[0] * max(mean[0], top[0], key=abs)],
        color=OURS,
        lw=1,
        ls=":",
    )
    axis.plot(*mean, "s", color=OURS, ms=5, mfc="white")
    axis.plot(*top, "D", color=OURS, ms=5)
    axis.plot([0, top[0]], [-1, top[1]], color=OURS, lw=1)
    axis.plot(middle.item(), 0, "D", color=OURS, ms=5)
    axis.plot(0, -1, "x", color=INK, ms=6)
    axis.set(aspect="equal", title=f"the lift, k = {k}".replace("-", "−"))
    axis.set_axis_off()
    axis.set(xlim=(-1.7, 2.1), ylim=(-1.3, 2.7)) if k < 0 else axis.set(xlim=(-1.3, 1.9), ylim=(-1.5, 1.4))


def _past_the_equator(axis):
    """Plot the midpoint of two points against the distance of the second, beside the printed formula."""
    x = 0.4
    far = np.concatenate((np.linspace(0.05, 1.98, 150), np.linspace(2.02, 9, 250)))
    ours, printed = [], []
    for y in far:
        points = tensor((x,), (y,))
        ours.append(geometry.dist0(geometry.weighted_midpoint(points, k=1.0, reducedim=[0]), k=1.0).item())
        lam = geometry.lambda_x(points, k=1.0)
        inside = ((lam[:, None] * points).sum(0) / (lam - 1).sum()).clamp(-1e12, 1e12)
        half = geometry.mobius_scalar_mul(tensor(0.5), inside, k=1.0)
        printed.append(math.copysign(geometry.dist0(half, k=1.0).item(), half.item()))
    turn = 2 * np.arctan(far)
    printed = np.array(printed)
    printed[1 + np.abs(np.diff(printed)).argmax()] = np.nan  # the jump is no line
    axis.axhline(0, color=FAINT, lw=0.8)
    axis.plot(turn, ours, color=OURS, label="N / (D + √(D² + k|N|²))", lw=2)
    axis.plot(turn, printed, color=OTHER, lw=1.4, ls="--", label="½ ⊗ N / D, as printed")
    axis.set(
        title="midpoint of two points, k = 1",
        xlabel="distance of the second from 0",
        ylabel="midpoint, distance from 0",
    )
    axis.set_xticks([0, math.pi / 2, math.pi], ["0", "π/2", "π"])
    axis.set_yticks([-math.pi / 2, 0, math.pi / 2], ["−π/2", "0", "π/2"])
    axis.legend(loc="lower left")
