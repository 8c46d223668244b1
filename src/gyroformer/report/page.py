"""The page: a run in words, its explorer, its curves, its graph and its settings; or several runs side by side.

It holds everything it shows. Its content security policy forbids every request and every script but its own, so that
it can be opened from a disk, sent and kept.
"""

from collections.abc import Sequence
from pathlib import Path

import gyroformer
from gyroformer.durable import check_target, make_folder, write_output
from gyroformer.errors import UsageError
from gyroformer.report.bundle import policy, script, style
from gyroformer.report.classes import (
    Array,
    calibration,
    calibration_chart,
    confusion,
    confusion_table,
    judged,
    tested_matrix,
)
from gyroformer.report.closeness import Progress
from gyroformer.report.curves import CURVE_ROWS, is_thinned, run_colour, training_chart
from gyroformer.report.explorer import MOST_HEADS, MOST_PICTURES, NodeData, explorer_data
from gyroformer.report.links import missing_edges, missing_table, roc_chart
from gyroformer.report.markup import comparison, figure, nested_table, text
from gyroformer.report.models import model_tables
from gyroformer.report.names import model_name, number, task_title
from gyroformer.report.node_data import read_node_data
from gyroformer.report.record import RunRecord, read_run, run_folders, run_names
from gyroformer.report.story import graph_name, story
from gyroformer.report.structure import curvature_chart, distance_chart, fitted_space, own_curvature
from gyroformer.report.tables import comparison_rows, differing_settings, environment, headline, spread_line

REPORT = "report.html"


def write_report(
    runs: Sequence[Path],
    target: Path,
    *,
    node_data: Path | None = None,
    names: Sequence[str] | None = None,
    fit: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write the page of one run, or of several side by side, and return its path.

    Args:
        runs: run folders; a folder that is no run stands for the runs right in it (``--seeds``).
        target: the file to write.
        node_data: a table of more columns for the nodes: ids first, CSV, TSV, text or parquet.
        names: what the runs are called, one for each; by default their folders.
        fit: whether to fit spaces of constant curvature to the graphs: curved or flat, some ten seconds for each run.
        progress: called with (nodes done, nodes in all) while distances are computed.
    """
    check_report_target(target, run_folders(runs))
    return _write(page(read_runs(runs, names), node_data=node_data, fit=fit, progress=progress), target)


def read_runs(paths: Sequence[Path], names: Sequence[str] | None = None) -> list[RunRecord]:
    """Return the runs that folders stand for, each with a name of its own."""
    folders = run_folders(paths)
    return [read_run(folder, name) for folder, name in zip(folders, names or run_names(folders), strict=True)]


def write_run_report(folder: Path) -> Path:
    """Write ``report.html`` into the folder of a finished run.

    It is made from the other files, so the manifest has no checksum of it.
    """
    return _write(page([read_run(folder, folder.resolve().name)]), folder / REPORT)


def check_report_target(target: Path, folders: Sequence[Path]) -> None:
    """Raise unless something can be written to ``target``, and is no file of a run."""
    make_folder(target.parent)
    check_target(target, "--out")
    inside = any(target.resolve().is_relative_to(folder) for folder in folders)
    if inside and target.suffix != ".html":
        raise UsageError(
            f"--out {target}: is in the folder of a run, whose files it could replace; name an .html file"
        )


def _write(content: str, target: Path) -> Path:
    write_output(target, content.encode(errors="backslashreplace"))
    return target


def page(
    runs: Sequence[RunRecord],
    *,
    node_data: Path | None = None,
    fit: bool = False,
    progress: Progress | None = None,
) -> str:
    """Return the whole page."""
    more: NodeData = () if node_data is None else read_node_data(node_data)
    data = explorer_data(runs, node_data=more, source=str(node_data), progress=progress)
    alone = len(runs) == 1
    sections = [_summary(runs[0]) if alone else _comparison(runs), _explorer(runs), _training(runs)]
    sections += [_details(run, index, runs, fit) for index, run in enumerate(runs)]
    return shell(_title(runs), _header(runs), "".join(sections), data)


def shell(title: str, header: str, body: str, data: str | None = None) -> str:
    """Return a page around a body: policy, style, script, and the explorer's block if there is one."""
    block = "" if data is None else f'<script type="text/plain" id="data">{data}</script>\n'
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy()}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{text(title)}</title>
<style>{style()}</style>
</head>
<body>
<main>
{header}
{body}
<footer>Made by gyroformer {text(gyroformer.__version__)}. This page holds all it shows: nothing is loaded.</footer>
</main>
{block}<script type="module">{script()}</script>
</body>
</html>
"""


def header_markup(above: str, title: str, below: str) -> str:
    """Return the top of a page."""
    return (
        f'<header class="top"><div><p class="eyebrow">{text(above)}</p><h1>{text(title)}</h1>'
        f'<p class="lead">{text(below)}</p></div><button type="button" id="theme" hidden></button></header>'
    )


def _title(runs: Sequence[RunRecord]) -> str:
    who = model_name(runs[0].results.get("model")) if len(runs) == 1 else f"{len(runs)} runs"
    return f"{_graphs(runs)}: {_tasks(runs)}, {who}"


def _graphs(runs: Sequence[RunRecord]) -> str:
    names = list(dict.fromkeys(graph_name(run) for run in runs))
    return names[0] if len(names) == 1 else f"{len(names)} graphs"


def _tasks(runs: Sequence[RunRecord]) -> str:
    names = list(dict.fromkeys(run.task for run in runs))
    return task_title(names[0]) if len(names) == 1 else "several tasks"


def _header(runs: Sequence[RunRecord]) -> str:
    who = model_name(runs[0].results.get("model")) if len(runs) == 1 else f"{len(runs)} runs side by side"
    below = ", ".join(run.name for run in runs[:6]) + (" …" if len(runs) > 6 else "")
    if len(runs) == 1:
        finished = str(runs[0].manifest.get("finished", "")).replace("T", " ").replace("+00:00", " UTC")
        below = f"Run {runs[0].path.name}, seed {runs[0].results.get('seed')}, finished {finished}"
    return header_markup(f"{_tasks(runs)} · {who}", _graphs(runs), below)


def _summary(run: RunRecord) -> str:
    return f'<section class="summary"><div class="story">{story(run)}</div>{headline(run)}</section>'


def _comparison(runs: Sequence[RunRecord]) -> str:
    columns = [(run.name, run_colour(index)) for index, run in enumerate(runs)]
    table = spread_line(runs) + model_tables(runs) + comparison(columns, comparison_rows(runs))
    different = differing_settings(runs)
    if different:
        shown = f"<summary>Settings that differ ({len(different)})</summary>{comparison(columns, different)}"
        table += f"<details>{shown}</details>"
    else:
        table += '<p class="note">All settings are the same.</p>'
    return f"<section><h2>Side by side</h2>{table}</section>"


def _explorer(runs: Sequence[RunRecord]) -> str:
    heads = max(run.embedding.shape[1] for run in runs)
    notes = [
        "Each head in its own space, moved by an isometry so that the midpoint of all nodes is in the middle, in the "
        "two principal directions of the tangent vectors there. A node's distance from the middle is true; other "
        "distances in the picture are as good as the fraction below it says. The distances in the lists are exact, in "
        "the product of all heads.",
        f"The first {MOST_HEADS} of {heads} heads are drawn." if heads > MOST_HEADS else "",
        f"The first {MOST_PICTURES} runs are here; the others have pages of their own."
        if len(runs) > MOST_PICTURES
        else "",
    ]
    said = " ".join(note for note in notes if note)
    return (
        '<section class="explore"><h2>Explore</h2><div id="explorer"><p class="note">Unpacking the points …</p>'
        "<noscript><p>The explorer needs JavaScript; the figures and tables of the run do not.</p></noscript></div>"
        f'<p class="note">{text(said)}</p></section>'
    )


def _training(runs: Sequence[RunRecord]) -> str:
    chart = training_chart(runs)
    said = (
        "A ring marks the epoch whose state was kept."
        if any("ring" in one for panel in chart["panels"] for one in panel["series"])
        else ""
    )
    if not chart["labels"]:
        said = f"The models have no curvatures: their spaces are flat. {said}"
    if is_thinned(runs):
        said = f"{said} Curves show {CURVE_ROWS:,} evenly spaced epochs.".strip()
    return f"<section><h2>Training</h2>{figure(chart, 'Over the epochs', said)}</section>"


def _details(run: RunRecord, index: int, runs: Sequence[RunRecord], fit: bool) -> str:
    alone = len(runs) == 1
    parts = []
    if not alone:
        words = f'<div class="story">{story(run, runs)}</div>'
        parts.append(
            f'<h2><i class="dot {run_colour(index)}"></i>{text(run.name)}</h2>{words}{headline(run)}'
        )
    if index < MOST_PICTURES:
        parts += [_structure(run, fit), _classes(run), _links(run)]
    settings = nested_table(run.job) + nested_table({f"arguments of {run.results.get('model')}": run.model})
    parts.append(
        f'<details><summary>Settings</summary><div class="columns">{settings}</div></details>'
        f"<details><summary>Environment and checksums</summary>{nested_table(environment(run))}</details>"
    )
    if alone:
        wrapped = [f"<section>{part}</section>" for part in parts if part]
        return "".join(wrapped)
    return f"<section>{''.join(parts)}</section>"


def _structure(run: RunRecord, fit: bool) -> str:
    charts = []
    steps = distance_chart(run)
    if steps is not None:
        said = (
            "Nodes that are few steps apart in the graph should be near. Where bands of different steps overlap, "
            "distances alone do not tell them apart."
        )
        charts.append(figure(steps, "Distance against steps in the graph", said))
    own = own_curvature(run)
    if own is not None:
        learned = run.curvature.tolist() if any(run.curvature) else []
        told = "Whether it is better embedded curved or flat, with an interval: gyroformer report RUN --fit."
        if fit:
            told = fitted_space(run)
        said = f"The graph is {own.reading}. Lines mark the curvatures that the heads learned. {told}"
        charts.append(figure(curvature_chart(own, learned), "Curvature of the graph itself", said))
    return f'<h2>The graph and its embedding</h2><div class="grid">{"".join(charts)}</div>' if charts else ""


def _classes(run: RunRecord) -> str:
    found, tested = judged(run), tested_matrix(run)
    names = [run.class_name(label) for label in range(0 if tested is None else len(tested))]
    if tested is not None:
        said = "the test nodes, by the model that was tested, which is not the final one of this page"
        return f'<h2>Classes</h2><div class="grid">{_matrix(tested, names, said)}</div>'
    if found is None:
        return ""
    error = calibration(found)[2]
    said = (
        f"Points on the diagonal: nodes of which 80 % is said are right in 80 % of cases. Expected calibration error "
        f"{number(100 * error)} %."
    )
    chart = figure(calibration_chart(found), "Can the probabilities be trusted?", said)
    return (
        f'<h2>Classes</h2><div class="grid">{_matrix(confusion(found), found.names, found.what)}{chart}</div>'
    )


def _matrix(matrix: Array, names: Sequence[str], what: str) -> str:
    return (
        f"<figure><h3>True classes (rows) against predicted ones</h3>{confusion_table(matrix, names)}"
        f"<figcaption>On {text(what)}: {number(int(matrix.sum()))}. Scores in percent: precision is how many of the "
        "nodes given to a class are of it, recall how many of its nodes are found, F1 their harmonic mean."
        "</figcaption></figure>"
    )


def _links(run: RunRecord) -> str:
    parts = []
    chart = roc_chart(run)
    if chart is not None:
        part, what = run.unseen
        area = run.results.get(f"{part}_auc")
        said = (
            f"{what.capitalize()} edges against as many pairs that are none; the area below is the AUC, "
            f"{number(area)} %."
        )
        parts.append(figure(chart, "ROC curve", said))
    missing = missing_edges(run)
    if missing:
        parts.append(
            f"<figure><h3>Likeliest missing edges</h3>{missing_table(missing)}"
            "<figcaption>Pairs without an edge in the whole graph, the nearest first.</figcaption></figure>"
        )
    return f'<h2>Links</h2><div class="grid">{"".join(parts)}</div>' if parts else ""
