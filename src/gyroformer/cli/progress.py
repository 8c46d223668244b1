"""A progress line on stderr for work that turns out to take more than two seconds."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from gyroformer.cli.terminal import styled, terminal

PATIENCE = 2.0


class Progress:
    """Shows what is going on, once ``PATIENCE`` seconds have passed since the start."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._status: object = None

    def show(self, text: str) -> None:
        """Say what is being done now."""
        from rich.status import Status

        if isinstance(self._status, Status):
            self._status.update(styled(text, "status.text"))
        elif time.monotonic() - self._start > PATIENCE:
            self._status = Status(styled(text, "status.text"), console=terminal(stderr=True))
            self._status.start()

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
