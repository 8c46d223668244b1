"""The paper's figures from runs and graphs: the numbers behind each as a small file, and the picture as SVG.

``training``: curvature and mAP during training with one head; ``widths``: mAP by width; ``hierarchies``: MAP over
ancestors by width, from rows of ``reproduce hierarchies``; ``sectional``: how curved the
twelve networks are; ``pca``: embeddings, flat beside curved.
"""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from gyroformer.durable import write_durably
from gyroformer.errors import CorruptFileError, MissingPartError
from gyroformer.jobs.flatten import principal
from gyroformer.jobs.pool import run_folder
from gyroformer.paper.summary import values_of
from gyroformer.paper.table import TWINS, Cell
from gyroformer.paper.tables import DOT, NETWORKS, TABLES, WIDTHS
from gyroformer.report.projection import centred_tangents
from gyroformer.runs.rows import Number, Rows, checked_rows, write_table
from gyroformer.untrusted import read_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: networks whose sectional curvature is shown: those of both tables
GRAPHS = (*NETWORKS, "texas", "cornell", "wisconsin", "actor", "airport", "citeseer", "pubmed", "cora")
FLAT, CURVED = "#d9822b", "#2b6cb0"
TITLES = {"fpst": "FPS-T", "tokengt": "TokenGT", DOT: "inner product, no network"}
#: models of the study of widths
LINES = {"fpst": CURVED, "tokengt": FLAT, DOT: "#6b7280"}
#: what is drawn, if its runs are there
FIGURES = ("training", "widths", "hierarchies", "sectional", "pca")


def needed_cells() -> list[Cell]:
    """Return the cells whose runs the figures are drawn from."""
    twins = TABLES["table1"].cells(models=TWINS, seeds=1)
    return [*TABLES["one-head"].cells(), *TABLES["widths"].cells(), *twins]


def draw_figures(
    rows: Rows, runs: Path, results: Path, pictures: Path, tell: Callable[[str], None] = lambda line: None
) -> list[Path]:
    """Draw every figure whose runs are there; return the pictures.

    Args:
        rows: rows of the runs.
        runs: folder of the runs.
        results: folder for the numbers.
        pictures: folder for the pictures.
        tell: takes lines of progress.
    """
    drawn = []
    draw: dict[str, Callable[[], Figure | None]] = {
        "training": lambda: _training(runs, results),
        "widths": lambda: _widths(rows, results),
        "hierarchies": lambda: _hierarchies(rows),
        "sectional": lambda: _sectional(results, tell),
        "pca": lambda: _pca(runs),
    }
    for name in FIGURES:
        figure = draw[name]()
        if figure is None:
            tell(f"{name}: its runs are not done")
            continue
        drawn.append(_save(figure, pictures / f"{name}.svg"))
        tell(f"{name}: {drawn[-1]}")
    return drawn


def _training(runs: Path, results: Path) -> "Figure | None":
    """Draw curvature and mAP of one head during training, a column for each network.

    The numbers of a network whose run is not here are those of its last drawing.
    """
    file = results / "figure_training.csv"
    table: list[dict[str, Any]] = []
    for cell in TABLES["one-head"].cells():
        table += _course(runs, cell) or _drawn_before(file, cell.column.dataset)
    if not table:
        return None
    write_table(file, list(table[0]), table)
    names = list(dict.fromkeys(row["dataset"] for row in table))
    figure, axes = _axes(2, len(names), height=3.6, width=2.25 * len(names))
    for column, name in enumerate(names):
        mine = [row for row in table if row["dataset"] == name]
        epochs = [row["epoch"] for row in mine]
        axes[0][column].plot(epochs, [row["curvature"] for row in mine], color=CURVED)
        axes[1][column].plot(epochs, [row["map"] for row in mine], color=CURVED)
        axes[0][column].set_title(name)
        axes[1][column].set_xlabel("epoch")
    axes[0][0].set_ylabel("curvature")
    axes[1][0].set_ylabel("mAP, %")
    return figure


def _course(runs: Path, cell: Cell) -> list[dict[str, Any]]:
    """Return curvature and mAP during the run of a cell; empty if it is not here."""
    from gyroformer.runs.read import open_run

    folder = run_folder(runs, cell.job())
    if not (folder / "results.json").exists():
        return []
    return [
        {
            "dataset": cell.column.dataset,
            "epoch": row["epoch"],
            "map": row["metrics"]["map"],
            "curvature": row["curvatures"][0],
        }
        for row in open_run(folder).history
        if "metrics" in row
    ]


def _drawn_before(file: Path, dataset: str) -> list[dict[str, Any]]:
    """Return the rows of a data set in the file of the numbers behind a picture; empty if there are none."""
    if not file.exists():
        return []
    numbers = {"epoch": Number(int, low=0), "map": Number(low=0, high=100), "curvature": Number()}
    return [
        {"dataset": dataset, **{name: of.read(row[name]) for name, of in numbers.items()}}
        for row in checked_rows(file, ("dataset", *numbers), numbers)
        if row["dataset"] == dataset
    ]


def _widths(rows: Rows, results: Path) -> "Figure | None":
    """Draw mAP against width, a line for each model with the range of its seeds."""
    table: list[dict[str, Any]] = []
    for cell in TABLES["widths"].cells():
        model, width = cell.variant.name.split(" width ")
        found = values_of(cell, rows)
        table += [{"model": model, "width": width, "seed": seed, "map": v} for seed, v in found.items()]
    if len({(row["model"], row["width"]) for row in table}) < len(LINES) * len(WIDTHS):
        return None
    write_table(results / "figure_widths.csv", list(table[0]), table)
    figure, axes = _axes(1, 1, height=2.8, width=4.2)
    for model, colour in LINES.items():
        values = [
            [float(row["map"]) for row in table if row["model"] == model and row["width"] == str(width)]
            for width in WIDTHS
        ]
        means = [float(np.mean(some)) for some in values]
        axes[0][0].plot(list(WIDTHS), means, "o-", color=colour, label=TITLES[model])
        axes[0][0].fill_between(
            list(WIDTHS), [min(v) for v in values], [max(v) for v in values], color=colour, alpha=0.2
        )
    _width_axis(axes[0][0], list(WIDTHS), "mAP on Web-Edu, %")
    axes[0][0].legend(frameon=False)
    return figure


def _hierarchies(rows: Rows) -> "Figure | None":
    """Draw MAP over ancestors against width, a panel for each hierarchy, a line for each row that has every width."""
    columns = TABLES["hierarchies"].columns
    lines = {name: _lines(name, rows) for name in dict.fromkeys(column.dataset for column in columns)}
    lines = {name: found for name, found in lines.items() if found}
    if not lines:
        return None
    figure, axes = _axes(1, len(lines), height=3.0, width=3.6 * len(lines) + 1.8)
    for axis, (name, found) in zip(axes[0], lines.items(), strict=True):
        for row, means in found.items():
            flat = "flat" in row or "tokengt" in row
            style = "o--" if "distance" in row else "o:" if "product" in row else "o-"
            label = row.replace("fpst", "FPS-T").replace("tokengt", "TokenGT")
            faint = 0.5 if "points" in row else 1.0
            axis.plot(
                *zip(*means, strict=True), style, color=FLAT if flat else CURVED, label=label, alpha=faint
            )
        axis.set_title(name)
        axis.set_ylim(0, 103)
        _width_axis(axis, [column.width or 0 for column in columns if column.dataset == name], "")
    axes[0][0].set_ylabel("MAP over ancestors, %")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, fontsize=7, loc="outside right center")
    return figure


def _lines(dataset: str, rows: Rows) -> dict[str, list[tuple[int, float]]]:
    """Return width and mean MAP of every row of a hierarchy that has been run at all of its widths."""
    found: dict[str, list[tuple[int, float]]] = {}
    cells = [cell for cell in TABLES["hierarchies"].cells() if cell.column.dataset == dataset]
    for cell in cells:
        values = list(values_of(cell, rows).values())
        if values:
            found.setdefault(cell.variant.name, []).append((cell.column.width or 0, float(np.mean(values))))
    widths = len({cell.column.width for cell in cells})
    return {name: means for name, means in found.items() if len(means) == widths}


def _width_axis(axes: "Axes", widths: list[int], what: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(widths, [str(width) for width in widths])
    axes.set_xlabel("width")
    axes.set_ylabel(what)


def _sectional(results: Path, tell: Callable[[str], None]) -> "Figure":
    """Draw the histograms of the networks' sectional curvature with their means."""
    from gyroformer.data.load import load
    from gyroformer.graphs.analysis.curvature import graph_curvature

    file = results / "figure_sectional.json"
    known = _histograms(file)
    for name in GRAPHS:
        if name not in known:
            tell(f"sectional curvature of {name}")
            data = load(name)
            found = graph_curvature(data.edge_index, int(data.num_nodes or 0))
            known[name] = {
                "mean": found.mean,
                "standard_error": found.standard_error,
                "triples": found.triples,
                "exact": found.exact,
                "edges": [round(edge, 6) for edge in found.edges],
                "counts": list(found.counts),
            }
            write_durably(file, (json.dumps(known, indent=1) + "\n").encode())
    figure, axes = _axes(3, 4, height=5.4)
    ends = [edge for name in GRAPHS for edge in (known[name]["edges"][0], known[name]["edges"][-1])]
    for place, name in enumerate(GRAPHS):
        axis, one = axes[place // 4][place % 4], known[name]
        axis.stairs(one["counts"], one["edges"], fill=True, color=CURVED)  # one shape: a small file
        axis.axvline(one["mean"], color=FLAT, linewidth=1)
        axis.set_title(f"{name}: {one['mean']:+.3f}")
        axis.set_xlim(min(ends), max(ends))
        axis.set_yticks([])
    figure.supxlabel("sectional curvature of a triple; the line and the number are the mean", fontsize=8)
    return figure


def _histograms(file: Path) -> dict[str, Any]:
    """Return the histograms of a file by network, none if there is no file; CorruptFileError for what none can be."""
    known = read_json(file) if file.exists() else {}
    for name, one in known.items():
        try:
            numbers = np.array([one["mean"], *one["edges"], *one["counts"]], dtype=float)
            whole = len(one["edges"]) == len(one["counts"]) + 1 > 1 and bool(np.isfinite(numbers).all())
        except (KeyError, TypeError, ValueError):
            whole = False
        if not whole:
            raise CorruptFileError(
                f"{file}: the histogram of {name} is damaged: restore the file, or remove it to compute all anew"
            )
    return known


def _pca(runs: Path) -> "Figure | None":
    """Draw the embeddings' two main directions, the flat twin beside the curved model, a row for each network."""
    from gyroformer.runs.read import open_run

    pictures: dict[tuple[str, str], np.ndarray] = {}
    for cell in TABLES["table1"].cells(models=TWINS, seeds=1):
        folder = run_folder(runs, cell.job())
        if (folder / "results.json").exists():
            arrays = open_run(folder).embeddings
            found = _seen_from_the_middle(arrays["embedding"], arrays.get("curvature"))
            pictures[cell.column.dataset, cell.variant.model] = _main_directions(found)
    names = [name for name in NETWORKS if all((name, model) in pictures for model in TWINS)]
    if not names:
        return None
    figure, axes = _axes(len(names), 2, height=3.0 * len(names), width=6.0)
    for row, name in enumerate(names):
        for axis, model, colour in zip(axes[row], reversed(TWINS), (FLAT, CURVED), strict=True):
            points = pictures[name, model]
            axis.scatter(points[:, 0], points[:, 1], s=1, color=colour, linewidths=0, rasterized=True)
            axis.set(xticks=[], yticks=[], title=f"{TITLES[model]}, {name}")
            axis.spines[:].set_visible(False)
            axis.set_aspect("equal", adjustable="datalim")
    return figure


def _seen_from_the_middle(embedding: np.ndarray, curvature: np.ndarray | None) -> torch.Tensor:
    """Return the tangent vectors of all heads at the midpoint of each, as the paper draws them, ``(N, heads · d)``."""
    tangent = torch.from_numpy(embedding).double()
    k = torch.zeros(tangent.size(1)) if curvature is None else torch.from_numpy(curvature)
    return torch.cat([centred_tangents(tangent[:, head], k[head].double()) for head in range(len(k))], 1)


def _main_directions(x: torch.Tensor) -> np.ndarray:
    """Return the rows of a table by their two main directions, signs fixed so that equal tables give equal pictures."""
    found = principal(x, 2).numpy()
    return found * np.sign(found[np.abs(found).argmax(0), [0, 1]])


def _axes(rows: int, columns: int, *, height: float, width: float = 9.0) -> "tuple[Figure, list[list[Axes]]]":
    try:
        import matplotlib as mpl

        mpl.use("Agg")
        from matplotlib import pyplot as plt
    except ImportError:
        raise MissingPartError("matplotlib", "figures", "drawing") from None
    plt.rcParams |= {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": ""}
    figure, axes = plt.subplots(
        rows, columns, figsize=(width, height), squeeze=False, layout="constrained", dpi=200
    )
    return figure, axes.tolist()


def _save(figure: "Figure", path: Path) -> Path:
    from matplotlib import pyplot as plt

    text = io.BytesIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    plt.close(figure)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_durably(path, text.getvalue())
    return path
