"""Digits: the analytic ratio through zero, errors towards the edge, all cells of the measured tables."""

from pathlib import Path

import geoopt.manifolds.stereographic.math as geoopt
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.colors import LogNorm

from figures.style import COLOURS, FAINT, INK, OTHER, OURS
from gyroformer import geometry
from gyroformer.geometry.trig import artan_ratio, tan_ratio
from gyroformer.testing import exactness, reference

RESULTS = Path(__file__).parents[2] / "results"
FLOAT32, FLOAT64 = (torch.finfo(dtype).eps for dtype in (torch.float32, torch.float64))


def k_gradient_error(module, name, single, k, dtype):
    """Return the relative error of the derivative in k of the sum of the outputs."""
    given = [a.to(dtype) for a in single]
    curvature = torch.tensor(k, dtype=dtype, requires_grad=True)
    value = getattr(module, name)(*given, k=curvature)
    (got,) = torch.autograd.grad(value.sum(), curvature)
    _, truth = reference.gradients(name, single, k, torch.ones_like(value))
    return max(reference.relative_error([got.item()], [truth]), 1e-17)


def ratio_through_zero():
    """The two ratios, and what becomes of the derivative in k near 0."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    z = torch.linspace(-6, 1.6, 400, dtype=torch.float64)
    left.axvline(0, color=FAINT, lw=0.8)
    left.plot(z, tan_ratio(z), color=INK, label="T(z) = tan√z / √z")
    inside = z[z > -0.99999]
    left.plot(inside, artan_ratio(inside), color=OURS, ls="--", label="A(z) = arctan√z / √z")
    left.text(-3.6, 0.78, "tanh: the ball", color=COLOURS[-1])
    left.text(1.6, 0.35, "tan: the sphere", color=COLOURS[1], ha="right")
    left.set(xlabel="z = k r²", ylim=(0, 3), title="one analytic function for every curvature")
    left.legend(loc="upper left")

    sizes = np.logspace(-12, 0, 49)
    single = [torch.tensor([0.5], dtype=torch.float32)]
    for module, colour, label in ((geoopt, OTHER, "geoopt"), (geometry, OURS, "gyroformer")):
        for sign, style in ((1, "-"), (-1, ":")):
            errors = [
                k_gradient_error(module, "logmap0", single, float(np.float32(sign * s)), torch.float32)
                for s in sizes
            ]
            right.loglog(
                sizes, errors, color=colour, ls=style, label=f"{label}, k {'>' if sign > 0 else '<'} 0"
            )
    right.axhline(1, color=FAINT, lw=0.8)
    right.text(1, 1.8, "error = 100 %", fontsize=7, ha="right")
    right.set(
        xlabel="|k|", ylabel="relative error", title="∂/∂k of log₀ at |y| = 0.5, float32", ylim=(1e-10, 1e8)
    )
    right.legend(loc="upper right", ncol=2)
    return figure


def towards_the_edge():
    """Errors of the distance and of its gradient against the distance to the ball's edge."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharey=True)
    gaps = np.logspace(-7, -0.3, 40)
    columns = ((0, "value of dist(x, y)"), (1, "gradient in k of dist(x, y)"))
    for axis, (column, title) in zip(axes, columns, strict=True):
        for module, dtype, colour, style, label in (
            (geoopt, torch.float32, OTHER, "-", "geoopt, float32"),
            (geoopt, torch.float64, OTHER, ":", "geoopt, float64"),
            (geometry, torch.float32, OURS, "-", "gyroformer, float32"),
            (geometry, torch.float64, OURS, ":", "gyroformer, float64"),
        ):
            errors = [max(worst_near_edge(module, gap, dtype)[column], 1e-17) for gap in gaps]
            axis.loglog(gaps, errors, color=colour, ls=style, label=label)
        for unit in (FLOAT32, FLOAT64):
            axis.loglog(gaps, unit / (2 * gaps), color=FAINT, lw=1, ls="--")
        axis.set(title=title, xlabel="1 − |x|, k = −1", ylim=(1e-17, 1e5))
        axis.invert_xaxis()
    axes[0].set_ylabel("relative error")
    axes[0].text(3e-3, 6e-13, "eps / (1 + k|x|²)", fontsize=7, color="#7d8790", rotation=16)
    axes[1].legend(loc="upper left", ncol=2)
    return figure


def worst_near_edge(module, gap, dtype, samples=6):
    """Return the worst errors of value and k-gradient over pairs of points at one distance from the edge."""
    generator = torch.Generator().manual_seed(0)
    worst = [0.0, 0.0]
    for _ in range(samples):
        pair = torch.randn(2, 3, generator=generator, dtype=torch.float64)
        pair = (pair / pair.norm(dim=-1, keepdim=True) * (1 - gap)).to(torch.float32)
        single = list(pair)
        value = module.dist(*(a.to(dtype) for a in single), k=torch.tensor(-1.0, dtype=dtype))
        error = reference.relative_error(value, reference.evaluate("dist", single, -1.0))
        worst = [max(worst[0], error), max(worst[1], k_gradient_error(module, "dist", single, -1.0, dtype))]
    return worst


def all_cells():
    """Worst k-gradient error over the regimes, for every operation and curvature, in float32."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained", sharey=True)
    for axis, name in zip(axes, ("geoopt", "gyroformer"), strict=True):
        cells = exactness.read_csv(RESULTS / f"exactness_{name}.csv")
        operations = sorted({cell.operation for cell in cells})
        image = np.zeros((len(operations), len(exactness.CURVATURES)))
        for cell in cells:
            place = operations.index(cell.operation), exactness.CURVATURES.index(cell.k)
            if cell.dtype == "float32" and cell.regime == "ordinary":
                image[place] = max(image[place], cell.grad_k)
        shown = axis.imshow(image.clip(1e-8), norm=LogNorm(1e-8, 1e4), cmap="cividis", aspect="auto")
        axis.set_xticks(
            range(len(exactness.CURVATURES)), [f"{k:g}" for k in exactness.CURVATURES], rotation=60
        )
        axis.set_yticks(range(len(operations)), operations)
        axis.tick_params(length=0)
        axis.set(title=name, xlabel="k")
        for spine in axis.spines.values():
            spine.set_visible(False)
    bar = figure.colorbar(shown, ax=axes, pad=0.01, extend="max")
    bar.set_label("relative error of ∂/∂k, float32, ordinary radius")
    bar.outline.set_visible(False)
    return figure
