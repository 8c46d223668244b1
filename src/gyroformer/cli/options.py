"""Options that every command shares."""

from typing import Annotated

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


def set_threads(threads: int | None) -> None:
    """Make torch use ``threads`` CPU threads, if a number was given."""
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
