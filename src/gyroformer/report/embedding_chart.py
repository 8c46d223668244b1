"""A head's points as a chart: nodes coloured by what is known of them, edges as shortest paths."""

import dataclasses as dc
import html
import math
from typing import Any

import numpy as np

from gyroformer.report.colours import CLASSES, FAINT, GRID, INK, SCALE, SPACES, Spec, axis, base_layout
from gyroformer.report.names import number
from gyroformer.report.projection import Drawing, draw_head, edge_paths
from gyroformer.report.record import RunRecord

Array = np.ndarray[Any, Any]

#: nodes and edges that a picture shows at most
MOST_NODES, MOST_EDGES = 5_000, 4_000
HEIGHT = 460
#: fraction of the way to the opposite point that a map of the sphere shows at least, unless no node is so far
SMALL_CAP = 0.4


@dc.dataclass(frozen=True, slots=True)
class Selection:
    """What is drawn of a run's graph, the same in all heads.

    Attributes:
        nodes: indices of the nodes drawn.
        edges: edges among them, by their indices in ``nodes``, ``(2, E)``; None without a graph.
        note: what was left out, as a sentence; empty if nothing was.
    """

    nodes: Array
    edges: Array | None
    note: str


def select(run: RunRecord) -> Selection:
    """Draw nodes and edges, if there are too many to show; the same for the same run."""
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
    return f"Shown: {' and '.join(notes)}." if notes else ""


def colour_line(run: RunRecord) -> str:
    """Return what the colours mean."""
    if run.results.get("task") == "classify":
        if run.graph.labels is not None:
            return "Colours are the true classes."
        if run.predicted is not None:
            return "Colours are the predicted classes."
    return "Colours and sizes are degrees." if run.graph.degree is not None else ""


def head_chart(run: RunRecord, head: int, chosen: Selection) -> tuple[Spec, Drawing]:
    """Return the chart of a head, and what it was drawn from."""
    # all nodes take part in midpoint and directions, whichever of them are shown
    drawing = draw_head(run.embedding[:, head], float(run.curvature[head]))
    traces = []
    if chosen.edges is not None and chosen.edges.shape[1]:
        traces.append(_edges(drawing, chosen.nodes[chosen.edges]))
    return {"data": [*traces, *_nodes(run, drawing, chosen.nodes)], "layout": _layout(drawing)}, drawing


def caption(drawing: Drawing, width: int) -> str:
    """Return which map it is, how far it reaches, and how much of ``width`` directions it shows."""
    if drawing.kind == "hyperbolic":
        kind = "Poincaré disc: its circle is infinitely far away"
    elif drawing.kind == "flat":
        almost = ": nothing of the curvature would be seen over this reach" if drawing.k else ""
        kind = f"Plane, axes in units of distance{almost}"
    elif half_view(drawing) < 1:
        kind = (
            f"Map of the sphere, {math.degrees(math.sqrt(drawing.k) * drawing.reach):.0f}° around the middle"
        )
    else:
        kind = "Map of the sphere: outer circle the opposite point, dashed circle the equator"
    kept = f"{drawing.fraction:.0%} of the squared length in these 2 of {width} directions"
    lost = "all of it is shown" if width <= 2 else kept
    return f"{kind}. Farthest node {number(drawing.reach)} from the middle; {lost}."


def _edges(drawing: Drawing, edges: Array) -> Spec:
    x: list[float | None] = []
    y: list[float | None] = []
    for path in edge_paths(drawing, edges):
        rounded = path.round(3).tolist()
        x += [*(point[0] for point in rounded), None]
        y += [*(point[1] for point in rounded), None]
    opacity = max(0.12, min(0.5, 12 / math.sqrt(edges.shape[1])))
    return {
        "x": x,
        "y": y,
        "mode": "lines",
        "line": {"color": f"rgba(70, 88, 104, {opacity:.2f})", "width": 0.7},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _nodes(run: RunRecord, drawing: Drawing, nodes: Array) -> list[Spec]:
    points, ids = drawing.points[nodes].round(4), [html.escape(run.ids[i], quote=False) for i in nodes]
    labels = run.graph.labels if run.graph.labels is not None else run.predicted
    degree = run.graph.degree
    if run.results.get("task") == "classify" and labels is not None:
        return _by_class(points, ids, labels[nodes])
    size = _size(len(nodes))
    marker: Spec = {"size": size, "color": SPACES[drawing.kind], "line": {"width": 0.4, "color": "#ffffff"}}
    trace = {"mode": "markers", "x": points[:, 0].tolist(), "y": points[:, 1].tolist(), "showlegend": False}
    if degree is None:
        return [{**trace, "text": ids, "marker": marker, "hovertemplate": "%{text}<extra></extra>"}]
    some = degree[nodes]
    shade = np.log10(np.maximum(some, 1))
    marker |= {
        "color": shade.round(3).tolist(),
        "colorscale": SCALE,
        "size": (size * (0.75 + 0.75 * shade / max(shade.max(), 1e-9))).round(1).tolist(),
        "colorbar": _degree_bar(int(some.max())),
    }
    text = [
        f"{name}<br>{count:,} neighbour{'' if count == 1 else 's'}"
        for name, count in zip(ids, some, strict=True)
    ]
    return [{**trace, "text": text, "marker": marker, "hovertemplate": "%{text}<extra></extra>"}]


def _by_class(points: Array, ids: list[str], labels: Array) -> list[Spec]:
    traces = []
    for label in np.unique(labels).tolist():
        member = np.flatnonzero(labels == label)
        name = f"class {label}" if label >= 0 else "no label"
        traces.append(
            {
                "mode": "markers",
                "name": name,
                "x": points[member, 0].tolist(),
                "y": points[member, 1].tolist(),
                "text": [f"{ids[i]}<br>{name}" for i in member],
                "hovertemplate": "%{text}<extra></extra>",
                "marker": {
                    "size": _size(len(labels)),
                    "color": CLASSES[label % len(CLASSES)] if label >= 0 else FAINT,
                    "line": {"width": 0.4, "color": "#ffffff"},
                },
            }
        )
    return traces


def _size(count: int) -> float:
    """Return the size of a node's mark: many are small."""
    return round(max(3.5, min(9.0, 150 / math.sqrt(count + 1))), 1)


def _degree_bar(largest: int) -> Spec:
    ticks = [tick for tick in (1, 3, 10, 30, 100, 300, 1_000, 10_000, 100_000) if tick <= largest]
    return {
        "title": {"text": "degree", "font": {"size": 11}},
        "tickvals": [math.log10(tick) for tick in ticks],
        "ticktext": [f"{tick:,}" for tick in ticks],
        "thickness": 10,
        "len": 0.6,
        "x": 1.0,
        "xpad": 4,
        "outlinewidth": 0,
        "tickfont": {"size": 10},
    }


def _layout(drawing: Drawing) -> Spec:
    layout = base_layout(HEIGHT)
    layout |= {
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "hovermode": "closest",
        "legend": {
            "orientation": "h",
            "itemsizing": "constant",
            "x": 0.5,
            "xanchor": "center",
            "y": 0,
            "yanchor": "top",
            "font": {"size": 11},
        },
    }
    if drawing.kind == "flat":
        return layout | {
            "xaxis": axis("", tickfont={"size": 10}),
            "yaxis": axis("", tickfont={"size": 10}, scaleanchor="x"),
        }
    reach = half_view(drawing)
    hidden: Spec = {"visible": False, "range": [-reach, reach], "constrain": "domain"}
    circles = [_circle(1.0, INK, "solid")]
    if drawing.kind == "spherical":
        circles = [_circle(1.0, FAINT, "solid")] + ([_circle(0.5, FAINT, "dash")] if reach >= 1 else [])
    return layout | {"xaxis": hidden, "yaxis": {**hidden, "scaleanchor": "x"}, "shapes": circles}


def half_view(drawing: Drawing) -> float:
    """Return the half width of the view: the whole disc, or the cap that has nodes, if that is small."""
    farthest = float(np.linalg.norm(drawing.points, axis=1).max())
    return 1.15 * farthest if drawing.kind == "spherical" and farthest < SMALL_CAP else 1.03


def _circle(radius: float, colour: str, dash: str) -> Spec:
    fill = "rgba(47, 102, 144, 0.035)" if dash == "solid" and radius == 1 else GRID
    circle = {
        "type": "circle",
        "x0": -radius,
        "x1": radius,
        "y0": -radius,
        "y1": radius,
        "layer": "below",
        "line": {"color": colour, "width": 1.2, "dash": dash},
    }
    return circle | ({"fillcolor": fill} if dash == "solid" else {})
