"""How long the rest of a run will take: steps and evaluations by themselves, for one may cost many times the other."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Pace:
    """Counts the time of steps and of evaluations.

    Args:
        first: epochs that were done before.
    """

    def __init__(self, first: int) -> None:
        self._first, self._begun = first, time.monotonic()
        self._evaluating, self._evaluations = 0.0, 0

    @contextmanager
    def evaluation(self) -> Iterator[None]:
        """Count the block as an evaluation."""
        begun = time.monotonic()
        yield
        self._evaluating += time.monotonic() - begun
        self._evaluations += 1

    def left(self, epoch: int, epochs: int, eval_every: int) -> float:
        """Return the seconds that the epochs from ``epoch`` to ``epochs`` will take if none stops early."""
        done = epoch - self._first
        if done < 1:
            return 0.0
        step = (time.monotonic() - self._begun - self._evaluating) / done
        each = self._evaluating / self._evaluations if self._evaluations else step
        evaluations = epochs // eval_every - epoch // eval_every
        last = epochs % eval_every != 0 and epoch < epochs
        return step * (epochs - epoch) + each * (evaluations + last)
