"""``gyroformer predict``: ask a finished run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gyroformer.cli.options import (
    Header,
    Json,
    SourceColumn,
    TargetColumn,
    Threads,
    WeightColumn,
    reading_options,
    set_threads,
)
from gyroformer.cli.pair_option import as_pairs
from gyroformer.cli.progress import progress
from gyroformer.cli.terminal import print_json, print_table, say, show, terminal
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
#: new edges of a node, if no number is given
FEW_EDGES = 10
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
    add: Annotated[
        Path | None,
        typer.Option(
            help="A file of edges of nodes that the run does not know: they are placed, and asked about.",
            show_default=False,
        ),
    ] = None,
    adjust: Annotated[
        bool,
        typer.Option(
            "--adjust", help="With --add: known nodes around the new ones may move; else they stay in place."
        ),
    ] = False,
    features: Annotated[
        str | None,
        typer.Option(
            help="A file of features of the other graph, or of the nodes of --add.", show_default=False
        ),
    ] = None,
    header: Header = None,
    source: SourceColumn = None,
    target: TargetColumn = None,
    weight: WeightColumn = None,
    node: Annotated[
        list[str] | None,
        typer.Option(help="Only this node, by its id; may be repeated.", show_default=False),
    ] = None,
    labels: Annotated[bool, typer.Option("--labels", help="The labels, with probabilities.")] = False,
    nearest: Annotated[
        int | None,
        typer.Option(min=1, max=MOST, help="So many nearest nodes of each node.", show_default=False),
    ] = None,
    ancestors: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST,
            help="Of a hierarchy: so many likeliest ancestors of each node.",
            show_default=False,
        ),
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
    for_node: Annotated[
        str | None,
        typer.Option("--for", help="The node whose new edges are wanted, by its id.", show_default=False),
    ] = None,
    embeddings: Annotated[
        Path | None,
        typer.Option(help="Write ids and coordinates: .npz, .csv, .tsv or .parquet.", show_default=False),
    ] = None,
    flatten: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="DIM",
            help="With --embeddings: flat vectors of so many columns, for tools that know Euclidean distances only.",
            show_default=False,
        ),
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
    from gyroformer.jobs.so_far import usable_run

    if add is not None and graph is not None:
        raise UsageError("--add adds nodes to the run's own graph: leave GRAPH out, or --add")
    if adjust and add is None:
        raise UsageError(
            "--adjust says that known nodes may move for those of --add FILE: add it, or leave it out"
        )
    for flag, file in (("--embeddings", embeddings), ("--out", out)):
        if file is not None:
            check_target(file, flag)
    set_threads(threads)
    with progress() as shown:
        shown.show("reading the run and preparing its model …")
        reading = reading_options(header, source, target, weight)
        restored = _restored(usable_run(run), graph, add, features, reading, adjust)
        shown.show("looking for the answer …")
        asked = _answers(
            restored,
            node,
            labels=labels,
            nearest=nearest,
            ancestors=ancestors,
            distance=distance,
            pairs=pairs,
            new_edges=new_edges or (FEW_EDGES if for_node is not None else None),
            for_node=for_node,
        )
    usual = not asked and embeddings is None
    if usual:
        asked = [_usual(restored, node)]
    elif node and not (labels or nearest or ancestors):
        raise UsageError(
            "--node chooses the nodes of --labels, --nearest and --ancestors; --distance takes two ids itself"
        )
    if flatten is not None and embeddings is None:
        raise UsageError(
            "--flatten says how the coordinates of --embeddings are written: add --embeddings FILE"
        )
    written = None if embeddings is None else _export(restored, embeddings, flatten)
    _deliver(restored, run, asked, usual=usual, written=written, out=out, as_json=as_json)


def _restored(
    run: Path,
    graph: str | None,
    add: Path | None,
    features: str | None,
    reading: dict[str, Any],
    adjust: bool,
) -> "Restored":
    """Return the run with its own graph, with another, or with more nodes."""
    from gyroformer.jobs.new_nodes import restore_with
    from gyroformer.jobs.restore import restore

    if add is None:
        return restore(run, graph, features=features, reading=reading)
    return restore_with(run, add, features=features, reading=reading, adjust=adjust)


def _export(restored: "Restored", path: Path, flatten: int | None) -> dict[str, Any]:
    """Write the coordinates and return what they are: the file and, of flat ones, the mAP that is left."""
    from gyroformer.jobs.answer_files import write_embeddings
    from gyroformer.jobs.flatten import FLAT_MEANING, flattened
    from gyroformer.jobs.run import embedding_arrays
    from gyroformer.ops.neighbours import Neighbours

    if flatten is None:
        arrays = embedding_arrays(restored.model, restored.data, restored.positions())
        write_embeddings(path, restored.ids, arrays)
        return {"embeddings": str(path)}
    import numpy as np

    neighbours = Neighbours.of(np.stack(restored.joined.nonzero()), restored.joined.shape[0])
    flat = flattened(restored.positions(), neighbours, flatten)
    arrays = {"embedding": flat.vectors[:, None, :], "meaning": np.array(FLAT_MEANING)}
    write_embeddings(path, restored.ids, arrays)
    kept = {"map": flat.map, "true_map": flat.true_map, "tangent_map": flat.tangent_map, "dim": flatten}
    return {"embeddings": str(path), "flatten": kept}


def _deliver(
    restored: "Restored",
    run: Path,
    asked: "list[Answer]",
    *,
    usual: bool,
    written: dict[str, Any] | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Write and print what was asked."""
    from gyroformer.jobs.answer_files import write_answers

    whole = _whole(restored, run, asked, written)
    if out is not None:
        write_answers(out, asked, whole)
    if as_json:
        print_json(whole)
        return
    if usual:
        _print_overview(restored, run)
    for answer in asked:
        print_answer(answer)
    if written is not None:
        say(f"written: {written['embeddings']}")
        say(_what_was_written(restored, written))
    if out is not None:
        say(f"written: {out}")


def _what_was_written(restored: "Restored", written: dict[str, Any]) -> str:
    """Return what a user has to know to use coordinates."""
    kept = written.get("flatten")
    if kept is not None:
        return (
            f"flat vectors for Euclidean distances: mAP {kept['map']:.2f} by them, {kept['true_map']:.2f} by the "
            f"distances of the model, {kept['tangent_map']:.2f} by its tangent vectors"
        )
    curvatures = restored.model.curvatures
    heads = " ".join(f"{k:+.3f}" for k in curvatures[-1].tolist()) if curvatures.numel() else "0"
    return (
        f"tangent vectors at the origin, curvature of each head: {heads}; their Euclidean distances are not the "
        "distances of the nodes (--distance, --nearest), --flatten DIM writes vectors for tools that need that"
    )


def _answers(restored: "Restored", node: list[str] | None, **asked: Any) -> "list[Answer]":
    """Return the answers to what was asked, in one order."""
    from gyroformer.jobs import predict as answer

    found: list[Answer] = []
    if asked["labels"]:
        found.append(answer.labels(restored, _nodes(restored, node)))
    if asked["nearest"]:
        found.append(answer.nearest(restored, _nodes(restored, node), asked["nearest"]))
    if asked["ancestors"]:
        found.append(answer.ancestors(restored, _nodes(restored, node), asked["ancestors"]))
    pairs = as_pairs(asked["distance"])
    if asked["pairs"] is not None:
        pairs += answer.read_pairs(asked["pairs"])
    if pairs:
        found.append(answer.distances(restored, pairs))
    if asked["new_edges"]:
        found.append(answer.new_edges(restored, asked["new_edges"], asked["for_node"]))
    return found


def _usual(restored: "Restored", node: list[str] | None) -> "Answer":
    from gyroformer.jobs.predict import usual_answer

    if node and restored.job.task == "link":
        raise UsageError("--node chooses the nodes of --labels and --nearest: add --nearest 10")
    return usual_answer(restored, _nodes(restored, node))


def _nodes(restored: "Restored", names: list[str] | None) -> "Tensor":
    import torch

    if names:
        return restored.indices(names)
    # of a graph with new nodes these are asked about
    return torch.arange(len(restored.ids))[-restored.added or None :]


def _whole(
    restored: "Restored", run: Path, answers: "list[Answer]", written: dict[str, Any] | None
) -> dict[str, Any]:
    """Return all answers as one object; ``ids`` are the nodes they are about."""
    about = next((answer.nodes for answer in answers if answer.nodes is not None), None)
    known = restored.ids
    ids = known if about is None else [known[index] for index in about]
    whole: dict[str, Any] = {"run": str(run), "task": restored.job.task, "ids": ids}
    if restored.added:
        whole |= {"added": restored.added, "moved": restored.moved}
    whole |= {answer.name: answer.records() for answer in answers}
    return whole | (written or {})


def _print_overview(restored: "Restored", run: Path) -> None:
    from rich.table import Table

    results, job = restored.results, restored.job
    table = Table.grid(padding=(0, 2))
    keys = [key for key in TASKS[job.task].kind(job.objective).shown if results.get(key) is not None][
        :SHOWN_METRICS
    ]
    metrics = ", ".join(f"{metric_title(key)} {results[key]:.2f}" for key in keys)
    table.add_row("run", f"{run}: {job.task}, {metrics}")
    table.add_row("model", f"{job.model.name}, {results['parameters']:,} parameters, recipe {job.recipe}")
    own = f"{results['graph'] or 'a graph given in Python'}, the run's own"
    directed = restored.decoder is not None and restored.decoder.directed
    nodes = f"{len(restored.ids):,} nodes, {restored.joined.nnz // (1 if directed else 2):,} edges"
    other = (
        f"{own}, with {restored.added:,} new nodes"
        if restored.added
        else "another than the run was trained on"
    )
    table.add_row("graph", f"{own if restored.same else other}: {nodes}")
    if restored.moved:
        table.add_row("", f"{restored.moved:,} known nodes are not where the run had them")
    if job.task == "link" and restored.same:
        seen = results["split"]["train"]
        table.add_row("", f"the model sees the {seen:,} edges it was trained on")
    show(table)


def print_answer(answer: "Answer", title: str | None = None) -> None:
    """Print the first rows of an answer as a table: ids and labels whole, of further numbers as many as fit."""
    cells = [
        ["" if cell is None else f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row]
        for row in answer.rows[:SHOWN_ROWS]
    ]
    shown = _fitting(answer, cells)
    say(title or answer.name.replace("_", " "))
    numbers = [i for i in range(shown) if answer.rows and isinstance(answer.rows[0][i], float)]
    print_table(answer.columns[:shown], [row[:shown] for row in cells], numbers=numbers)
    hidden = [(len(answer.rows) - SHOWN_ROWS, "row"), (len(answer.columns) - shown, "column")]
    for count, noun in hidden:
        if count > 0:
            say(f"… and {count:,} more {noun}{'' if count == 1 else 's'}: --out FILE or --json has all")


def _fitting(answer: "Answer", cells: list[list[str]]) -> int:
    """Return how many columns the terminal has room for; those up to the first number are shown in any case."""
    from rich.cells import cell_len

    kinds = [isinstance(cell, float) for cell in answer.rows[0]] if answer.rows else []
    needed = kinds.index(True) + 1 if True in kinds else len(answer.columns)
    room = terminal().width
    for count, name in enumerate(answer.columns, start=1):
        room -= 2 + max(cell_len(text) for text in (name, *(row[count - 1] for row in cells)))
        if count > needed and (room < 0 or count > SHOWN_COLUMNS):
            return count - 1
    return len(answer.columns)
