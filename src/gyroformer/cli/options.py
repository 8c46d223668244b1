"""Options that every command shares."""

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, alone, on stdout.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of every random draw.")]
Threads = Annotated[
    int | None,
    typer.Option("--threads", min=1, help="CPU threads for torch; torch's own choice when absent."),
]


def set_threads(threads: int | None) -> None:
    """Make torch use ``threads`` CPU threads, if a number was given."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
