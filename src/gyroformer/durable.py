"""Files that are either whole or not there: sums, locks, and the move into place.

A killed process leaves at most a ``.part`` and a ``.lock`` file; neither is ever read as data, and the
lock is the operating system's, so it dies with its holder.
"""

import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from gyroformer.errors import DataError

CHUNK = 1 << 20


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def move_into_place(part: Path, target: Path) -> None:
    """Make ``part`` the file ``target`` in one step, with its bytes and its name safe on the disk."""
    with part.open("rb+") as file:
        os.fsync(file.fileno())
    part.replace(target)
    if os.name == "posix":  # elsewhere a folder cannot be opened, and the rename is durable by itself
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def make_folder(folder: Path) -> None:
    """Create ``folder`` with its parents, or say in one line why that cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"{folder}: cannot be created ({error.strerror}); choose a folder you may write (for data sets: "
            "GYROFORMER_DATA)"
        ) from None


@contextmanager
def only_one(lock: Path, *, patience: float = 600.0) -> Iterator[None]:
    """Hold ``lock`` while the block runs; a second process waits for it, at most ``patience`` seconds."""
    try:
        file = lock.open("ab")
    except OSError as error:
        raise DataError(
            f"{lock}: cannot write here ({error.strerror}); set GYROFORMER_DATA to a folder you may write"
        ) from None
    with file:
        deadline = time.monotonic() + patience
        while not _try_lock(file):
            if time.monotonic() > deadline:
                raise DataError(f"{lock}: held by another process for over {patience:.0f} s; end that one")
            time.sleep(0.05)
        # the file stays: removing it would let a waiter lock a name that no longer exists
        yield


if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: BinaryIO) -> bool:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(file: BinaryIO) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
