"""The page: headline, curves, embeddings and settings of one run or of several.

It holds everything it shows, plotly.js once; its content security policy forbids every request, so that it can be
opened from a disk, sent and kept.
"""

from collections.abc import Sequence
from pathlib import Path

import gyroformer
from gyroformer.durable import check_target, make_folder, write_output
from gyroformer.errors import UsageError
from gyroformer.report.colours import Spec, run_colour
from gyroformer.report.curves import (
    CURVE_ROWS,
    curvature_chart,
    is_thinned,
    loss_chart,
    main_metric,
    metric_chart,
)
from gyroformer.report.embedding_chart import caption, colour_line, head_chart, select
from gyroformer.report.markup import comparison, data_script, nested_table, text
from gyroformer.report.names import model_name, signed, task_title
from gyroformer.report.record import RunRecord, read_run, run_folders, run_names
from gyroformer.report.tables import comparison_rows, differing_settings, environment, headline
from gyroformer.tasks.task import metric_title

REPORT = "report.html"
#: heads of a run, and runs of a page, whose points are drawn
MOST_HEADS, MOST_PICTURES = 8, 6
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"


def write_report(runs: Sequence[Path], target: Path) -> Path:
    """Write the page of one run, or the comparison of several, and return its path.

    Args:
        runs: run folders; a folder that is no run stands for the runs right in it (``--seeds``).
        target: the file to write.
    """
    folders = run_folders(runs)
    _check_target(target, folders)
    names = run_names(folders)
    return _write([read_run(folder, name) for folder, name in zip(folders, names, strict=True)], target)


def write_run_report(folder: Path) -> Path:
    """Write ``report.html`` into the folder of a finished run.

    It is made from the other files, so the manifest has no checksum of it.
    """
    return _write([read_run(folder, folder.resolve().name)], folder / REPORT)


def _check_target(target: Path, folders: Sequence[Path]) -> None:
    """Raise unless the page can be written to ``target``, and is no file of a run."""
    make_folder(target.parent)
    check_target(target, "--out")
    inside = any(target.resolve().is_relative_to(folder) for folder in folders)
    if inside and target.suffix != ".html":
        raise UsageError(
            f"--out {target}: is in the folder of a run, whose files it could replace; name an .html file"
        )


def _write(runs: list[RunRecord], target: Path) -> Path:
    write_output(target, page(runs).encode(errors="backslashreplace"))
    return target


def page(runs: Sequence[RunRecord]) -> str:
    """Return the whole page."""
    from plotly.offline import get_plotlyjs

    plots: dict[str, Spec] = {}
    sections = [_comparison(runs)] if len(runs) > 1 else []
    if len(runs) == 1:
        sections += [_run_head(runs[0], 0), _curves(runs, plots)]
    else:
        sections += [_curves(runs, plots)]
    sections += [_run(run, index, plots, alone=len(runs) == 1) for index, run in enumerate(runs)]
    here = Path(__file__).parent
    style, script = ((here / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    title = _title(runs)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{text(title)}</title>
<style>{style}</style>
</head>
<body>
<main>
<header><h1>{text(title)}</h1>{_lead(runs)}</header>
{"".join(sections)}
<footer>Made by gyroformer {text(gyroformer.__version__)}. This page holds all it shows: nothing is loaded.</footer>
</main>
{data_script("plots", plots)}
<script>{get_plotlyjs()}</script>
<script>{script}</script>
</body>
</html>
"""


def _title(runs: Sequence[RunRecord]) -> str:
    graphs = list(dict.fromkeys(str(run.results.get("graph")) for run in runs))
    tasks = list(dict.fromkeys(str(run.results.get("task")) for run in runs))
    of = Path(graphs[0]).name if len(graphs) == 1 else f"{len(graphs)} graphs"
    what = task_title(tasks[0]) if len(tasks) == 1 else "several tasks"
    who = model_name(runs[0].results.get("model")) if len(runs) == 1 else f"{len(runs)} runs"
    return f"{of}: {what}, {who}"


def _lead(runs: Sequence[RunRecord]) -> str:
    if len(runs) > 1:
        return ""
    finished = str(runs[0].manifest.get("finished", "")).replace("T", " ").replace("+00:00", " UTC")
    seed = runs[0].results.get("seed")
    return f'<p class="lead">Run {text(runs[0].path.name)}, seed {text(seed)}, finished {text(finished)}</p>'


def _comparison(runs: Sequence[RunRecord]) -> str:
    columns = [(run.name, run_colour(index)) for index, run in enumerate(runs)]
    table = comparison(columns, comparison_rows(runs))
    different = differing_settings(runs)
    if different:
        table += f"<h3>Settings that differ</h3>{comparison(columns, different)}"
    else:
        table += '<p class="note">All settings are the same.</p>'
    return f"<section><h2>Side by side</h2>{table}</section>"


def _run_head(run: RunRecord, index: int) -> str:
    return f'<section class="run" style="--run:{run_colour(index)}"><h2>Result</h2>{headline(run)}</section>'


def _curves(runs: Sequence[RunRecord], plots: dict[str, Spec]) -> str:
    plots["loss"] = loss_chart(runs)
    parts = [_figure("loss", "Loss")]
    metric = main_metric(runs)
    if metric is not None:
        plots["metric"] = metric_chart(runs, metric)
        parts.append(_figure("metric", metric_title(metric)))
    curvature = curvature_chart(runs)
    shown = f'<div class="grid">{"".join(parts)}</div>'
    if curvature is None:
        shown += '<p class="note">The models have no curvatures: their spaces are flat.</p>'
    else:
        plots["curvature"] = curvature
        shown += f'<div class="below">{_figure("curvature", "Curvature of each head")}</div>'
    if is_thinned(runs):
        shown += f'<p class="note">Curves show {CURVE_ROWS:,} evenly spaced epochs.</p>'
    return f"<section><h2>Training</h2>{shown}</section>"


def _figure(name: str, title: str, below: str = "") -> str:
    below = f"<figcaption>{text(below)}</figcaption>" if below else ""
    return f'<figure><h4>{text(title)}</h4><div class="plot" data-plot="{text(name)}"></div>{below}</figure>'


def _run(run: RunRecord, index: int, plots: dict[str, Spec], *, alone: bool) -> str:
    head = "" if alone else f"<h2>{text(run.name)}</h2>{headline(run)}"
    if index < MOST_PICTURES:
        head += _embedding(run, index, plots, heading="h2" if alone else "h3")
    else:
        head += f'<p class="note">Points are drawn for the first {MOST_PICTURES} runs; see this run\'s own page.</p>'
    settings = nested_table(run.job) + nested_table({f"arguments of {run.results.get('model')}": run.model})
    made = nested_table(environment(run))
    return (
        f'<section class="run" style="--run:{run_colour(index)}">{head}'
        f"<details{' open' if alone else ''}><summary>Settings</summary>"
        f'<div class="columns">{settings}</div></details>'
        f"<details><summary>Environment and checksums</summary>{made}</details></section>"
    )


def _embedding(run: RunRecord, index: int, plots: dict[str, Spec], *, heading: str) -> str:
    chosen = select(run)
    heads, width = run.embedding.shape[1:]
    figures = []
    for head in range(min(heads, MOST_HEADS)):
        name = f"run{index}-head{head}"
        chart, drawing = head_chart(run, head, chosen)
        plots[name] = chart
        title = f"Head {head + 1}: k = {signed(drawing.k)}, {drawing.kind}"
        figures.append(_figure(name, title, caption(drawing, width)))
    notes = [
        "Each head's points, moved by an isometry so that their midpoint is in the middle, in the two principal "
        "directions of their tangent vectors there. The distance of a node from the middle is the true one; other "
        "distances are only as good as the fraction shown says.",
        "Lines are edges, drawn as shortest paths." if chosen.edges is not None else "",
        colour_line(run),
        chosen.note,
        f"{MOST_HEADS} of {heads} heads are drawn." if heads > MOST_HEADS else "",
        run.graph.missing,
        "Drag over a part to enlarge it, click twice to go back.",
    ]
    said = " ".join(note for note in notes if note)
    return f'<{heading}>Embedding</{heading}><p class="note">{text(said)}</p><div class="grid">{"".join(figures)}</div>'
