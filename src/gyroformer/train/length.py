"""How many epochs a run has: those of its settings, or fewer once its loss has converged."""

import math
from collections.abc import Iterable

from gyroformer.options.training import TrainOptions

#: epochs whose mean loss is compared with the mean of as many before
WINDOW = 50


class Length:
    """The length of a run, found from its losses alone: a run that is resumed finds the same.

    The loss has converged when its mean over the last ``WINDOW`` epochs is lower than over those before by less than
    the fraction ``converged``. What is left is the end of the schedule, as a run of that length would have it: after
    convergence at epoch e, a linear schedule falls to 0 at epoch e / ``decay_from``, a constant one ends after one
    more epoch.

    Args:
        settings: epochs, schedule and the fraction.
        losses: of the epochs that are done.
    """

    def __init__(self, settings: TrainOptions, losses: Iterable[float] = ()) -> None:
        self.settings, self.epochs = settings, settings.epochs
        #: whether the number of epochs is not going to change
        self.known = settings.converged is None
        self._losses: list[float] = []
        for loss in losses:
            self.add(loss)

    @property
    def converged(self) -> bool:
        """Whether the loss has converged before the settings' own end."""
        return self.epochs < self.settings.epochs

    def add(self, loss: float) -> None:
        """Take the loss of one more epoch."""
        self._losses.append(loss)
        done, limit = len(self._losses), self.settings.converged
        falls_from = self.settings.decay_from if self.settings.schedule == "linear" else 1.0
        if self.known or limit is None or done < 2 * WINDOW:
            return
        if done >= falls_from * self.settings.epochs:  # the end has begun by itself
            self.known = True
            return
        before, last = (sum(self._losses[i : i + WINDOW]) for i in (done - 2 * WINDOW, done - WINDOW))
        if before - last < limit * abs(before):
            self.known = True
            # at least one more, which is evaluated
            self.epochs = min(self.settings.epochs, max(done + 1, math.ceil(done / falls_from)))
