"""The training loop."""

from gyroformer.options.training import TrainOptions
from gyroformer.train.loop import fit
from gyroformer.train.outcome import Outcome, Progress

__all__ = ["Outcome", "Progress", "TrainOptions", "fit"]
