"""Colours, fonts and small helpers that all pictures share."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import torch
from PIL import Image

mpl.use("Agg")

INK = "#26323d"
FAINT = "#b9c2ca"
#: hyperbolic, flat, spherical
COLOURS = {-1: "#2f6690", 0: "#5f7d4f", 1: "#c2662d"}
OURS = "#16697a"
OTHER = "#b5483a"
NAMES = {-1: "hyperbolic", 0: "flat", 1: "spherical"}

mpl.rcParams.update(
    {
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "axes.edgecolor": FAINT,
        "axes.labelcolor": INK,
        "axes.titlecolor": INK,
        "axes.titlesize": 10,
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "legend.frameon": False,
        "legend.fontsize": 8,
        "lines.linewidth": 1.4,
        "figure.dpi": 110,
        "savefig.dpi": 150,
    }
)


def save(figure, path):
    """Write the figure and return its size in bytes; no version or date goes into the file."""
    figure.savefig(path, metadata={"Software": None}, facecolor="white")
    plt.close(figure)
    # line drawings have few colours: a palette makes the file a third as large
    with Image.open(path) as image:
        small = image.convert("RGB").quantize(160, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    return path.stat().st_size


def three_panels(height=3.3, extent=2.1):
    """Return a figure of three square panels without axes, one for each sign of k."""
    figure, axes = plt.subplots(1, 3, figsize=(9, height), layout="constrained")
    for k, axis in zip((-1, 0, 1), axes, strict=True):
        reach = 1.06 if k < 0 else extent
        axis.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        axis.set_axis_off()
        axis.set_title(f"{NAMES[k]}, k = {k}".replace("-", "−"))
        if k < 0:
            axis.add_patch(plt.Circle((0, 0), 1, fill=False, color=INK, lw=1))
        elif k > 0:
            axis.add_patch(plt.Circle((0, 0), 1, fill=False, color=FAINT, lw=1, ls=(0, (4, 3))))
    return figure, dict(zip((-1, 0, 1), axes, strict=True))


def tensor(*values):
    """Return the numbers as a float64 tensor."""
    return torch.tensor(values, dtype=torch.float64)


def directions(count, offset=0.0):
    """Return unit vectors evenly around the circle, ``(count, 2)``."""
    angle = torch.arange(count, dtype=torch.float64) * (2 * torch.pi / count) + offset
    return torch.stack((angle.cos(), angle.sin()), -1)


def grid(axis, count):
    """Return a grid over the axis' view as tensors X, Y and points ``(count, count, 2)``."""
    low, high = axis.get_xlim()
    line = torch.linspace(low, high, count, dtype=torch.float64)
    x, y = torch.meshgrid(line, line, indexing="xy")
    return x, y, torch.stack((x, y), -1)


def broken(points, reach):
    """Return points as an array with NaN where they leave the view, so that lines break there."""
    array = points.numpy().copy()
    array[np.abs(array).max(-1) > reach] = np.nan
    return array
