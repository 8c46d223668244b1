"""What can go wrong for a user, each kind with the exit code that the command line gives it.

A message says what was expected, what came, where, and what to do about it, in one line.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class GyroformerError(Exception):
    """Base of every error that this package raises on purpose."""

    exit_code = 1


class UsageError(GyroformerError, ValueError):
    """An argument has a wrong value, shape or type, or names something that does not exist."""

    exit_code = 2


class DataError(GyroformerError, ValueError):
    """An input file or graph cannot be used as it is."""

    exit_code = 3


class CorruptFileError(DataError):
    """A file that this package wrote is truncated, altered or of an unknown version."""


class DivergedError(GyroformerError, ArithmeticError):
    """A computation left the finite numbers."""

    exit_code = 4


class MissingPartError(GyroformerError, ImportError):
    """An optional part of the installation is needed and absent."""

    exit_code = 5

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package!r}: pip install 'gyroformer[{extra}]'")


class Interrupted(GyroformerError):
    """Training was asked to stop and left a checkpoint in the run folder.

    Args:
        run: the run folder, so that the command line can print how to go on.
        epoch: the last whole epoch.
    """

    exit_code = 130

    def __init__(self, run: Path, epoch: int) -> None:
        super().__init__(f"interrupted after epoch {epoch}; {run} holds a checkpoint: add --resume to go on")
        self.run, self.epoch = run, epoch


class ProcessLostError(GyroformerError):
    """Another process of the same run ended, or did not answer in time.

    Args:
        rank: the process that noticed it.
        count: number of processes.
        wait: seconds that it waited, if it waited in vain.
        cause: what was said by the library that connects them.
    """

    def __init__(self, rank: int, count: int, wait: float, cause: str) -> None:
        late = "timed out" in cause.lower() or "timeout" in cause.lower()
        what = f"did not answer for {wait:g} s (--wait): it hangs" if late else "has ended"
        super().__init__(
            f"process {rank} of {count} (numbers from 0): another process {what}; its own message, if it could leave "
            "one, says why"
        )
        #: the run folder, so that the command line can print how to go on; None where it is not known
        self.run: Path | None = None


class EchoedError(GyroformerError):
    """An error of another process, which that one reports: this one ends with the same exit code and says nothing."""

    def __init__(self, exit_code: int) -> None:
        super().__init__("another process has failed")
        self.exit_code = exit_code


@contextmanager
def in_file(path: Path, kind: type[DataError] = DataError) -> Iterator[None]:
    """Put the file's name before the message of a DataError raised inside, which becomes one of ``kind``."""
    try:
        yield
    except DataError as error:
        raise kind(f"{path}: {error}") from None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the known name nearest to ``name``, or an empty string."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
