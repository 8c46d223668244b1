"""What training gives back, and what it tells while it runs."""

import dataclasses as dc
from typing import Any


@dc.dataclass(frozen=True, slots=True)
class Outcome:
    """The result of training; the model itself holds the best state (the last, if the task has no order).

    Attributes:
        epochs: epochs done.
        best_epoch: the epoch of the state that the model holds.
        metrics: the task's metrics of that state.
        history: a row for each epoch: ``epoch``, ``loss``, ``lr``, ``curvatures`` if the model has any, and
            ``metrics`` where it was evaluated.
        stopped: ``"finished"``, ``"patience"`` or ``"converged"``; ``"interrupted"`` of a run that is asked before its
            end.
        seconds: training time over all resumptions.
        lowered: whether the learning rates were lowered after a step that was not finite.
        compiled: whether the model was compiled.
    """

    epochs: int
    best_epoch: int
    metrics: dict[str, float]
    history: list[dict[str, Any]]
    stopped: str
    seconds: float
    lowered: bool
    compiled: bool = False


@dc.dataclass(frozen=True, slots=True)
class Progress:
    """Where training is after an epoch.

    Attributes:
        epoch: epochs done.
        epochs: epochs in all, as far as it is known.
        loss: the loss of this epoch.
        metrics: those of the last evaluation; empty before the first.
        curvatures: the model's curvatures, layer by layer; empty if it has none.
        seconds: training time over all resumptions.
        seconds_left: time that the rest will take, evaluations included, if no epoch stops it early.
        at_most: whether it may well stop early: its loss has not converged yet.
    """

    epoch: int
    epochs: int
    loss: float
    metrics: dict[str, float]
    curvatures: list[float]
    seconds: float
    seconds_left: float
    at_most: bool = False
