"""A run told in plain words: what was learned, how curved, how well, on what, how long, and how to do it again."""

import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gyroformer.report.markup import text
from gyroformer.report.names import duration, metrics_of, model_name, number, signed
from gyroformer.report.projection import space_kind
from gyroformer.report.record import RunRecord
from gyroformer.tasks.task import metric_title

Array = np.ndarray[Any, Any]
#: models whose spaces are flat and that are FPS-T in everything else
FLAT_TWINS = frozenset({"tokengt"})
#: difference of metrics in percent points that is worth a word
SAME = 0.05
#: what a kind of space is like
SHAPES = {
    "hyperbolic": "room grows exponentially outwards, as the levels of a tree do",
    "nearly flat": "over the room that its nodes take, the curvature would not be seen",
    "spherical": "it closes on itself, as rings do",
}


def graph_name(run: RunRecord) -> str:
    """Return what the graph of a run is called: a data set's name, a file's, or that it came from Python."""
    return Path(str(run.results.get("graph") or "")).name or "a graph from Python"


def story(run: RunRecord, others: Sequence[RunRecord] = ()) -> str:
    """Return the paragraphs of a run, as HTML; among ``others`` its flat twin is looked for."""
    parts = [_goal(run), _quality(run, others), _final(run), _curvatures(run), _effort(run)]
    shown = "".join(f"<p>{part}</p>" for part in parts if part)
    command = repeated(run)
    if command:
        shown += f'<p class="again"><span>The same again:</span> <code>{text(command)}</code></p>'
    return shown


def _goal(run: RunRecord) -> str:
    nodes, heads, width = run.embedding.shape
    room = f"{heads} heads of {width} dimensions each" if heads > 1 else f"one space of {width} dimensions"
    what = {
        "embed": "placed {} so that nodes joined by an edge lie close and all others far apart",
        "classify": "learned to tell the classes of {}",
        "link": "placed {} so that held-out edges can be told from pairs that are none",
    }.get(run.task, f"was trained for {text(run.task)} on {{}}")
    if "hierarchy_map" in run.results:
        what = "placed {} so that the ancestors of a node come before all other nodes"
    subject = f"the {number(nodes)} nodes of <strong>{text(graph_name(run))}</strong>"
    return f"<strong>{text(model_name(run.results.get('model')))}</strong> {what.format(subject)}, in {room}."


def _quality(run: RunRecord, others: Sequence[RunRecord]) -> str:
    metrics = metrics_of(run.results)
    if not metrics:
        return ""
    key, value = next(iter(metrics.items()))
    meaning = {
        "map": "mAP, mean average precision: sort all nodes by their distance from one of them, and see whether its "
        "neighbours come first; 100 % is perfect",
        "hierarchy_map": "mean average precision over ancestors: sort all nodes by how likely they are to be above "
        "one of them, and see whether its ancestors come first; 100 % is perfect",
        "test_f1": "of the test nodes, none of which was trained on, so many get their true class",
        "val_f1": "of the validation nodes, by which the epoch is chosen, so many get their true class; the test waits "
        "for the end of the run",
        "val_auc": "AUC on the validation edges, by which the epoch is chosen: such an edge is ranked above a pair "
        "that is none so often; the test waits for the end of the run",
        "test_auc": "AUC: a held-out edge is ranked above a pair that is none so often; 50 % is chance",
    }.get(key, metric_title(key))
    if key == "test_f1" and isinstance(run.results.get("split"), dict) and run.results["split"].get("leaks"):
        meaning = "micro-F1 on the test nodes, some of which were trained on"
    shown = f'It reached <strong class="figure">{number(value)} %</strong> ({text(meaning)}).'
    return f"{shown} {_beside_twin(run, key, value, others)}".strip()


def _final(run: RunRecord) -> str:
    final = run.results.get("final")
    if not final:
        return ""
    return (
        f"The model of this page is another than the one that was tested: it was then trained on all "
        f"{number(final.get('nodes'))} labelled nodes, for {number(final.get('epochs'))} epochs, and has "
        "no test of its own."
    )


def _beside_twin(run: RunRecord, key: str, value: float, others: Sequence[RunRecord]) -> str:
    twins = [
        other
        for other in others
        if other.results.get("model") in FLAT_TWINS
        and run.results.get("model") == "fpst"
        and all(other.results.get(name) == run.results.get(name) for name in ("task", "graph"))
    ]
    if not twins:
        return ""
    twin = twins[0].results.get(key)
    if not isinstance(twin, float):
        return ""
    ahead = value - twin
    if abs(ahead) < SAME:
        return f"Its flat twin does equally well ({number(twin)} %)."
    word = "ahead of" if ahead > 0 else "behind"
    return f"That is {number(abs(ahead))} points {word} its flat twin ({number(twin)} %), with one seed each."


def _curvatures(run: RunRecord) -> str:
    layers = run.results.get("curvatures") or []
    if not any(k for heads in layers for k in heads):
        return "Its space is flat: straight lines, no curvature to learn."
    said = []
    for kind, heads in heads_by_kind(run.embedding, run.curvature).items():
        each = [f"head {head + 1} (k = {signed(float(run.curvature[head]))})" for head in heads]
        names = each[0] if len(each) == 1 else f"{', '.join(each[:-1])} and {each[-1]}"
        became = "became" if kind != "nearly flat" else "stayed"
        said.append(f"{text(names)} {became} <strong>{kind}</strong>: {SHAPES[kind]}")
    return f"Its curvatures were learned: {'; '.join(said)}."


def heads_by_kind(embedding: Array, curvature: Array) -> dict[str, list[int]]:
    """Return which heads look hyperbolic, nearly flat or spherical over the room that their nodes take.

    Args:
        embedding: tangent vectors at the origin, ``(N, heads, d)``.
        curvature: of each head.
    """
    found: dict[str, list[int]] = {}
    for head, k in enumerate(curvature.tolist()):
        reach = 2 * math.sqrt(float(np.square(embedding[:, head]).sum(-1).max(initial=0)))
        kind = space_kind(k, reach)
        found.setdefault("nearly flat" if kind == "flat" else kind, []).append(head)
    return found


def _effort(run: RunRecord) -> str:
    results = run.results
    epochs, best = results.get("epochs", 0), results.get("best_epoch")
    kept = (
        f" The state after epoch {number(best)}, the best on validation, was kept."
        if best not in (None, epochs)
        else ""
    )
    where = run.manifest.get("threads")
    threads = f" on {number(where)} threads" if isinstance(where, int) and where > 1 else ""
    seconds = results.get("seconds") or 0.0
    took = duration(seconds) if math.isfinite(seconds) else "some time"
    return (
        f"Training took {number(epochs)} epochs and {took}{threads}, for "
        f"{number(results.get('parameters'))} parameters, with seed {text(results.get('seed'))}.{kept}"
    )


def repeated(run: RunRecord) -> str:
    """Return the command that made the run; empty if it was made from Python."""
    argv = run.manifest.get("argv")
    if not isinstance(argv, list) or not argv:
        return ""
    program = Path(str(argv[0])).name
    if program not in ("gyroformer", "gyroformer.exe", "__main__.py") or run.task not in argv[1:2]:
        return ""
    return shlex.join(["gyroformer", *(str(word) for word in argv[1:])])
