"""How well classes are told apart: confusion matrix, scores of each class, and whether probabilities can be trusted."""

import dataclasses as dc
from collections.abc import Sequence
from typing import Any

import numpy as np

from gyroformer.data.split import Split
from gyroformer.report.curves import Spec
from gyroformer.report.markup import text
from gyroformer.report.names import number
from gyroformer.report.record import RunRecord
from gyroformer.tasks.classify import class_scores

Array = np.ndarray[Any, Any]

#: classes up to which the confusion matrix is shown
MOST_CLASSES = 30
#: bins of the calibration
BINS = 10
#: shades of the confusion matrix in the style sheet
SHADES = 8


@dc.dataclass(frozen=True, slots=True)
class Judged:
    """The labelled nodes on which a run is judged.

    Attributes:
        truth: their classes.
        found: the most probable ones.
        probability: of these.
        names: of all classes.
        what: which nodes they are.
    """

    truth: Array
    found: Array
    probability: Array
    names: list[str]
    what: str


def judged(run: RunRecord) -> Judged | None:
    """Return the test nodes of a run of classes, or all labelled nodes if it is not known which these were."""
    labels, probability = run.graph.labels, run.probability
    if labels is None or probability is None or run.results.get("final"):
        return None  # a final model has learned from all labelled nodes
    nodes, what = np.arange(len(labels)), "all labelled nodes (which were for the test is not known)"
    part, called = run.unseen
    if isinstance(run.held_out, Split) and getattr(run.held_out, part).numel():
        nodes, what = np.unique(getattr(run.held_out, part).numpy()), f"the {called} nodes"
    nodes = nodes[labels[nodes] >= 0]
    if not nodes.size:
        return None
    names = [run.class_name(label) for label in range(probability.shape[1])]
    some = probability[nodes]
    return Judged(labels[nodes], some.argmax(-1), some.max(-1), names, what)


def tested_matrix(run: RunRecord) -> Array | None:
    """Return the confusion matrix of the test that the results hold, for a final model; None if they hold none."""
    rows, classes = (
        run.results.get("test_confusion"),
        0 if run.probability is None else run.probability.shape[1],
    )
    if not rows or not run.results.get("final") or {len(rows), *map(len, rows)} != {classes}:
        return None
    return np.array(rows, dtype=np.int64)


def confusion(found: Judged) -> Array:
    """Return how many nodes of each true class (rows) were given each class (columns)."""
    count = len(found.names)
    known = found.truth < count
    place = found.truth[known] * count + found.found[known]
    return np.bincount(place, minlength=count * count).reshape(count, count)


def confusion_table(matrix: Array, names: Sequence[str]) -> str:
    """Return a confusion matrix, with precision, recall and F1 of each class, as a table."""
    if len(names) > MOST_CLASSES:
        return f"<p class='note'>{len(names)} classes are too many for a matrix.</p>"
    head = "".join(f'<th scope="col"><span>{text(name)}</span></th>' for name in names)
    scores = "".join(f'<th scope="col" class="score">{name}</th>' for name in ("precision", "recall", "F1"))
    rows = []
    for label, (name, found) in enumerate(zip(names, class_scores(matrix.tolist()), strict=True)):
        cells = "".join(
            _cell(count, int(matrix[label].sum()), label == other)
            for other, count in enumerate(matrix[label].tolist())
        )
        shown = "".join(
            f'<td class="score">{_score(found[key])}</td>' for key in ("precision", "recall", "f1")
        )
        rows.append(f'<tr><th scope="row">{text(name)}</th>{cells}{shown}</tr>')
    table = f"<thead><tr><td></td>{head}{scores}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="scroll"><table class="confusion">{table}</table></div>'


def _cell(count: int, total: int, right: bool) -> str:
    shade = 0 if not count else 1 + min(SHADES - 1, int(SHADES * count / total))
    return f'<td class="{"right" if right else "wrong"}-{shade}">{number(int(count)) if count else "·"}</td>'


def _score(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def calibration(found: Judged) -> tuple[list[float], list[float], float]:
    """Return mean probability and fraction right of the bins that have nodes, and the expected calibration error."""
    right = found.truth == found.found
    place = np.minimum((found.probability * BINS).astype(int), BINS - 1)
    said, true, error = [], [], 0.0
    for one in range(BINS):
        here = place == one
        if here.any():
            said.append(float(found.probability[here].mean()))
            true.append(float(right[here].mean()))
            error += float(here.mean()) * abs(said[-1] - true[-1])
    return said, true, error


def calibration_chart(found: Judged) -> Spec:
    """Return the fraction that is right against the probability that was stated; the diagonal is honest."""
    said, true, _ = calibration(found)
    series = [{"name": "", "x": said, "y": true, "colour": "accent", "dots": True}]
    return {
        "kind": "panels",
        "title": "Calibration",
        "x": "stated probability",
        "from": 0,
        "to": 1,
        "panels": [
            {"title": "fraction right", "height": 230, "from": 0, "to": 1, "diagonal": True, "series": series}
        ],
    }
