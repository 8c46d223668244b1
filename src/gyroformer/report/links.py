"""How well edges are told from non-edges, and which edges the model misses in the graph."""

import dataclasses as dc
from typing import Any

import numpy as np
import torch

from gyroformer.data.link_split import LinkSplit
from gyroformer.graphs.adjacency import Csr, directed_adjacency, simple_adjacency
from gyroformer.ops.nearest import nearest_pairs
from gyroformer.report.curves import Spec, thinned
from gyroformer.report.markup import text
from gyroformer.report.record import RunRecord
from gyroformer.tasks.decoders import LinkDecoder
from gyroformer.tasks.ranking import alarms

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
    """Return the rates of false and of true alarms on the pairs held out; None if these are not known."""
    if not isinstance(run.held_out, LinkSplit):
        return None
    split, decoder = run.held_out, decoder_of(run)
    if decoder is None:
        return None

    part, _ = run.unseen
    pairs = getattr(split, part), getattr(split, f"{part}_non")
    edges, others = (_logits(run, decoder, some) for some in pairs)
    false, true = alarms(edges, others)
    return false / others.size, true / edges.size


def decoder_of(run: RunRecord) -> LinkDecoder | None:
    """Return the decoder of a link run as its results tell it; None if they do not."""
    about = run.results.get("decoder")
    if not isinstance(about, dict):
        return None
    weight, depth, known = about.get("degree_weight"), about.get("depth_weight"), run.held_out
    if weight is not None and not isinstance(known, LinkSplit):
        return None
    more = {"degrees": weight is not None, "directed": depth is not None}
    decoder = LinkDecoder(about["kind"], radius=about["radius"], temperature=about["temperature"], **more)
    if isinstance(known, LinkSplit):
        decoder.know(known.train, known.nodes)
    for parameter, value in ((decoder.degree_weight, weight), (decoder.depth_weight, depth)):
        if parameter is not None:
            parameter.data = torch.tensor(value).reshape(parameter.shape)
    decoder.calibration = torch.tensor(about.get("calibration", [1.0, 0.0]))
    return decoder.requires_grad_(False)


def _logits(run: RunRecord, decoder: LinkDecoder, pairs: torch.Tensor) -> Array:
    """Return what pairs are ranked by."""
    with torch.no_grad():
        return decoder.pairs(run.positions, pairs).double().numpy()


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
        "title": f"ROC curve of the {run.unseen[1]} pairs",
        "x": "false alarms",
        "from": 0,
        "to": 1,
        "panels": [{**panel, "series": [{"name": "", "x": x, "y": y, "colour": "accent"}]}],
    }


def missing_edges(run: RunRecord, count: int = LISTED) -> list[MissingEdge]:
    """Return the pairs without an edge in the whole graph that the model finds likeliest."""
    decoder = decoder_of(run)
    if run.graph.edges is None or decoder is None:
        return []
    joined = _joined(run, decoder)
    with torch.no_grad():
        pairs, cost = nearest_pairs(
            run.positions,
            joined,
            count,
            cost=lambda rows: -decoder.rows(run.positions, rows),
            directed=decoder.directed,
        )
        likely = decoder.calibrated(-cost).sigmoid().tolist()
        far = run.positions.pair_squared_dist(*pairs).clamp(min=0).sqrt().tolist()
    return [
        MissingEdge(run.ids[u], run.ids[v], distance, probability)
        for u, v, distance, probability in zip(*pairs.tolist(), far, likely, strict=True)
    ]


def _joined(run: RunRecord, decoder: LinkDecoder) -> Csr:
    """Return the adjacency matrix of all known edges, in their direction if that counts."""
    split, nodes = run.held_out, len(run.ids)
    if decoder.directed and isinstance(split, LinkSplit):
        return directed_adjacency(torch.cat((split.train, split.val, split.test), 1), nodes)
    assert run.graph.edges is not None
    return simple_adjacency(run.graph.edges, nodes)


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
