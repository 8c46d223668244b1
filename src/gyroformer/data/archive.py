"""Unpack tar and zip archives that nobody has vouched for.

The whole table of contents is judged before a byte is written: a member that would land outside the
folder, a link or device, an encrypted one, or contents out of proportion to the archive's size refuse it.
"""

import lzma
import os
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from gyroformer.errors import DataError
from gyroformer.untrusted import check_regular

MAX_BYTES = 1 << 30
MAX_RATIO = 200
MAX_MEMBERS = 100_000

#: what tarfile, zipfile and the decompressors raise on damaged bytes, or on a method that they do not know
_DAMAGE = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, struct.error),
    *(NotImplementedError, RuntimeError, ValueError, OverflowError, IndexError),
)

#: one member: its path, its length, and how to open it
Member = tuple[str, int, Callable[[], IO[bytes]]]


def unpack(
    archive: Path,
    folder: Path,
    *,
    wanted: Callable[[str], bool] = lambda _: True,
    max_bytes: int = MAX_BYTES,
    max_ratio: float = MAX_RATIO,
) -> list[Path]:
    """Write the wanted files of ``archive`` under ``folder`` and return their paths.

    Args:
        archive: a zip file, or a tar file of any compression that Python knows.
        folder: where to write; it must exist.
        wanted: says by its path in the archive whether a file is to be written.
        max_bytes: refuse more than this in all.
        max_ratio: refuse contents that are more than this many times as large as the archive.
    """
    limit = min(max_bytes, int(max_ratio * check_regular(archive)))
    written = []
    with _members(archive, folder, limit) as members:
        total = sum(size for _, size, _ in members)
        if total > limit or len(members) > MAX_MEMBERS:
            raise DataError(
                f"{archive}: refused: {len(members)} files of {total} bytes in an archive of "
                f"{archive.stat().st_size}, over the limit of {limit}"
            )
        for name, size, open_member in members:
            if wanted(name):
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with open_member() as source, target.open("xb") as out:
                    _copy(source, out, size, f"{archive}: {name}")
                written.append(target)
    return written


@contextmanager
def _members(archive: Path, folder: Path, limit: int) -> Iterator[list[Member]]:
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as zipped:
                yield _zip_members(zipped, archive)
        else:
            with tarfile.open(archive) as tarred:
                yield _tar_members(tarred, archive, folder, limit)
    except DataError:
        raise
    except _DAMAGE as error:
        # tarfile lists every format that it tried, one a line
        raise DataError(f"{archive}: cannot be unpacked: {' '.join(str(error).split())}") from None


def _tar_members(tarred: tarfile.TarFile, archive: Path, folder: Path, limit: int) -> list[Member]:
    members: list[Member] = []
    total = 0
    for entry in tarred:
        _check_name(entry.name, archive)
        tarfile.data_filter(entry, os.fspath(folder))  # the standard library's own judgement
        if entry.isdir():
            continue
        if not entry.isfile() or entry.issparse():
            raise DataError(
                f"{archive}: refused: {entry.name!r} is a link, a device or sparse, not a plain file"
            )
        members.append((entry.name, entry.size, _tar_opener(tarred, entry)))
        total += entry.size
        # to find the next header all of this file would be decompressed: stop at the first that is too much
        if total > limit or len(members) > MAX_MEMBERS:
            break
    return members


def _tar_opener(tarred: tarfile.TarFile, entry: tarfile.TarInfo) -> Callable[[], IO[bytes]]:
    def open_member() -> IO[bytes]:
        source = tarred.extractfile(entry)
        assert source is not None  # entry.isfile() was seen
        return source

    return open_member


def _zip_members(zipped: zipfile.ZipFile, archive: Path) -> list[Member]:
    members: list[Member] = []
    for entry in zipped.infolist():
        # the name as stored: zipfile itself already turns backslashes into slashes on Windows only
        _check_name(entry.orig_filename, archive)
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise DataError(f"{archive}: refused: {entry.filename!r} is a link or a device, not a file")
        if entry.flag_bits & 1:
            raise DataError(f"{archive}: refused: {entry.filename!r} is encrypted")
        if not entry.is_dir():
            members.append((entry.filename, entry.file_size, _zip_opener(zipped, entry)))
    return members


def _zip_opener(zipped: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    return lambda: zipped.open(entry)


def _check_name(name: str, archive: Path) -> None:
    """Refuse a path that is absolute or climbs, read as any system would read it."""
    windows = PureWindowsPath(name)
    climbs = ".." in windows.parts or ".." in PurePosixPath(name).parts
    if (
        climbs
        or windows.drive
        or windows.root
        or name.startswith("/")
        or "\0" in name
        or "\\" in name
        or not name
    ):
        raise DataError(f"{archive}: refused: {name!r} would land outside the folder")


def _copy(source: IO[bytes], out: IO[bytes], size: int, what: str) -> None:
    shutil.copyfileobj(_Bounded(source, size, what), out)


class _Bounded:
    """A reader that stops where the table of contents said that the file ends."""

    def __init__(self, source: IO[bytes], size: int, what: str) -> None:
        self.source, self.left, self.what = source, size, what

    def read(self, count: int = -1) -> bytes:
        block = self.source.read(min(count if count >= 0 else self.left, self.left) or 1)
        if len(block) > self.left:
            raise DataError(f"{self.what}: holds more than its entry says")
        self.left -= len(block)
        return block
