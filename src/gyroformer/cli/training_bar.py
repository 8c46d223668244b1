"""Progress of training on stderr."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def training_bar() -> Iterator[None]:
    """Give a listener for the training loop."""
    yield None
