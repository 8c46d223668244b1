"""``gyroformer link``: learn from most edges of a graph, find the others."""

from typing import Annotated, Any

import typer

from gyroformer.cli.job_command import run_command
from gyroformer.cli.job_options import JobOptions, takes_job_options

SHOWN = {
    "test_auc": "test AUC",
    "test_ap": "test AP",
    "test_hits@10": "test Hits@10",
    "test_hits@50": "test Hits@50",
    "test_hits@100": "test Hits@100",
    "val_auc": "validation AUC",
}


@takes_job_options
def link(
    graph: Annotated[str, typer.Argument(help="A data set's name, or a file.")],
    features: Annotated[
        str | None,
        typer.Option(help="A file of features, or one of a data set's feature sets.", show_default=False),
    ] = None,
    decoder: Annotated[
        str | None,
        typer.Option(help="fermi-dirac (of d², the default) or distance (of d).", show_default=False),
    ] = None,
    learn_decoder: Annotated[
        bool, typer.Option("--learn-decoder", help="Train the decoder's radius and temperature too.")
    ] = False,
    radius: Annotated[
        float | None, typer.Option(help="Radius of the decoder (2).", show_default=False)
    ] = None,
    temperature: Annotated[
        float | None, typer.Option(help="Temperature of the decoder (1).", show_default=False)
    ] = None,
    val_share: Annotated[
        float | None, typer.Option(help="Share of the edges to choose by (0.05).", show_default=False)
    ] = None,
    test_share: Annotated[
        float | None, typer.Option(help="Share of the edges to test on (0.10).", show_default=False)
    ] = None,
    split_seed: Annotated[
        int | None, typer.Option(help="Which draw of held-out edges (default: --seed).", show_default=False)
    ] = None,
    *,
    options: JobOptions,
) -> None:
    """Predict links: hold out edges, train on the others, print how well the held-out ones are found.

    AUC, average precision and Hits@K are in percent, against as many pairs that are no edge of the graph.

    Example: gyroformer link cora --seeds 10
    """
    given = {
        "decoder": decoder,
        "learn_decoder": learn_decoder or None,
        "radius": radius,
        "temperature": temperature,
        "val_share": val_share,
        "test_share": test_share,
        "split_seed": split_seed,
    }
    own: dict[str, Any] = {
        "objective": {key: value for key, value in given.items() if value is not None},
        "graph": {"source": graph, "features": features},
    }
    run_command("link", graph, options, own, SHOWN)
