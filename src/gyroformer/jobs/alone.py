"""Processes that end with the one that started them, however that ended: they watch a pipe that it holds open."""

import threading
from collections.abc import Callable
from multiprocessing import connection


def when_alone(alive: connection.Connection, leave: Callable[[], None]) -> None:
    """Call ``leave``, in a thread, once the other end of ``alive`` is closed.

    The process that holds it closes it to end the others. If it is killed outright the system closes it: a daemon flag
    would not help, since nothing of that process runs any more that could end its children.
    """

    def watch() -> None:
        connection.wait([alive])
        leave()

    threading.Thread(target=watch, daemon=True).start()
