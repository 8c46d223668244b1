"""Options that every command shares."""

from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, alone, on stdout.")]
#: threads beyond which a machine only stumbles over itself
MAX_THREADS = 1024
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of every random draw.")]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", min=1, max=MAX_THREADS, help="CPU threads for torch; torch's own choice when absent."
    ),
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


def set_threads(threads: int | None) -> None:
    """Make torch use ``threads`` CPU threads, if a number was given."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
