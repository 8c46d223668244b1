"""How well classes are told apart: confusion matrix, scores of each class, and whether probabilities can be trusted."""

import dataclasses as dc
from typing import Any

import numpy as np

from gyroformer.data.split import Split
from gyroformer.report.curves import Spec
from gyroformer.report.markup import text
from gyroformer.report.names import number
from gyroformer.report.record import RunRecord

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
    if labels is None or probability is None:
        return None
    nodes, what = np.arange(len(labels)), "all labelled nodes (which were for the test is not known)"
    if isinstance(run.held_out, Split) and run.held_out.test.numel():
        nodes, what = np.unique(run.held_out.test.numpy()), "the test nodes"
    nodes = nodes[labels[nodes] >= 0]
    if not nodes.size:
        return None
    names = [run.class_name(label) for label in range(probability.shape[1])]
    some = probability[nodes]
    return Judged(labels[nodes], some.argmax(-1), some.max(-1), names, what)


def confusion(found: Judged) -> Array:
    """Return how many nodes of each true class (rows) were given each class (columns)."""
    count = len(found.names)
    known = found.truth < count
    place = found.truth[known] * count + found.found[known]
    return np.bincount(place, minlength=count * count).reshape(count, count)


def confusion_table(found: Judged) -> str:
    """Return the confusion matrix, with precision, recall and F1 of each class, as a table."""
    if len(found.names) > MOST_CLASSES:
        return f"<p class='note'>{len(found.names)} classes are too many for a matrix.</p>"
    matrix = confusion(found)
    right, given, true = np.diag(matrix), matrix.sum(0), matrix.sum(1)
    head = "".join(f'<th scope="col"><span>{text(name)}</span></th>' for name in found.names)
    scores = "".join(f'<th scope="col" class="score">{name}</th>' for name in ("precision", "recall", "F1"))
    rows = []
    for label, name in enumerate(found.names):
        cells = "".join(
            _cell(matrix[label, other], true[label], label == other) for other in range(len(given))
        )
        precision, recall = _percent(right[label], given[label]), _percent(right[label], true[label])
        f1 = _percent(2 * right[label], given[label] + true[label])
        shown = "".join(f'<td class="score">{value}</td>' for value in (precision, recall, f1))
        rows.append(f'<tr><th scope="row">{text(name)}</th>{cells}{shown}</tr>')
    table = f"<thead><tr><td></td>{head}{scores}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="scroll"><table class="confusion">{table}</table></div>'


def _cell(count: int, total: int, right: bool) -> str:
    shade = 0 if not count else 1 + min(SHADES - 1, int(SHADES * count / total))
    return f'<td class="{"right" if right else "wrong"}-{shade}">{number(int(count)) if count else "·"}</td>'


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "–"


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
