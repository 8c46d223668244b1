"""Options that every command shares, and the one place that prints JSON."""

import json
import logging
import sys
from typing import Annotated, Any, TextIO

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, alone, on stdout.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of every random draw.")]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, help="CPU threads for torch; torch's own choice when absent."),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of an edge list names its columns; found by default.",
        show_default=False,
    ),
]
SourceColumn = Annotated[
    str | None,
    typer.Option(
        "--source", help="Column of an edge list with the first ends, by name or number.", show_default=False
    ),
]
TargetColumn = Annotated[
    str | None,
    typer.Option("--target", help="Column of an edge list with the second ends.", show_default=False),
]
WeightColumn = Annotated[
    str | None,
    typer.Option(
        "--weight",
        help="Column of an edge list with the weights; none to leave weights out.",
        show_default=False,
    ),
]


def reading_options(
    header: bool | None, source: str | None, target: str | None, weight: str | None = None
) -> dict[str, Any]:
    """Return how an edge list is to be read, as far as that was said."""
    said = {"header": header, "source": source, "target": target, "weight": weight}
    return {name: value for name, value in said.items() if value is not None}


class Messages(logging.StreamHandler[TextIO]):
    """Writes what the package logs to stderr, as it is at that moment: each message a line by itself."""

    def __init__(self) -> None:
        logging.Handler.__init__(self, logging.INFO)

    @property
    def stream(self) -> TextIO:  # type: ignore[override]
        """The present stderr."""
        return sys.stderr


def show_messages() -> None:
    """Show what the package says of its work: what was read, where a run goes on, what went wrong and was mended."""
    logger = logging.getLogger("gyroformer")
    if not any(isinstance(handler, Messages) for handler in logger.handlers):
        logger.addHandler(Messages())
    logger.setLevel(logging.INFO)


def print_json(result: dict[str, Any]) -> None:
    """Write ``result`` as one JSON object on stdout; non-finite numbers are refused."""
    typer.echo(json.dumps(result, indent=2, allow_nan=False))


def set_threads(threads: int | None) -> None:
    """Make torch use ``threads`` CPU threads, if a number was given."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
