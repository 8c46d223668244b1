"""``gyroformer classify``: learn the labels of some nodes, choose on others, test on the rest."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gyroformer.cli.job_command import run_command
from gyroformer.cli.job_options import JobOptions, takes_job_options


@takes_job_options
def classify(
    graph: Annotated[str, typer.Argument(help="A data set's name, or a file.")],
    labels: Annotated[
        Path | None, typer.Option(help="A file of labels, for a graph from a file.", show_default=False)
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(help="A file of features, or one of a data set's feature sets.", show_default=False),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(
            help="public, geom-gcn, random, clean or legacy (default: the data set's own).",
            show_default=False,
        ),
    ] = None,
    split_seed: Annotated[
        int | None, typer.Option(help="Which draw of a drawn split (default: --seed).", show_default=False)
    ] = None,
    split_index: Annotated[
        int | None, typer.Option(help="Which of the stored splits (default: by --seed).", show_default=False)
    ] = None,
    balanced: Annotated[bool, typer.Option("--balanced", help="All classes weigh the same.")] = False,
    directed: Annotated[bool, typer.Option("--directed", help="Keep the direction of edges.")] = False,
    *,
    options: JobOptions,
) -> None:
    """Classify nodes: train on some, choose the best epoch on others, print the F1 on the rest.

    Example: gyroformer classify cora --seeds 10
    """
    given = {
        "split": split,
        "split_seed": split_seed,
        "split_index": split_index,
        "balanced": balanced or None,
    }
    source: dict[str, Any] = {"source": graph, "directed": directed, "features": features}
    source["labels"] = None if labels is None else str(labels)
    own = {
        "objective": {key: value for key, value in given.items() if value is not None},
        "graph": source,
    }
    run_command("classify", graph, options, own, {"test_f1": "test F1", "val_f1": "validation F1"})
