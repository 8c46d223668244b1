"""What is known of each node, as columns that a page can colour and size by."""

import dataclasses as dc
from collections.abc import Sequence
from typing import Any

import numpy as np

from gyroformer.data.split import PARTS, Split
from gyroformer.errors import DataError
from gyroformer.graphs.adjacency import ranked_components, simple_adjacency
from gyroformer.report.record import RunRecord

Array = np.ndarray[Any, Any]

#: of numbers from 0 to 1: two bytes
SHARE_STEP = 2.0**-16 * (1 + 2.0**-16)
PART_NAMES = {"train": "training", "val": "validation", "test": "test"}


@dc.dataclass(frozen=True, slots=True)
class Column:
    """A value for each node.

    Attributes:
        name: what it is called.
        values: real numbers, NaN where there is none; or the numbers of categories, -1 where there is none.
        categories: their names; None for a column of numbers.
        whole: whether the numbers are counts.
        step: in which they are kept on a page; None for one that fits them.
        note: what it means, as a sentence.
    """

    name: str
    values: Array
    categories: list[str] | None = None
    whole: bool = False
    step: float | None = None
    note: str = ""


def run_columns(run: RunRecord, precision: Array | None) -> list[Column]:
    """Return what a run and its graph say of the nodes.

    Args:
        run: the run.
        precision: each node's own average precision.
    """
    found = _class_columns(run)
    graph = run.graph
    if graph.degree is not None and graph.edges is not None:
        found.append(Column("degree", graph.degree, whole=True, note="Number of neighbours in the graph."))
        count, component = ranked_components(simple_adjacency(graph.edges, len(run.ids)))
        if count > 1:
            names = [str(number + 1) for number in range(count)]
            note = "Connected parts of the graph, the largest first."
            found.append(Column("component", component, categories=names, note=note))
    if precision is not None:
        note = "Do the nodes nearest to it come from its neighbours? 1 is perfect; low is where the embedding fails."
        found.append(Column("average precision", precision, step=SHARE_STEP, note=note))
    return found


def _class_columns(run: RunRecord) -> list[Column]:
    labels, predicted, found = run.graph.labels, run.predicted, []
    count = max(0 if labels is None else int(labels.max(initial=-1)) + 1, 0 if predicted is None else 1)
    count = max(count, 0 if run.probability is None else run.probability.shape[1])
    names = [run.class_name(label) for label in range(count)]
    if labels is not None and count:
        found.append(Column("class", labels, categories=names, note="The true class."))
    if predicted is not None and run.probability is not None:
        found.append(Column("predicted class", predicted, categories=names))
        note = "Of the predicted class."
        found.append(Column("probability", run.probability.max(-1), step=SHARE_STEP, note=note))
        if labels is not None:
            right = np.where(labels < 0, -1, np.where(labels == predicted, 0, 1))
            note = "Whether the predicted class is the true one."
            if run.results.get("final"):
                note += " The final model has learned from all of them."
            if isinstance(run.held_out, Split) and run.unseen[0] != "test":
                right[run.held_out.test.numpy()] = -1
                note += " Test nodes are not looked at before the run is finished."
            found.append(Column("right or wrong", right, categories=["right", "wrong"], note=note))
    if isinstance(run.held_out, Split):
        part = np.full(len(run.ids), -1)
        for number, name in enumerate(PARTS):
            part[getattr(run.held_out, name).numpy()] = number
        found.append(Column("part", part, categories=[PART_NAMES[name] for name in PARTS]))
    return found


def matched(columns: Sequence[tuple[str, dict[str, str]]], ids: Sequence[str], source: str) -> list[Column]:
    """Return columns of text by id as columns of the nodes: numbers where all values are numbers, else categories.

    Args:
        columns: name and values by id.
        ids: the nodes.
        source: where they are from, for the error.
    """
    known = set(ids)
    if columns and not known.intersection(columns[0][1]):
        some = next(iter(columns[0][1]), "")
        raise DataError(
            f"{source}: no id in it is a node of the run ({some!r} is not; the run has {ids[0]!r}): its first "
            "column, or the one called id or node, must hold the nodes' ids"
        )
    return [_column(name, [values.get(one, "") for one in ids]) for name, values in columns]


def _column(name: str, texts: list[str]) -> Column:
    numbers = [_number(text) for text in texts]
    if all(number is not None for number in numbers):
        values = np.array(numbers, dtype=np.float64)
        seen = values[np.isfinite(values)]
        return Column(name, values, whole=bool((seen == np.round(seen)).all()))
    categories = sorted({text for text in texts if text})
    place = {text: number for number, text in enumerate(categories)} | {"": -1}
    return Column(name, np.array([place[text] for text in texts]), categories=categories)


def _number(text: str) -> float | None:
    """Return the number that a cell holds, NaN for an empty one, None for other text."""
    if not text or text.lower() in ("nan", "na", "n/a", "null", "?"):
        return float("nan")
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None
