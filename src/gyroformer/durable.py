"""Files that are either whole or not there: checksums, locks, and the move into place.

A killed process leaves at most a ``.part`` and a ``.lock`` file; neither is ever read as data, and the
lock is the operating system's, so it dies with its holder.
"""

import hashlib
import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from gyroformer.errors import DataError, UsageError

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


@contextmanager
def claimed(lock: Path) -> Iterator[None]:
    """Hold ``lock`` while the block runs; if another process holds it, say at once which one."""
    try:
        file = lock.open("a+b")
    except OSError as error:
        raise DataError(
            f"{lock.parent}: cannot write here ({error.strerror}); choose another folder"
        ) from None
    with file:
        try:
            free = _try_lock(file)
        except OSError as error:
            raise DataError(f"{lock}: this file system knows no locks ({error.strerror})") from None
        if not free:
            raise UsageError(
                f"{lock.parent}: another run ({_holder(file)}) is writing here; wait for it, or choose another --out"
            )
        file.truncate(0)
        file.write(f"pid {os.getpid()}, host {platform.node()}".encode())
        file.flush()
        # the file stays, as in only_one
        yield


def _holder(file: BinaryIO) -> str:
    """Return what the holder of a lock wrote into it."""
    try:
        file.seek(0)
        return file.read(200).decode(errors="replace") or "pid unknown"
    except OSError:  # where a lock forbids reading too
        return "pid unknown"


def write_durably(path: Path, content: bytes) -> None:
    """Make ``path`` hold ``content``, whole and on the disk, or leave it as it was."""
    part = path.with_name(f"{path.name}.part")
    try:
        part.write_bytes(content)
        move_into_place(part, path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise


def check_target(path: Path, flag: str) -> None:
    """Raise unless a file can be written to ``path``, which ``flag`` names: better before the work than after it."""
    folder = path.absolute().parent
    if path.is_dir():
        raise UsageError(f"{flag} {path}: is a folder; name a file")
    if not folder.is_dir():
        raise UsageError(f"{flag} {path}: the folder {folder} does not exist")
    if path.exists() and not path.is_file():
        raise UsageError(f"{flag} {path}: is a device or a pipe, and would be replaced; name a file")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"{flag} {path}: the folder {folder} cannot be written")


def write_output(path: Path, content: bytes) -> None:
    """Make ``path``, which a user named, hold ``content``; DataError if that cannot be."""
    try:
        write_durably(path, content)
    except (OSError, ValueError) as error:  # ValueError: a path without a name
        raise DataError(f"{path}: cannot be written ({getattr(error, 'strerror', None) or error})") from None


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
