"""Options of training: learning rates, length, and when to evaluate, to save and to stop."""

import math
from typing import Literal

from gyroformer.errors import UsageError
from gyroformer.options.declare import Options, option

#: learning rates and decays beyond this are typing errors: one step would leave every finite number
MAX_RATE = 1e3


class TrainOptions(Options):
    """How to train."""

    epochs: int = option(
        "number of steps, each on the whole graph", default=1000, at_least=1, at_most=100_000_000
    )
    lr: float = option("learning rate of Adam", default=1e-2, at_least=0, at_most=MAX_RATE)
    curvature_lr: float = option(
        "learning rate of the curvatures, which have no weight decay",
        default=1e-4,
        at_least=0,
        at_most=MAX_RATE,
    )
    weight_decay: float = option("the L2 term inside Adam", default=0.0, at_least=0, at_most=MAX_RATE)
    schedule: Literal["constant", "linear", "cosine"] = option(
        "course of the learning rates: constant, linear (constant, then down to 0) or cosine",
        default="constant",
    )
    decay_from: float = option(
        "fraction of the epochs after which the linear schedule begins to fall",
        default=0.5,
        at_least=0,
        below=1,
    )
    clip: float | None = option("largest norm of the gradient; none for no limit", default=None, above=0)
    converged: float | None = option(
        "fraction by which the loss must fall over 50 epochs; when it falls less, the schedule's end begins and "
        "training stops early; none for the full length",
        default=None,
        above=0,
        below=1,
        neutral=None,
    )
    patience: int | None = option(
        "evaluations without improvement after which training stops; none for never", default=None, at_least=1
    )
    eval_every: int = option(
        "epochs between evaluations; the last epoch is always evaluated", default=1, at_least=1
    )
    checkpoint_seconds: float = option("seconds between checkpoints", default=20.0, at_least=0, at_most=1e9)
    compile: bool = option("whether to compile the model (some ten seconds at the start)", default=False)
    tensorboard: bool = option("whether to write TensorBoard files to the run folder", default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.converged is not None and self.schedule == "cosine":
            raise UsageError(
                "converged needs a schedule whose end can come early: linear or constant, not cosine"
            )

    def factor(self, epoch: int, epochs: int | None = None) -> float:
        r"""Return what the learning rates are multiplied by in ``epoch`` (from 1), in a run of ``epochs``.

        With :math:`t = (\mathrm{epoch} - 1)/\mathrm{epochs}` the fraction of the run that is over, linear is
        :math:`\min(1, (1 - t)/(1 - \mathrm{decay\_from}))` and cosine :math:`(1 + \cos \pi t)/2`: both would be 0
        just after the last epoch, so that no step is lost.
        """
        t = (epoch - 1) / (epochs or self.epochs)
        if self.schedule == "linear":
            return min(1.0, (1 - t) / (1 - self.decay_from))
        return 0.5 * (1 + math.cos(math.pi * t)) if self.schedule == "cosine" else 1.0
