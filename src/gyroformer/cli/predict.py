"""``gyroformer predict``: ask a finished run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gyroformer.cli.options import Json, Threads, set_threads
from gyroformer.cli.pair_option import as_pairs
from gyroformer.cli.terminal import print_json, say, terminal
from gyroformer.durable import check_target
from gyroformer.errors import UsageError
from gyroformer.tasks import TASKS
from gyroformer.tasks.task import metric_title

if TYPE_CHECKING:
    from torch import Tensor

    from gyroformer.jobs.predict import Answer
    from gyroformer.jobs.restore import Restored

#: rows of a table on the screen; files and JSON have all
SHOWN_ROWS = 20
#: columns likewise: a run with many classes shows the first
SHOWN_COLUMNS = 8
#: metrics of the overview
SHOWN_METRICS = 2
#: rows that can be asked for: more than any machine could hold
MOST = 10**9


def predict(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.", show_default=False)],
    graph: Annotated[
        str | None,
        typer.Argument(help="Another graph: a data set's name, or a file.", show_default=False),
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="A file of features of the other graph.", show_default=False)
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option(help="Only this node, by its id; may be repeated.", show_default=False),
    ] = None,
    labels: Annotated[bool, typer.Option("--labels", help="The labels, with probabilities.")] = False,
    nearest: Annotated[
        int | None,
        typer.Option(min=1, max=MOST, help="So many nearest nodes of each node.", show_default=False),
    ] = None,
    distance: Annotated[
        list[str] | None,
        typer.Option(metavar="A B", help="The distance of two nodes; may be repeated.", show_default=False),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(help="The distances of the pairs in a file, two ids a line.", show_default=False),
    ] = None,
    new_edges: Annotated[
        int | None,
        typer.Option(
            min=1, max=MOST, help="So many pairs that are likeliest to be joined.", show_default=False
        ),
    ] = None,
    embeddings: Annotated[
        Path | None,
        typer.Option(help="Write ids and coordinates: .npz, .csv, .tsv or .parquet.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the answer: .csv, .tsv or .json.", show_default=False)
    ] = None,
    threads: Threads = None,
    as_json: Json = False,
) -> None:
    """Use a finished run: labels, nearest nodes, distances, new edges, embeddings.

    Example: gyroformer predict runs/cora-link-fpst --new-edges 20
    """
    from gyroformer.jobs.restore import restore

    for flag, file in (("--embeddings", embeddings), ("--out", out)):
        if file is not None:
            check_target(file, flag)
    set_threads(threads)
    restored = restore(run, graph, features=features)
    asked = _answers(
        restored, node, labels=labels, nearest=nearest, distance=distance, pairs=pairs, new_edges=new_edges
    )
    usual = not asked and embeddings is None
    if usual:
        asked = [_usual(restored, node)]
    elif node and not (labels or nearest):
        raise UsageError(
            "--node chooses the nodes of --labels and --nearest; --distance takes two ids itself"
        )
    _deliver(restored, run, asked, usual=usual, embeddings=embeddings, out=out, as_json=as_json)


def _deliver(
    restored: "Restored",
    run: Path,
    asked: "list[Answer]",
    *,
    usual: bool,
    embeddings: Path | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Write and print what was asked."""
    from gyroformer.jobs.answer_files import write_answers, write_embeddings
    from gyroformer.jobs.run import embedding_arrays

    whole = _whole(restored, run, asked, embeddings)
    if embeddings is not None:
        write_embeddings(embeddings, restored.ids, embedding_arrays(restored.model, restored.data))
    if out is not None:
        write_answers(out, asked, whole)
    if as_json:
        print_json(whole)
        return
    if usual:
        _print_overview(restored, run)
    for answer in asked:
        _print_answer(answer)
    for file in (embeddings, out):
        if file is not None:
            say(f"written: {file}")


def _answers(restored: "Restored", node: list[str] | None, **asked: Any) -> "list[Answer]":
    """Return the answers to what was asked, in one order."""
    from gyroformer.jobs import predict as answer

    found: list[Answer] = []
    if asked["labels"]:
        found.append(answer.labels(restored, _nodes(restored, node)))
    if asked["nearest"]:
        found.append(answer.nearest(restored, _nodes(restored, node), asked["nearest"]))
    pairs = as_pairs(asked["distance"])
    if asked["pairs"] is not None:
        pairs += answer.read_pairs(asked["pairs"])
    if pairs:
        found.append(answer.distances(restored, pairs))
    if asked["new_edges"]:
        found.append(answer.new_edges(restored, asked["new_edges"]))
    return found


def _usual(restored: "Restored", node: list[str] | None) -> "Answer":
    from gyroformer.jobs.predict import usual_answer

    if node and restored.job.task == "link":
        raise UsageError("--node chooses the nodes of --labels and --nearest: add --nearest 10")
    return usual_answer(restored, _nodes(restored, node))


def _nodes(restored: "Restored", names: list[str] | None) -> "Tensor":
    import torch

    return restored.indices(names) if names else torch.arange(len(restored.ids))


def _whole(
    restored: "Restored", run: Path, answers: "list[Answer]", embeddings: Path | None
) -> dict[str, Any]:
    """Return all answers as one object; ``ids`` are the nodes they are about."""
    about = next((answer.nodes for answer in answers if answer.nodes is not None), None)
    ids = restored.ids if about is None else [restored.ids[index] for index in about]
    whole: dict[str, Any] = {"run": str(run), "task": restored.job.task, "ids": ids}
    whole |= {answer.name: answer.records() for answer in answers}
    return whole | ({"embeddings": str(embeddings)} if embeddings is not None else {})


def _print_overview(restored: "Restored", run: Path) -> None:
    from rich.table import Table

    results, job = restored.results, restored.job
    table = Table.grid(padding=(0, 2))
    keys = [key for key in TASKS[job.task].shown if results.get(key) is not None][:SHOWN_METRICS]
    metrics = ", ".join(f"{metric_title(key)} {results[key]:.2f}" for key in keys)
    table.add_row("run", f"{run}: {job.task}, {metrics}")
    table.add_row("model", f"{job.model.name}, {results['parameters']:,} parameters, recipe {job.recipe}")
    own = f"{results['graph'] or 'a graph given in Python'}, the run's own"
    nodes = f"{len(restored.ids):,} nodes, {restored.joined.nnz // 2:,} edges"
    table.add_row("graph", f"{own if restored.same else 'another than the run was trained on'}: {nodes}")
    if job.task == "link" and restored.same:
        seen = results["split"]["train"]
        table.add_row("", f"the model sees the {seen:,} edges it was trained on")
    terminal().print(table)


def _print_answer(answer: "Answer") -> None:
    from rich.table import Table

    columns = answer.columns[:SHOWN_COLUMNS]
    table = Table(box=None, padding=(0, 2, 0, 0), title=answer.name.replace("_", " "), title_justify="left")
    for index, name in enumerate(columns):
        numeric = bool(answer.rows) and isinstance(answer.rows[0][index], float)
        table.add_column(name, justify="right" if numeric else "left")
    for row in answer.rows[:SHOWN_ROWS]:
        cells = row[: len(columns)]
        table.add_row(*(f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in cells))
    terminal().print(table)
    hidden = [
        (len(answer.rows) - SHOWN_ROWS, "row"),
        (len(answer.columns) - SHOWN_COLUMNS, "column"),
    ]
    for count, noun in hidden:
        if count > 0:
            say(f"… and {count:,} more {noun}{'' if count == 1 else 's'}: --out FILE or --json has all")
