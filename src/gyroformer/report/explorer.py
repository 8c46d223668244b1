"""What the explorer of a page is made from: the nodes of each head in two dimensions, edges, nearest nodes, columns.

Everything is computed here and kept in one compressed block; the page's scripts only move, draw and look up.
"""

import dataclasses as dc
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gyroformer.graphs.adjacency import simple_adjacency
from gyroformer.ops.positions import Positions
from gyroformer.report.closeness import Closeness, Progress, closeness, pair_distances
from gyroformer.report.columns import Column, matched, run_columns
from gyroformer.report.names import model_name, number, signed
from gyroformer.report.packing import Packer, step_for
from gyroformer.report.projection import Drawing, draw_head
from gyroformer.report.record import RunRecord

Array = np.ndarray[Any, Any]
#: name and text by node id, for each column of ``--node-data``
NodeData = Sequence[tuple[str, dict[str, str]]]

#: nodes and edges that a page holds at most
MOST_NODES, MOST_EDGES = 50_000, 200_000
#: heads of a run, and runs of a page, that can be explored
MOST_HEADS, MOST_PICTURES = 8, 6
#: nearest nodes that are kept for each node, and for all together
FEW_NEAREST, MANY_NEAREST, ALL_NEAREST = 5, 20, 250_000


@dc.dataclass(frozen=True, slots=True)
class Selection:
    """What a page holds of a run's graph, the same in all heads.

    Attributes:
        nodes: indices of the nodes.
        edges: edges among them by their indices in ``nodes``, each once, ``u < v``, sorted, ``(2, E)``; None without
            a graph.
        note: what was left out, as a sentence; empty if nothing was.
    """

    nodes: Array
    edges: Array | None
    note: str


def select(run: RunRecord) -> Selection:
    """Draw nodes and edges, if there are too many to show; the same for the same graph."""
    count, notes = len(run.ids), []
    generator = np.random.default_rng(0)
    nodes = np.arange(count)
    if count > MOST_NODES:
        nodes = np.sort(generator.choice(count, MOST_NODES, replace=False))
        notes.append(f"{MOST_NODES:,} of {count:,} nodes, drawn at random")
    if run.graph.edges is None:
        return Selection(nodes, None, _sentence(notes))
    index = np.full(count, -1)
    index[nodes] = np.arange(len(nodes))
    edges = index[run.graph.edges]
    edges = edges[:, (edges >= 0).all(0)]
    if edges.shape[1] > MOST_EDGES:
        chosen = np.sort(generator.choice(edges.shape[1], MOST_EDGES, replace=False))
        among = " among them" if count > MOST_NODES else ""
        notes.append(f"{MOST_EDGES:,} of the {edges.shape[1]:,} edges{among}, drawn at random")
        edges = edges[:, chosen]
    return Selection(nodes, edges, _sentence(notes))


def _sentence(notes: list[str]) -> str:
    if not notes:
        return ""
    return f"Shown: {' and '.join(notes)}; nearest nodes and neighbours are listed among these."


def explorer_data(
    runs: Sequence[RunRecord], *, node_data: NodeData = (), source: str = "", progress: Progress | None = None
) -> str:
    """Return the block of all runs that can be explored, as text.

    Args:
        runs: the runs; beyond ``MOST_PICTURES`` they are left out.
        node_data: more columns.
        source: the file these are from.
        progress: called with (nodes done, nodes in all) while distances are computed.
    """
    packer = Packer()
    graphs: dict[tuple[tuple[str, ...], bytes], int] = {}
    blocks: list[dict[str, Any]] = []
    shown = []
    for run in runs[:MOST_PICTURES]:
        chosen = select(run)
        ids = [run.ids[i] for i in chosen.nodes]
        key = (tuple(ids), b"" if chosen.edges is None else chosen.edges.tobytes())
        if key not in graphs:
            graphs[key] = len(blocks)
            blocks.append(_graph_block(packer, ids, chosen.edges))
        more = matched(node_data, run.ids, source) if node_data else []
        shown.append(_run_block(packer, run, chosen, more, progress) | {"graph": graphs[key]})
    return packer.pack({"graphs": blocks, "runs": shown})


def _graph_block(packer: Packer, ids: list[str], edges: Array | None) -> dict[str, Any]:
    if edges is None:
        return {"ids": ids}
    source, target = edges
    counts = np.bincount(source, minlength=len(ids))
    first = np.zeros(len(source), dtype=bool)
    first[np.cumsum(counts)[counts > 0] - counts[counts > 0]] = True
    # a row's targets as gaps: from the node itself, then from one to the next
    gaps = target - np.where(first, source, np.roll(target, 1))
    return {"ids": ids, "counts": packer.integers(counts), "gaps": packer.integers(gaps)}


def _run_block(
    packer: Packer, run: RunRecord, chosen: Selection, more: list[Column], progress: Progress | None
) -> dict[str, Any]:
    whole = len(chosen.nodes) == len(run.ids)
    positions = run.positions if whole else dc.replace(run, embedding=run.embedding[chosen.nodes]).positions
    near = max(FEW_NEAREST, min(MANY_NEAREST, ALL_NEAREST // max(len(chosen.nodes), 1)))
    # the precision of a node needs all nodes and all its edges
    complete = whole and chosen.edges is not None and chosen.edges.shape == _edges(run).shape
    close = closeness(positions, near, chosen.edges if complete else None, progress=progress)
    columns = [*run_columns(run, close.precision), *more]
    return {
        "name": run.name,
        "task": run.task,
        "model": model_name(run.results.get("model")),
        "note": " ".join(part for part in (chosen.note, run.graph.missing) if part),
        "colour": _first_colour(run, columns),
        "decoder": run.results.get("decoder"),
        "heads": _heads(packer, run, chosen.nodes),
        "columns": [_column_block(packer, column, chosen.nodes) for column in columns],
        **_near_block(packer, positions, close, chosen.edges),
    }


def _edges(run: RunRecord) -> Array:
    assert run.graph.edges is not None
    return run.graph.edges


def _first_colour(run: RunRecord, columns: list[Column]) -> str:
    """Return the column that the nodes are coloured by at first."""
    wanted = ("class", "predicted class", "degree") if run.task == "classify" else ("degree",)
    names = [column.name for column in columns]
    return next((name for name in wanted if name in names), "")


def _heads(packer: Packer, run: RunRecord, nodes: Array) -> list[dict[str, Any]]:
    width = run.embedding.shape[2]
    found = []
    for head in range(min(run.embedding.shape[1], MOST_HEADS)):
        # all nodes take part in midpoint and directions, whichever of them are shown
        drawing = draw_head(run.embedding[:, head], float(run.curvature[head]))
        found.append(
            {
                "title": f"Head {head + 1}",
                "k": drawing.k,
                "curvature": signed(drawing.k),
                "kind": drawing.kind,
                "reach": drawing.reach,
                "caption": caption(drawing, width),
                "x": packer.reals(drawing.vectors[nodes, 0]),
                "y": packer.reals(drawing.vectors[nodes, 1]),
            }
        )
    return found


def caption(drawing: Drawing, width: int) -> str:
    """Return which map it is, how far it reaches, and how much of ``width`` directions it shows."""
    if drawing.kind == "hyperbolic":
        kind = "Poincaré disc: its circle is infinitely far away"
    elif drawing.kind == "flat":
        almost = ": nothing of the curvature would be seen over this reach" if drawing.k else ""
        kind = f"Plane{almost}"
    else:
        degrees = math.degrees(math.sqrt(drawing.k) * drawing.reach)
        kind = f"Sphere: the farthest node is {degrees:.0f}° from the middle, 180° is the opposite point"
    kept = f"{drawing.fraction:.0%} of the squared length lies in these 2 of {width} directions"
    lost = "all directions are shown" if width <= 2 else kept
    return f"{kind}. Farthest node {number(drawing.reach)} from the middle; {lost}."


def _column_block(packer: Packer, column: Column, nodes: Array) -> dict[str, Any]:
    values = column.values[nodes]
    about: dict[str, Any] = {"name": column.name, "note": column.note}
    if column.categories is not None:
        return about | {"categories": column.categories, "values": packer.integers(values)}
    absent = ~np.isfinite(values)
    filled = np.where(absent, 0, values)
    small = column.whole and float(np.abs(filled).max(initial=0)) < 2**31
    about["values"] = (
        packer.integers(filled.astype(np.int64)) if small else packer.reals(filled, step=column.step)
    )
    if absent.any():
        about["absent"] = packer.integers(np.flatnonzero(absent), delta=True)
    return about | ({"whole": 1} if column.whole else {})


def _near_block(
    packer: Packer, positions: Positions, close: Closeness, edges: Array | None
) -> dict[str, Any]:
    """Return lengths of edges, and nearest nodes.

    Most nearest nodes of a good embedding are neighbours. Such a one is kept as its rank among the node's neighbours,
    and its distance is the edge's; another one as its index beyond these, with a distance of its own.
    """
    nodes, count = close.nearest.shape
    lengths = np.zeros(0) if edges is None else pair_distances(positions, edges)
    step = step_for(lengths, close.distance)
    # nearest first: each distance as its difference to the one before, in the steps that edges have too
    gaps = np.diff(np.round(close.distance / step), axis=1, prepend=0)
    if edges is None:
        block = {"codes": packer.integers(close.nearest), "gaps": packer.integers(gaps)}
        return {"near": block | {"count": count, "step": step}}
    adjacency = simple_adjacency(edges, nodes)
    degree = np.diff(adjacency.indptr).astype(np.int64)
    own = np.repeat(np.arange(nodes), degree)
    keys = own * nodes + adjacency.indices
    wanted = np.arange(nodes)[:, None] * nodes + close.nearest
    place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    joined = keys[place] == wanted if len(keys) else np.zeros(wanted.shape, dtype=bool)
    codes = np.where(joined, place - adjacency.indptr[:-1, None], degree[:, None] + close.nearest)
    near = {"codes": packer.integers(codes), "gaps": packer.integers(gaps[~joined])}
    return {"lengths": packer.reals(lengths, step=step), "near": near | {"count": count, "step": step}}
