"""What a trained model says of a graph: labels, distances, nearest nodes, likely edges.

Each answer is a table: a name, columns, and rows of plain values.
"""

import dataclasses as dc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gyroformer.errors import DataError, UsageError
from gyroformer.jobs.restore import Restored
from gyroformer.ops.nearest import has_index, nearest_nodes, nearest_pairs, row_blocks, smallest
from gyroformer.tasks import TASKS
from gyroformer.tasks.decoders import plain_distance
from gyroformer.untrusted import check_regular

#: distances an hour on one core (results/nearest.csv), and how many are taken at most: beyond, nodes have to be named
DISTANCES_AN_HOUR, MOST_DISTANCES = 45e9, 25e9
#: what is answered when nothing is asked: so many nearest nodes, and so many new edges
FEW_NEAREST, FEW_EDGES = 5, 10


@dc.dataclass(frozen=True)
class Answer:
    """A table.

    Attributes:
        name: what was asked.
        columns: their names.
        rows: plain values, one for each column.
        nodes: the indices of the nodes that the rows are about, if it is about nodes.
    """

    name: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    nodes: list[int] | None = None

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def labels(run: Restored, nodes: Tensor) -> Answer:
    """Return the likeliest class of each of ``nodes``, the label that it was given, and the classes' probabilities."""
    if run.model.classes is None:
        raise UsageError(f"--labels needs a classify run; this one is of the task {run.job.task!r}")
    with torch.no_grad():
        probability = run.model.scores(run.data).softmax(-1)[nodes]
    names = run.label_names or [str(number) for number in range(run.model.classes)]
    found = probability.max(-1)
    best, likely, all_of = found.indices.tolist(), found.values.tolist(), probability.tolist()
    given = _given_labels(run, names)
    rows = [
        (run.data.ids[node], names[label], given[node], chance, *chances)
        for node, label, chance, chances in zip(nodes.tolist(), best, likely, all_of, strict=True)
    ]
    columns = ("node", "label", "given", "probability", *(f"P({name})" for name in names))
    return Answer("labels", columns, rows, nodes.tolist())


def _given_labels(run: Restored, names: Sequence[str]) -> list[str | None]:
    """Return the label that each node has in its graph, by its name; None where it has none."""
    data = run.data
    if data.y is None:
        return [None] * len(run.ids)
    known = data.label_names if "label_names" in data and data.label_names else names
    return [known[label] if 0 <= label < len(known) else None for label in data.y.tolist()]


def nearest(run: Restored, nodes: Tensor, count: int) -> Answer:
    """Return the ``count`` nodes nearest to each of ``nodes``, with their distances."""
    positions = run.positions()
    if not has_index(positions, nodes.numel()):
        _check_work(nodes, len(positions))
    columns, squared = nearest_nodes(positions, nodes, count)
    far, ids = plain_distance(squared).tolist(), run.data.ids
    rows = [
        (ids[node], rank + 1, ids[other], far[row][rank])
        for row, (node, others) in enumerate(zip(nodes.tolist(), columns.tolist(), strict=True))
        for rank, other in enumerate(others)
    ]
    return Answer("nearest", ("node", "rank", "neighbour", "distance"), rows, nodes.tolist())


def ancestors(run: Restored, nodes: Tensor, count: int) -> Answer:
    """Return the ``count`` likeliest ancestors of each of ``nodes``, with their scores, and whether they were given."""
    if run.hierarchy is None:
        raise UsageError("--ancestors needs a run of embed --hierarchy; --nearest 10 gives the nearest nodes")
    positions, score, ids, rows = run.positions(), run.hierarchy.score, run.data.ids, []
    _check_work(nodes, len(positions))
    for block in row_blocks(nodes, len(positions)):
        with torch.no_grad():
            costs = score.costs(positions, block)
        costs[torch.arange(block.numel()), block] = torch.inf
        values, columns = smallest(costs, min(count, len(positions) - 1))
        given = run.hierarchy.ancestors.adjacent(block).gather(1, columns)
        listed = zip(block.tolist(), columns.tolist(), values.tolist(), given.tolist(), strict=True)
        for node, others, costs_of, known in listed:
            found = enumerate(zip(others, costs_of, known, strict=True), start=1)
            rows += [(ids[node], rank, ids[other], -cost, is_one) for rank, (other, cost, is_one) in found]
    return Answer("ancestors", ("node", "rank", "ancestor", "score", "given"), rows, nodes.tolist())


def _check_work(nodes: Tensor, others: int) -> None:
    """Refuse to compare so many nodes with all others that nobody would wait for it."""
    work = nodes.numel() * others
    if work > MOST_DISTANCES:
        raise UsageError(
            f"comparing {nodes.numel():,} nodes with {others:,} would take about {work / DISTANCES_AN_HOUR:.1f} hours: "
            "name the nodes that you ask about with --node ID, which may be repeated"
        )


def distances(run: Restored, pairs: Sequence[tuple[str, str]]) -> Answer:
    """Return the distance of each pair of ids and, of a link run, the probability of an edge."""
    ends = [run.indices([pair[side] for pair in pairs]) for side in (0, 1)]
    return _pairs(run, "distances", torch.stack(ends))


def new_edges(run: Restored, count: int, node: str | None = None) -> Answer:
    """Return pairs without an edge, of all nodes or of one: the nearest first, in a link run the likeliest."""
    index = None if node is None else int(run.indices([node])[0])
    decoder = run.decoder

    positions, directed = run.positions(), decoder is not None and decoder.directed

    def cost(rows: Tensor) -> Tensor:
        assert decoder is not None
        return -decoder.rows(positions, rows)

    chosen = None if decoder is None else cost
    with torch.no_grad():
        pairs, _ = nearest_pairs(positions, run.joined, count, cost=chosen, node=index, directed=directed)
    return _pairs(run, "new_edges", pairs)


def _pairs(run: Restored, name: str, pairs: Tensor) -> Answer:
    ids, positions = run.data.ids, run.positions()
    far: list[list[Any]] = [[ids[node] for node in side] for side in pairs.tolist()]
    far.append(plain_distance(positions.pair_squared_dist(*pairs)).tolist())
    if run.decoder is not None:
        with torch.no_grad():
            odds = run.decoder.calibrated(run.decoder.pairs(positions, pairs))
            far.append(odds.double().sigmoid().tolist())
    columns = ("source", "target", "distance", "probability")[: len(far)]
    return Answer(name, columns, list(zip(*far, strict=True)))


def usual_answer(run: Restored, nodes: Tensor) -> Answer:
    """Return what a run of its task is for: labels, new edges or nearest nodes."""
    if run.hierarchy is not None:
        return ancestors(run, nodes, FEW_NEAREST)
    answers: dict[str, Callable[[], Answer]] = {
        "labels": lambda: labels(run, nodes),
        "new_edges": lambda: new_edges(run, FEW_EDGES),
        "nearest": lambda: nearest(run, nodes, FEW_NEAREST),
    }
    return answers[TASKS[run.job.task].answer]()


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """Return the pairs of ids in a file: two a line, between blanks, a tab, a comma or a semicolon.

    Empty lines and lines that begin with ``#`` are passed over.
    """
    check_regular(path)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as text ({error})") from None
    pairs = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        mark = next((mark for mark in "\t,;" if mark in text), None)
        ends = [end.strip() for end in text.split(mark)]
        if len(ends) != 2 or not all(ends):
            raise DataError(f"{path}:{number}: expected two ids, found {len(ends)}: {text!r}")
        pairs.append((ends[0], ends[1]))
    if not pairs:
        raise DataError(f"{path}: no pair of ids in it")
    return pairs
