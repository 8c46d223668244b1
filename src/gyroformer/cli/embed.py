"""``gyroformer embed``: place a graph's nodes so that its edges can be read from distances."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gyroformer.cli.job_command import run_command
from gyroformer.cli.job_options import JobOptions, takes_job_options
from gyroformer.errors import UsageError


@takes_job_options
def embed(
    graph: Annotated[str, typer.Argument(help="A data set's name, or a file.")],
    negatives: Annotated[
        str, typer.Option(help="Non-neighbours in the loss: all, auto (all up to 30,000 nodes), or a number.")
    ] = "auto",
    plain_distance: Annotated[
        bool, typer.Option("--plain-distance", help="Distances in the loss, not their squares.")
    ] = False,
    features: Annotated[
        Path | None, typer.Option(help="A file of node features to use.", show_default=False)
    ] = None,
    map_nodes: Annotated[
        int | None, typer.Option(min=1, help="Take mAP over so many drawn nodes.", show_default=False)
    ] = None,
    *,
    options: JobOptions,
) -> None:
    """Embed a graph: train a model to reconstruct it, write the embeddings, print the mAP.

    mAP is the mean average precision, in percent, with which the nearest nodes are the neighbours.

    Example: gyroformer embed web-edu --dim 16 --heads 2 --out runs/web-edu
    """
    objective: dict[str, Any] = {"negatives": _negatives(negatives), "squared": not plain_distance}
    if map_nodes is not None:
        objective["map_nodes"] = map_nodes
    own: dict[str, Any] = {"objective": objective}
    if features is not None:
        objective["use_features"] = True
        own["graph"] = {"source": graph, "features": str(features)}
    run_command("embed", graph, options, own, {"map": "mAP"})


def _negatives(text: str) -> str | int:
    if text in ("all", "auto"):
        return text
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"--negatives takes all, auto or a number, got {text!r}") from None
