"""Options that every command shares, and the one place that prints JSON."""

import json
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, alone, on stdout.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of every random draw.")]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, help="CPU threads for torch; torch's own choice when absent."),
]


def print_json(result: dict[str, Any]) -> None:
    """Write ``result`` as one JSON object on stdout; non-finite numbers are refused."""
    typer.echo(json.dumps(result, indent=2, allow_nan=False))


def set_threads(threads: int | None) -> None:
    """Make torch use ``threads`` CPU threads, if a number was given."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
