"""What to type to go on with an interrupted run."""

import shlex
from collections.abc import Sequence
from pathlib import Path


def resume_command(argv: Sequence[str], run: Path) -> str:
    """Return the command line ``argv`` with ``--resume``, and with ``--out`` if the folder was chosen for the user."""
    words = ["gyroformer", *argv[1:]]
    if not any(word == "--out" or word.startswith("--out=") for word in words):
        words += ["--out", str(run)]
    if "--resume" not in words:
        words.append("--resume")
    return shlex.join(words)
