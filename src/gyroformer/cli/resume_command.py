"""What to type to go on with an interrupted run."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from gyroformer.processes.launch import beside, launched


def resume_command(argv: Sequence[str], run: Path) -> str:
    """Return the command line ``argv`` with ``--resume``, and with ``--out`` if the folder was chosen for the user."""
    started = "gyroformer"
    if launched() > 1:  # on one machine all of them, on several those of each
        started = f"torchrun --nproc-per-node {beside()} -m gyroformer"
    words = [*started.split(), *argv[1:]]
    if not any(word == "--out" or word.startswith("--out=") for word in words):
        words += ["--out", str(run)]
    if "--resume" not in words:
        words.append("--resume")
    return shlex.join(words)
