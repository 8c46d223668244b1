"""A run in the formats of others: a still picture for a paper, Gephi's graph, the Embedding Projector's two tables."""

import io
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from gyroformer.durable import make_folder, write_output
from gyroformer.errors import MissingPartError, UsageError
from gyroformer.report.closeness import closeness, pair_distances
from gyroformer.report.columns import Column, matched, run_columns
from gyroformer.report.explorer import select
from gyroformer.report.names import signed
from gyroformer.report.node_data import read_node_data
from gyroformer.report.projection import Drawing, draw_head, edge_paths
from gyroformer.report.record import RunRecord

Array = np.ndarray[Any, Any]

#: formats beside the page, in the order of ``--help``
FORMATS = ("png", "svg", "gexf", "tsv")
#: columns of a table whose categories get colours of their own in a still
MOST_COLOURS = 20
#: characters that XML 1.0 does not allow, as its other control characters
_FORBIDDEN = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 65534, 65535), "�")


def export_run(run: RunRecord, target: Path, kind: str, *, node_data: Path | None = None) -> list[Path]:
    """Write a run in another format and return the files.

    Args:
        run: the run.
        target: the file; ``tsv`` writes ``NAME.vectors.tsv`` and ``NAME.metadata.tsv`` beside it.
        kind: one of ``FORMATS``.
        node_data: a table of more columns for the nodes.
    """
    columns = node_columns(run, node_data)
    writers: dict[str, Callable[[], dict[Path, bytes]]] = {
        "png": lambda: {target: still(run, columns, "png")},
        "svg": lambda: {target: still(run, columns, "svg")},
        "gexf": lambda: {target: gexf(run, columns).encode(errors="backslashreplace")},
        "tsv": lambda: _projector(run, columns, target),
    }
    if kind not in writers:
        raise UsageError(f"--format {kind}: choose html, {', '.join(FORMATS)}")
    files = writers[kind]()
    make_folder(target.parent)
    for path, content in files.items():
        write_output(path, content)
    return list(files)


def node_columns(run: RunRecord, node_data: Path | None) -> list[Column]:
    """Return what is known of the nodes, as the explorer shows it."""
    more = [] if node_data is None else matched(read_node_data(node_data), run.ids, str(node_data))
    precision = closeness(run.positions, 1, run.graph.edges).precision if len(run.ids) > 1 else None
    return [*run_columns(run, precision), *more]


def _cell(column: Column, node: int) -> str:
    """Return a value as text; empty where there is none."""
    value = column.values[node]
    if column.categories is not None:
        return "" if value < 0 else column.categories[int(value)]
    if not math.isfinite(value):
        return ""
    return str(int(value)) if column.whole else f"{value:.9g}"


# ---- a still


def still(run: RunRecord, columns: Sequence[Column], kind: str) -> bytes:
    """Return all heads side by side as a picture: every node, edges as shortest paths, coloured as in the explorer."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPartError("matplotlib", "figures", f"--format {kind}") from None

    chosen, heads = select(run), run.embedding.shape[1]
    wide = min(heads, 4)
    high = -(-heads // wide)
    figure = Figure(figsize=(3.6 * wide, 3.9 * high), layout="constrained")
    axes = np.atleast_1d(figure.subplots(high, wide)).ravel()
    for place in axes[heads:]:
        place.set_axis_off()
    colour = _colouring(run, columns)
    for head in range(heads):
        drawing = draw_head(run.embedding[:, head], float(run.curvature[head]))
        _draw(axes[head], drawing, chosen.nodes, chosen.edges, colour)
        axes[head].set_title(f"head {head + 1}, k = {signed(drawing.k)}, {drawing.kind}", fontsize=9)
    buffer = io.BytesIO()
    # no date in the file: the same run gives the same bytes
    about = {"Date": None} if kind == "svg" else {}
    figure.savefig(buffer, format=kind, dpi=300, metadata=about)
    return buffer.getvalue()


def _colouring(run: RunRecord, columns: Sequence[Column]) -> dict[str, Any]:
    wanted = ("class", "predicted class", "degree") if run.task == "classify" else ("degree",)
    column = next((column for name in wanted for column in columns if column.name == name), None)
    if column is None:
        return {"c": np.zeros(len(run.ids)), "cmap": "viridis"}
    if column.categories is not None:
        return {"c": column.values % MOST_COLOURS, "cmap": "tab20", "vmin": 0, "vmax": MOST_COLOURS - 1}
    return {"c": np.log1p(column.values), "cmap": "viridis"}


def _draw(axes: Any, drawing: Drawing, nodes: Array, edges: Array | None, colour: dict[str, Any]) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.patches import Circle

    if edges is not None and edges.shape[1]:
        alpha = max(0.06, min(0.5, 12 / math.sqrt(edges.shape[1])))
        paths = edge_paths(drawing, nodes[edges])
        axes.add_collection(LineCollection(paths, colors="#4f6375", linewidths=0.35, alpha=alpha, zorder=1))
    points = drawing.points[nodes]
    size = max(1.0, min(28.0, 5_000 / (len(nodes) + 60)))
    shown = {**colour, "c": colour["c"][nodes]}
    axes.scatter(points[:, 0], points[:, 1], s=size, linewidths=0.2, edgecolors="white", zorder=2, **shown)
    if drawing.kind != "flat":
        axes.add_patch(Circle((0, 0), 1, fill=False, color="#51616f", linewidth=0.8, zorder=0))
        # the whole map, or its middle part if the nodes take no more room
        half = min(1.03, 1.3 * float(np.linalg.norm(points, axis=1).max(initial=1e-6)))
        axes.set_xlim(-half, half)
        axes.set_ylim(-half, half)
        axes.set_axis_off()
    axes.set_aspect("equal")
    axes.tick_params(labelsize=7)


# ---- Gephi


def gexf(run: RunRecord, columns: Sequence[Column]) -> str:
    """Return the graph as GEXF 1.3: ids, every column, the first head as the layout, distances as edges' lengths."""
    drawing = draw_head(run.embedding[:, 0], float(run.curvature[0]))
    scale = 500 / max(float(np.abs(drawing.points).max(initial=0.0)), 1e-12)
    kinds = ["string" if column.categories is not None else "double" for column in columns]
    names = "".join(
        f'<attribute id="{number}" title={_quoted(column.name)} type="{kind}"/>'
        for number, (column, kind) in enumerate(zip(columns, kinds, strict=True))
    )
    nodes = []
    for node, name in enumerate(run.ids):
        cells = "".join(
            f'<attvalue for="{number}" value={_quoted(text)}/>'
            for number, column in enumerate(columns)
            if (text := _cell(column, node))
        )
        x, y = drawing.points[node] * scale
        nodes.append(
            f'<node id="{node}" label={_quoted(name)}><attvalues>{cells}</attvalues>'
            f'<viz:position x="{x:.4f}" y="{y:.4f}" z="0"/></node>'
        )
    pairs = np.zeros((2, 0), dtype=np.int64) if run.graph.edges is None else run.graph.edges
    edges = [
        f'<edge id="{number}" source="{u}" target="{v}"><attvalues><attvalue for="length" value="{far:.9g}"/>'
        "</attvalues></edge>"
        for number, (u, v, far) in enumerate(
            zip(*pairs.tolist(), pair_distances(run.positions, pairs), strict=True)
        )
    ]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<gexf xmlns="http://gexf.net/1.3" xmlns:viz="http://gexf.net/1.3/viz" version="1.3">\n'
        f'<graph defaultedgetype="undirected"><attributes class="node">{names}</attributes>'
        '<attributes class="edge">'
        '<attribute id="length" title="distance in the embedding" type="double"/></attributes>\n'
        f"<nodes>{''.join(nodes)}</nodes>\n<edges>{''.join(edges)}</edges></graph>\n</gexf>\n"
    )


def _quoted(text: str) -> str:
    """Return text as an attribute with its quotes; characters that XML cannot hold are replaced."""
    return quoteattr(text.translate(_FORBIDDEN), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


# ---- the Embedding Projector


def _projector(run: RunRecord, columns: Sequence[Column], target: Path) -> dict[Path, bytes]:
    """Return the vectors, without a heading, and the columns, with one, as the Embedding Projector reads them."""
    stem = target.with_suffix("") if target.suffix == ".tsv" else target
    vectors = run.embedding.reshape(len(run.ids), -1).tolist()
    plain = [["id", *(column.name for column in columns)]]
    plain += [[name, *(_cell(column, node) for column in columns)] for node, name in enumerate(run.ids)]
    return {
        stem.with_name(f"{stem.name}.vectors.tsv"): _tsv(
            [[f"{value:.9g}" for value in row] for row in vectors]
        ),
        stem.with_name(f"{stem.name}.metadata.tsv"): _tsv(plain),
    }


def _tsv(rows: list[list[str]]) -> bytes:
    # the projector knows no quotes: what would end a cell or a line becomes a blank
    lines = [
        "\t".join(" ".join(cell.split()) if set(cell) & set("\t\r\n") else cell for cell in row)
        for row in rows
    ]
    return ("\n".join(lines) + "\n").encode(errors="backslashreplace")
