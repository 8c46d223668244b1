"""The folder of a run: written by one process at a time, whole or resumable, and read in one place."""

from gyroformer.runs.folder import RunFolder
from gyroformer.runs.read import Run, open_run

__all__ = ["Run", "RunFolder", "open_run"]
