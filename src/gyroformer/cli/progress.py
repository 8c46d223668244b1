"""What goes on, on stderr, for work that turns out to take more than two seconds.

On a terminal it is one line that changes, elsewhere a line from time to time.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gyroformer.cli.terminal import say, styled, terminal

if TYPE_CHECKING:
    from rich.status import Status

PATIENCE = 2.0
#: seconds between the first two lines where there is no terminal; each pause is twice the one before, up to the most
EVERY, MOST = 10.0, 300.0
#: seconds between looks whether it is time to show something
LOOK = 0.25


class Progress:
    """Shows what is going on once it has taken ``PATIENCE`` seconds, also if nobody calls it meanwhile.

    Args:
        elsewhere: shows a text, and the seconds that it has taken, in another place if there is one, and tells whether
            it did.
    """

    def __init__(self, elsewhere: Callable[[str, float], bool] = lambda text, seconds: False) -> None:
        self._elsewhere = elsewhere
        self._lock, self._end = threading.Lock(), threading.Event()
        self._text: str | None = None
        self._since = 0.0
        self._due, self._pause = 0.0, EVERY
        self._status: Status | None = None
        self._thread: threading.Thread | None = None

    def show(self, text: str) -> None:
        """Say what is being done now."""
        with self._lock:
            if self._text is None:
                # something new, which is not to wait for the long pauses of what was before
                self._since = time.monotonic()
                self._due, self._pause = min(self._due, self._since + EVERY), EVERY
            self._text = text
            self._draw()
        if self._thread is None:
            thread = threading.Thread(target=self._watch, daemon=True)
            thread.start()  # Ctrl-C may come in between, and one that was not started cannot be waited for
            self._thread = thread

    def tell(self, text: str) -> None:
        """Say what has been done, in a line that stays; what was said to be going on before is over."""
        with self._lock:
            self._text, self._due = text, time.monotonic() + self._pause
            say(text, err=True)

    def rest(self) -> None:
        """Take the line away until something is shown again."""
        with self._lock:
            self._text = None
            if self._status is not None:
                self._status.stop()
                self._status = None

    def stop(self) -> None:
        """Take the line away for good."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()
        self.rest()

    def _watch(self) -> None:
        while not self._end.wait(LOOK):
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        now = time.monotonic()
        if self._text is None or now - self._since < PATIENCE:
            return
        if self._elsewhere(self._text, now - self._since):
            return
        if self._status is not None:
            self._status.update(styled(self._text, "status.text"))
            return
        console = terminal(stderr=True)
        if console.is_terminal:
            from rich.status import Status

            self._status = Status(styled(self._text, "status.text"), console=console)
            self._status.start()
        elif now >= self._due:
            self._due, self._pause = now + self._pause, min(2 * self._pause, MOST)
            say(self._text, err=True)


@contextmanager
def progress() -> Iterator[Progress]:
    """Give a :class:`Progress` for the block and clear its line at the end, however it ends."""
    shown = Progress()
    try:
        yield shown
    finally:
        shown.stop()
