"""Curvature, metric and loss over training in one figure, of one run or of several over each other."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gyroformer.report.record import RunRecord
from gyroformer.tasks import SHOWN
from gyroformer.tasks.task import metric_title

#: what ``assets/charts.js`` draws
Spec = dict[str, Any]

#: epochs that a curve shows at most
CURVE_ROWS = 1_000
#: ratio of the largest loss to the smallest from which its axis is logarithmic
LOG_RATIO = 20
#: colours of the style sheet, one for each run of a page
RUN_COLOURS = 8


def run_colour(index: int) -> str:
    """Return the name of the colour of the run, or head, at ``index``."""
    return f"run-{index % RUN_COLOURS}"


def thinned(count: int, most: int) -> list[int]:
    """Return at most ``most`` evenly spaced indices out of ``count``, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return np.linspace(0, count - 1, most).round().astype(int).tolist()


def is_thinned(runs: Sequence[RunRecord]) -> bool:
    """Return whether a run has more epochs than its curves show."""
    return any(len(run.rows) > CURVE_ROWS for run in runs)


def training_chart(runs: Sequence[RunRecord]) -> Spec:
    """Return the figure: a panel for the curvatures, one for the metric, one for the loss, over the same epochs."""
    metric = main_metric(runs)
    found = [curvature_panel(runs), metric_panel(runs, metric) if metric else None, loss_panel(runs)]
    title = "Curvature, metric and loss over training"
    return {
        "kind": "panels",
        "title": title,
        "x": "epoch",
        "labels": found[0] is not None,
        "panels": [panel for panel in found if panel is not None],
    }


def loss_panel(runs: Sequence[RunRecord]) -> Spec:
    """Return the training loss and, where there is one, the loss on what is held out for validation."""
    series: list[Spec] = []
    for index, run in enumerate(runs):
        rows = [run.rows[i] for i in thinned(len(run.rows), CURVE_ROWS)]
        own = f"{run.name}, loss" if len(runs) > 1 else "training loss"
        epochs, losses = [row["epoch"] for row in rows], [row["loss"] for row in rows]
        series.append(_series(epochs, losses, own, _colour(runs, index, 5)))
        epochs, found = _evaluated(run, "val_loss")
        if found:
            name = f"{run.name}, validation loss" if len(runs) > 1 else "validation loss"
            series.append(_series(epochs, found, name, _colour(runs, index, 5), dash=2))
    values = [value for one in series for value in one["y"]]
    logarithmic = bool(values) and min(values) > 0 and max(values) / min(values) > LOG_RATIO
    return {"title": "loss", "height": 130, "log": logarithmic, "series": series}


def _colour(runs: Sequence[RunRecord], index: int, alone: int) -> str:
    """Return the colour of a run's curve; on a page of one run, another for each thing that is shown."""
    return run_colour(index) if len(runs) > 1 else run_colour(alone)


def main_metric(runs: Sequence[RunRecord]) -> str | None:
    """Return the evaluated metric to show: the first that all runs have, in the order of their importance."""
    found = [
        {key for row in run.rows for key in row.get("metrics", {}) if not key.endswith("loss")}
        for run in runs
    ]
    shared = set.intersection(*found) or set.union(*found)
    known = [key for key in SHOWN if key in shared]
    return next(iter((*known, *sorted(shared))), None)


def metric_panel(runs: Sequence[RunRecord], metric: str) -> Spec:
    """Return ``metric`` over training; a ring marks the epoch whose state was kept."""
    series: list[Spec] = []
    for index, run in enumerate(runs):
        epochs, values = _evaluated(run, metric)
        if not epochs:
            continue
        title = f"{run.name}, {metric_title(metric)}" if len(runs) > 1 else metric_title(metric)
        one = _series(epochs, values, title, _colour(runs, index, 4)) | {"dots": len(epochs) <= 60}
        best = run.results.get("best_epoch")
        if best in epochs and best != epochs[-1]:
            one["ring"] = [best, values[epochs.index(best)]]
        series.append(one)
    return {"title": f"{metric_title(metric)} (%)", "height": 150, "series": series}


def curvature_panel(runs: Sequence[RunRecord]) -> Spec | None:
    """Return every head's curvature over training, with zero drawn; None if no run has any."""
    series: list[Spec] = []
    for index, run in enumerate(runs):
        rows = [row for row in run.rows if row.get("curvatures")]
        rows = [rows[i] for i in thinned(len(rows), CURVE_ROWS)]
        if rows and not any(any(row["curvatures"]) for row in rows):  # a flat model
            ends = [rows[0]["epoch"], rows[-1]["epoch"]]
            series.append(_series(ends, [0.0, 0.0], f"{run.name}: flat", run_colour(index)))
            continue
        names = head_names(run)
        for head in range(len(rows[0]["curvatures"]) if rows else 0):
            title = names[head] if head < len(names) else f"head {head + 1}"
            series.append(
                _series(
                    [row["epoch"] for row in rows],
                    [row["curvatures"][head] for row in rows],
                    f"{run.name}, {title}" if len(runs) > 1 else title,
                    run_colour(index if len(runs) > 1 else head),
                    dash=head % 6 if len(runs) > 1 else 0,
                )
            )
    if not series:
        return None
    return {"title": "curvature k", "height": 170, "zero": True, "signs": True, "series": series}


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


def _series(x: list[int], y: list[float], name: str, colour: str, *, dash: int = 0) -> Spec:
    return {"x": x, "y": [float(f"{value:.6g}") for value in y], "name": name, "colour": colour, "dash": dash}
