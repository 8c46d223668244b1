"""A progress line on stderr for work that turns out to take more than two seconds."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 2.0


class Progress:
    """Shows what is going on, once ``PATIENCE`` seconds have passed since the start."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._status: object = None

    def show(self, text: str) -> None:
        """Say what is being done now."""
        from rich.console import Console
        from rich.status import Status

        if isinstance(self._status, Status):
            self._status.update(text)
        elif time.monotonic() - self._start > PATIENCE:
            self._status = Status(text, console=Console(stderr=True))
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
