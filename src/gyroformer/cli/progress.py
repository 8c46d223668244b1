"""What goes on, on stderr, for work that turns out to take more than two seconds.

On a terminal it is one line that changes, elsewhere a line from time to time.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from gyroformer.cli.terminal import say, styled, terminal

PATIENCE = 2.0
#: seconds between lines where there is no terminal
EVERY = 10.0


class Progress:
    """Shows what is going on, once ``PATIENCE`` seconds have passed since the start."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._said = self._start - EVERY  # the first line comes as soon as it may
        self._status: object = None

    def show(self, text: str) -> None:
        """Say what is being done now."""
        from rich.status import Status

        if isinstance(self._status, Status):
            self._status.update(styled(text, "status.text"))
        elif time.monotonic() - self._start > PATIENCE:
            console = terminal(stderr=True)
            if console.is_terminal:
                self._status = Status(styled(text, "status.text"), console=console)
                self._status.start()
            elif time.monotonic() - self._said >= EVERY:
                self._said = time.monotonic()
                say(text, err=True)

    def stop(self) -> None:
        """Take the line away."""
        from rich.status import Status

        if isinstance(self._status, Status):
            self._status.stop()


@contextmanager
def progress() -> Iterator[Progress]:
    """Give a :class:`Progress` for the block and clear its line at the end, however it ends."""
    shown = Progress()
    try:
        yield shown
    finally:
        shown.stop()
