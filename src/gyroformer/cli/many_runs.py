"""How a command of many runs says where it is, and after Ctrl-C what is kept and what to type."""

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import typer

from gyroformer.cli.progress import Progress, progress
from gyroformer.cli.terminal import say
from gyroformer.errors import Interrupted

if TYPE_CHECKING:
    from gyroformer.jobs.pool import State, Teller

#: exit code if a run failed: the others are done, and are shown
SOME_FAILED = 1


@contextmanager
def going_on(kept: Callable[[], str]) -> Iterator[Progress]:
    """Give what shows the progress of the block, a command that goes on where it was when it is given again.

    Args:
        kept: says after Ctrl-C what is not lost.
    """
    with progress() as shown:
        try:
            yield shown
        except KeyboardInterrupt:
            shown.stop()
            stopped(kept())


@contextmanager
def many_runs(kept: Callable[[], str]) -> "Iterator[tuple[Teller, Teller]]":
    """Give two functions for the block: one hears of each run that has ended, one how those under way get on.

    Args:
        kept: says after Ctrl-C what is not lost.
    """
    with going_on(kept) as shown:
        yield (lambda state: shown.tell(_line(state))), (lambda state: shown.show(_line(state)))


def stopped(kept: str) -> NoReturn:
    """End a command that goes on where it was when it is given again."""
    say(f"interrupted; {kept}. To go on:", err=True)
    say(f"  {shlex.join(['gyroformer', *sys.argv[1:]])}", err=True)
    raise typer.Exit(Interrupted.exit_code) from None


def _line(state: "State") -> str:
    from gyroformer.cli.training_bar import duration

    left = "" if state.seconds_left is None else f", {duration(state.seconds_left)} left"
    return f"{state.done}/{state.total} runs{left}: {state.said or 'starting'}"
