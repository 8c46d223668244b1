"""How to train: rates, length, and when to look, to save and to stop."""

import dataclasses as dc
import math

from gyroformer.errors import UsageError, did_you_mean

SCHEDULES = ("constant", "linear", "cosine")


@dc.dataclass(frozen=True, kw_only=True, slots=True)
class TrainSettings:
    """Settings of a training run; wrong values are refused at once.

    Attributes:
        epochs: number of steps; each takes the whole graph.
        lr: rate of Adam.
        curvature_lr: its rate for curvatures, which have no weight decay.
        weight_decay: the L2 term inside Adam.
        schedule: ``"constant"``, ``"linear"`` (constant, then down to 0) or ``"cosine"``.
        decay_from: the share of the epochs after which ``"linear"`` begins to fall.
        clip: largest norm of the gradient; None for no limit.
        patience: evaluations without improvement after which training stops; None for never.
        eval_every: epochs between evaluations; the last epoch is always evaluated.
        checkpoint_seconds: seconds between checkpoints.
        compile: whether to compile the model with ``torch.compile``.
        tensorboard: whether to write TensorBoard files to the run folder.
    """

    epochs: int = 1000
    lr: float = 1e-2
    curvature_lr: float = 1e-4
    weight_decay: float = 0.0
    schedule: str = "constant"
    decay_from: float = 0.5
    clip: float | None = None
    patience: int | None = None
    eval_every: int = 1
    checkpoint_seconds: float = 20.0
    compile: bool = False
    tensorboard: bool = False

    def __post_init__(self) -> None:
        for name in ("epochs", "eval_every", "patience"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise UsageError(f"{name} must be a whole number of at least 1, got {value!r}")
        for name in ("lr", "curvature_lr", "weight_decay", "checkpoint_seconds"):
            value = getattr(self, name)
            if not math.isfinite(value) or value < 0:
                raise UsageError(f"{name} must be a finite number of at least 0, got {value!r}")
        if self.clip is not None and not (math.isfinite(self.clip) and self.clip > 0):
            raise UsageError(f"clip must be a positive number (or None for no limit), got {self.clip!r}")
        if not 0 <= self.decay_from < 1:
            raise UsageError(f"decay_from must be at least 0 and below 1, got {self.decay_from!r}")
        if self.schedule not in SCHEDULES:
            near = did_you_mean(self.schedule, list(SCHEDULES))
            raise UsageError(f"schedule must be one of {', '.join(SCHEDULES)}; got {self.schedule!r}{near}")

    def factor(self, epoch: int) -> float:
        r"""Return what the rates are multiplied with in ``epoch`` (from 1).

        With :math:`t = (\mathrm{epoch} - 1)/\mathrm{epochs}` the share of the run that is over, linear is
        :math:`\min(1, (1 - t)/(1 - \mathrm{decay\_from}))` and cosine :math:`(1 + \cos \pi t)/2`: both would be 0
        just after the last epoch, so that no step is lost.
        """
        t = (epoch - 1) / self.epochs
        if self.schedule == "linear":
            return min(1.0, (1 - t) / (1 - self.decay_from))
        return 0.5 * (1 + math.cos(math.pi * t)) if self.schedule == "cosine" else 1.0
