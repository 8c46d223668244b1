"""Loss, metrics and curvatures over training, of one run or of several over each other."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gyroformer.report.colours import DASHES, INK, SPACES, Spec, axis, base_layout, run_colour
from gyroformer.report.names import MAIN_METRICS
from gyroformer.report.record import RunRecord
from gyroformer.tasks.task import metric_title

#: epochs that a curve shows at most
CURVE_ROWS = 2_000
HEIGHT = 320
#: ratio of the largest loss to the smallest from which its axis is logarithmic
LOG_RATIO = 20


def thinned(count: int, most: int) -> list[int]:
    """Return at most ``most`` evenly spaced indices out of ``count``, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return np.linspace(0, count - 1, most).round().astype(int).tolist()


def is_thinned(runs: Sequence[RunRecord]) -> bool:
    """Return whether a run has more epochs than its curves show."""
    return any(len(run.rows) > CURVE_ROWS for run in runs)


def loss_chart(runs: Sequence[RunRecord]) -> Spec:
    """Return the training loss and, where there is one, the loss on the validation nodes."""
    traces: list[Spec] = []
    values: list[float] = []
    for index, run in enumerate(runs):
        rows = [run.rows[i] for i in thinned(len(run.rows), CURVE_ROWS)]
        losses = [row["loss"] for row in rows]
        values += losses
        title = run.name if len(runs) > 1 else "training"
        traces.append(_line([row["epoch"] for row in rows], losses, title, run_colour(index)))
        epochs, found = _evaluated(run, "val_loss")
        if found:
            values += found
            title = f"{run.name}, validation" if len(runs) > 1 else "validation"
            traces.append(_line(epochs, found, title, run_colour(index), dash="dot"))
    logarithmic = min(values) > 0 and max(values) / min(values) > LOG_RATIO
    layout = _layout("loss", legend=len(traces) > 1)
    if logarithmic:
        layout["yaxis"] |= {"type": "log", "exponentformat": "power", "dtick": 1}
    return {"data": traces, "layout": layout}


def main_metric(runs: Sequence[RunRecord]) -> str | None:
    """Return the evaluated metric to show: the first that all runs have, in the order of their importance."""
    found = [
        {key for row in run.rows for key in row.get("metrics", {}) if not key.endswith("loss")}
        for run in runs
    ]
    shared = set.intersection(*found) or set.union(*found)
    known = [key for key in MAIN_METRICS if key in shared]
    return next(iter((*known, *sorted(shared))), None)


def metric_chart(runs: Sequence[RunRecord], metric: str) -> Spec:
    """Return ``metric`` over training; a ring marks the epoch whose state was kept."""
    traces: list[Spec] = []
    for index, run in enumerate(runs):
        epochs, values = _evaluated(run, metric)
        title = run.name if len(runs) > 1 else metric_title(metric)
        traces.append(_line(epochs, values, title, run_colour(index), markers=len(epochs) <= 60))
        best = run.results.get("best_epoch")
        if best in epochs and best != epochs[-1]:
            ring = {"symbol": "circle-open", "size": 12, "color": run_colour(index), "line": {"width": 2}}
            traces.append(
                {
                    "x": [best],
                    "y": [values[epochs.index(best)]],
                    "mode": "markers",
                    "marker": ring,
                    "name": "kept" if len(runs) == 1 else f"{run.name}, kept",
                    "hovertemplate": "state kept: epoch %{x}, %{y:.2f}<extra></extra>",
                }
            )
    return {"data": traces, "layout": _layout(metric_title(metric), legend=len(traces) > 1)}


def curvature_chart(runs: Sequence[RunRecord]) -> Spec | None:
    """Return every head's curvature over training; None if no run has any."""
    traces: list[Spec] = []
    for index, run in enumerate(runs):
        rows = [row for row in run.rows if row.get("curvatures")]
        rows = [rows[i] for i in thinned(len(rows), CURVE_ROWS)]
        if rows and not any(any(row["curvatures"]) for row in rows):  # a flat model
            epochs = [rows[0]["epoch"], rows[-1]["epoch"]]
            traces.append(_line(epochs, [0.0, 0.0], f"{run.name}: flat", run_colour(index)))
            continue
        names = head_names(run)
        for head in range(len(rows[0]["curvatures"]) if rows else 0):
            title = names[head] if head < len(names) else f"head {head + 1}"
            traces.append(
                _line(
                    [row["epoch"] for row in rows],
                    [row["curvatures"][head] for row in rows],
                    f"{run.name}, {title}" if len(runs) > 1 else title,
                    run_colour(index) if len(runs) > 1 else run_colour(head),
                    dash=DASHES[head % len(DASHES)] if len(runs) > 1 else "solid",
                    digits=".4f",
                )
            )
    if not traces:
        return None
    layout = _layout("curvature k", legend=True)
    layout["yaxis"]["exponentformat"] = "none"
    layout["margin"] = {**layout["margin"], "r": 84}  # room for the names of the signs, beside all curves
    layout["shapes"] = [_zero_line()]
    layout["annotations"] = _sign_labels()
    return {"data": traces, "layout": layout}


def head_names(run: RunRecord) -> list[str]:
    """Return names for the curvatures of all layers, in the order of a row."""
    layers = run.results.get("curvatures") or []
    if len(layers) <= 1:
        return [f"head {head + 1}" for heads in layers for head in range(len(heads))]
    return [
        f"layer {layer + 1}, head {head + 1}"
        for layer, heads in enumerate(layers)
        for head in range(len(heads))
    ]


def _evaluated(run: RunRecord, metric: str) -> tuple[list[int], list[float]]:
    rows = [row for row in run.rows if metric in row.get("metrics", {})]
    rows = [rows[i] for i in thinned(len(rows), CURVE_ROWS)]
    return [row["epoch"] for row in rows], [row["metrics"][metric] for row in rows]


def _line(
    x: list[int],
    y: list[float],
    name: str,
    colour: str,
    *,
    dash: str = "solid",
    markers: bool = False,
    digits: str = ".5~g",
) -> Spec:
    return {
        "x": x,
        "y": [float(f"{value:.6g}") for value in y],
        "name": name,
        "mode": "lines+markers" if markers else "lines",
        "line": {"color": colour, "width": 2, "dash": dash},
        "marker": {"size": 5},
        "hovertemplate": f"epoch %{{x}}: %{{y:{digits}}}",
    }


def _layout(title: str, *, legend: bool) -> Spec:
    layout: dict[str, Any] = base_layout(HEIGHT)
    layout |= {
        "margin": {"l": 56, "r": 14, "t": 10, "b": 44},
        "xaxis": axis("epoch"),
        "yaxis": axis(title),
        "hovermode": "x",
        "showlegend": legend,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 11}},
    }
    return layout


def _zero_line() -> Spec:
    line = {"color": INK, "width": 1}
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": 0,
        "y1": 0,
        "line": line,
        "layer": "below",
    }


def _sign_labels() -> list[Spec]:
    """Return what lies on either side of zero."""
    shown = []
    for text, anchor, shift in (("spherical", "bottom", 2), ("hyperbolic", "top", -2)):
        shown.append(
            {
                "xref": "paper",
                "x": 1,
                "y": 0,
                "text": f"{text} {'↑' if shift > 0 else '↓'}",
                "showarrow": False,
                "xanchor": "left",
                "xshift": 4,
                "yanchor": anchor,
                "yshift": shift,
                "font": {"size": 11, "color": SPACES[text]},
            }
        )
    return shown
