"""The training loop, and the folder that makes a run survive a crash."""

from gyroformer.train.finished import FinishedRun, load_run, verify_run
from gyroformer.train.loop import fit
from gyroformer.train.outcome import Outcome, Progress
from gyroformer.train.run_folder import RunFolder
from gyroformer.train.settings import TrainSettings

__all__ = [
    "FinishedRun",
    "Outcome",
    "Progress",
    "RunFolder",
    "TrainSettings",
    "fit",
    "load_run",
    "verify_run",
]
