"""The mammals of WordNet in two dimensions, flat beside curved: needs the data set ``mammals``."""

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.collections import LineCollection

from figures.style import COLOURS, FAINT
from gyroformer import geometry
from gyroformer.graphs.hierarchy import closure, implied
from gyroformer.jobs.run import run_job
from gyroformer.settings import make_job


def mammals():
    """Return the picture: each kind of animal a point, a line to each of its parents."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained")
    for axis, model, name in zip(axes, ("tokengt", "fpst"), ("TokenGT, flat", "FPS-T"), strict=True):
        objective = {"hierarchy": True, "closure": True}
        job = make_job(
            "embed",
            graph={"source": "mammals"},
            model={"name": model, "options": {"dim": 2}},
            objective=objective,
        )
        done = run_job(job)
        _draw(axis, done.plan, done.results, name)
    return figure


def _draw(axis, plan, results, name):
    with torch.no_grad():
        positions = plan.model.positions(plan.data)
        tangents, k = positions.coordinates()[:, 0].double(), positions.k[0, 0].double()
    points = geometry.expmap0(tangents, k=k)
    nodes = len(points)
    pairs, depth = closure(plan.data.edge_index.numpy(), nodes)
    direct = torch.from_numpy(pairs[:, ~implied(pairs, nodes)])
    share = torch.linspace(0, 1, 24, dtype=torch.float64)[:, None, None]
    lines = geometry.geodesic(share, points[direct[0]], points[direct[1]], k=k).numpy()
    colour = COLOURS[-1 if k < 0 else 0]
    axis.add_collection(LineCollection(lines.transpose(1, 0, 2), colors=colour, lw=0.25, alpha=0.5))
    axis.scatter(*points.numpy().T, s=3, c=np.asarray(depth), cmap="viridis_r", zorder=3, lw=0)
    if k < 0:
        axis.add_patch(plt.Circle((0, 0), (-k).rsqrt().item(), fill=False, color=FAINT, lw=1))
    curvature = f", k learned: {k.item():.2f}".replace("-", "−") if k < 0 else ""
    axis.set(aspect="equal", title=f"{name}{curvature}: MAP over ancestors {results['hierarchy_map']:.1f} %")
    axis.autoscale_view()
    axis.set_axis_off()
