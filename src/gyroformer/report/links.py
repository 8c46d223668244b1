"""How well edges are told from non-edges, and which edges the model misses in the graph."""

import dataclasses as dc
from typing import Any

import numpy as np
import torch

from gyroformer.data.link_split import LinkSplit
from gyroformer.graphs.adjacency import simple_adjacency
from gyroformer.ops.nearest import nearest_pairs
from gyroformer.report.curves import Spec, thinned
from gyroformer.report.markup import text
from gyroformer.report.record import RunRecord
from gyroformer.tasks.decoders import LinkDecoder
from gyroformer.tasks.link import nearness

Array = np.ndarray[Any, Any]

#: missing edges that are listed, and points of the curve
LISTED, CURVE_POINTS = 20, 400


@dc.dataclass(frozen=True, slots=True)
class MissingEdge:
    """A pair without an edge that lies close."""

    source: str
    target: str
    distance: float
    probability: float


def roc(run: RunRecord) -> tuple[Array, Array] | None:
    """Return the rates of false and of true alarms on the test pairs; None if these are not known."""
    from sklearn.metrics import roc_curve

    if not isinstance(run.held_out, LinkSplit):
        return None
    split, positions = run.held_out, run.positions
    edges, others = nearness(positions, split.test), nearness(positions, split.test_non)
    truth = np.repeat([1, 0], [edges.size, others.size])
    false, true, _ = roc_curve(truth, np.concatenate((edges, others)))
    return false, true


def roc_chart(run: RunRecord) -> Spec | None:
    """Return the ROC curve of the test pairs."""
    found = roc(run)
    if found is None:
        return None
    places = thinned(len(found[0]), CURVE_POINTS)
    x, y = (found[side][places].round(6).tolist() for side in (0, 1))
    panel = {"title": "found edges", "height": 230, "from": 0, "to": 1, "diagonal": True}
    return {
        "kind": "panels",
        "title": "ROC curve of the test pairs",
        "x": "false alarms",
        "from": 0,
        "to": 1,
        "panels": [{**panel, "series": [{"name": "", "x": x, "y": y, "colour": "accent"}]}],
    }


def missing_edges(run: RunRecord, count: int = LISTED) -> list[MissingEdge]:
    """Return the pairs without an edge in the whole graph that the model finds likeliest."""
    about = run.results.get("decoder")
    if run.graph.edges is None or not isinstance(about, dict):
        return []
    joined = simple_adjacency(run.graph.edges, len(run.ids))
    with torch.no_grad():
        pairs, squared = nearest_pairs(run.positions, joined, count)
        decoder = LinkDecoder(about["kind"], radius=about["radius"], temperature=about["temperature"])
        likely = decoder(squared).sigmoid().tolist()
    far = squared.clamp(min=0).sqrt().tolist()
    return [
        MissingEdge(run.ids[u], run.ids[v], distance, probability)
        for u, v, distance, probability in zip(*pairs.tolist(), far, likely, strict=True)
    ]


def missing_table(found: list[MissingEdge]) -> str:
    """Return the missing edges as a table."""
    rows = "".join(
        f"<tr><td>{text(one.source)}</td><td>{text(one.target)}</td>"
        f'<td class="number">{one.distance:.4f}</td><td class="number">{one.probability:.4f}</td></tr>'
        for one in found
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("source", "target", "distance", "probability"))
    table = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="scroll"><table class="plain">{table}</table></div>'
