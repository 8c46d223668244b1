"""What a training run shows while it goes on: a bar on a terminal, else a line from time to time; never on stdout.

Runs that are over within two seconds show nothing.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from gyroformer.cli.progress import EVERY, PATIENCE
from gyroformer.cli.progress import Progress as Waiting
from gyroformer.cli.terminal import terminal, visible
from gyroformer.processes.launch import speaks

if TYPE_CHECKING:
    from gyroformer.train.outcome import Progress

#: curvatures shown one by one; of more, the range
LISTED = 4


class TrainingBar:
    """A listener of the training loop; call it with each ``Progress``.

    Args:
        file: where to write; stderr when absent.
    """

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = sys.stderr if file is None else file
        self._begun = time.monotonic()
        self._said = self._begun - EVERY  # the first line comes as soon as it may
        self._bar: Any = None
        self._row: Any = None
        self._waiting = Waiting(self._on_bar)
        #: put before each line, e.g. which of several runs it is
        self.about = ""

    def stage(self, text: str) -> None:
        """Say what is being done between the epochs: it is shown if it takes long."""
        self._waiting.show(f"{self.about}{text} …")

    def _on_bar(self, text: str, seconds: float) -> bool:
        """Show a stage on the bar, if there is one."""
        if self._bar is not None:
            self._bar.update(self._row, description=visible(f"{text} {seconds:.0f} s"))
            self._bar.refresh()
        return self._bar is not None

    def __call__(self, progress: "Progress") -> None:
        """Show where training is."""
        self._waiting.rest()
        now = time.monotonic()
        if now - self._begun < PATIENCE:
            return
        if self._file.isatty():
            self._draw(progress)
        elif now - self._said >= EVERY:
            self._said = now
            print(visible(f"{self.about}{line(progress)}"), file=self._file, flush=True)

    def _draw(self, progress: "Progress") -> None:
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar
        from rich.table import Column

        if self._bar is None:
            columns = (
                TextColumn("{task.fields[about]}epoch {task.completed}/{task.total}", markup=False),
                BarColumn(20),
                # one line, however narrow the terminal
                TextColumn(
                    "{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")
                ),
            )
            # no thread that draws between epochs: it would cost the training
            self._bar = Bar(*columns, console=terminal(file=self._file), transient=True, auto_refresh=False)
            self._row = self._bar.add_task("", total=progress.epochs, about=self.about)
            self._bar.start()
        self._bar.update(
            self._row,
            completed=progress.epoch,
            total=progress.epochs,
            description=summary(progress),
            about=self.about,
        )
        if time.monotonic() - self._said >= 0.1 or progress.epoch == progress.epochs:
            self._said = time.monotonic()
            self._bar.refresh()

    def stop(self) -> None:
        """Take the bar away."""
        self._waiting.stop()
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class SilentBar(TrainingBar):
    """A listener that shows nothing."""

    def stage(self, text: str) -> None:
        """Say nothing."""

    def __call__(self, progress: "Progress") -> None:
        """Show nothing."""


@contextmanager
def training_bar() -> Iterator[TrainingBar]:
    """Give a listener for the block and clear its line at the end, however it ends; of processes one shows it."""
    bar = TrainingBar() if speaks() else SilentBar()
    try:
        yield bar
    finally:
        bar.stop()


def line(progress: "Progress") -> str:
    """Return a progress as one plain line."""
    return f"epoch {progress.epoch}/{progress.epochs}  {summary(progress)}"


def summary(progress: "Progress") -> str:
    """Return loss, metrics, curvatures and time left, in a few words."""
    parts = [f"loss {progress.loss:.4g}"]
    parts += [f"{name} {value:.4g}" for name, value in progress.metrics.items()]
    if progress.curvatures:
        parts.append(f"k {short_curvatures(progress.curvatures)}")
    parts.append(f"{'at most ' if progress.at_most else ''}{duration(progress.seconds_left)} left")
    return "  ".join(parts)


def short_curvatures(values: list[float]) -> str:
    """Return a few curvatures one by one, of many the range."""
    if len(values) <= LISTED:
        return " ".join(f"{k:+.3g}" for k in values)
    return f"{min(values):+.3g} … {max(values):+.3g} ({len(values)})"


def duration(seconds: float) -> str:
    """Return a duration as people say it: 45 s, 3 min 20 s, 2 h 05 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
