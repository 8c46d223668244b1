"""NumPy archives (.npz), never unpickled, each array's header checked against the bytes that are there."""

import math
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from gyroformer.errors import DataError
from gyroformer.untrusted import check_regular

Arrays = dict[str, np.ndarray]

_DEFLATE_RATIO = 1100  # deflate cannot pack better than 1032 to 1, so a larger promise is a lie
_NPY = ".npy"
#: what zipfile, zlib and numpy raise on damaged bytes
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, KeyError),
    *(ValueError, SyntaxError, TypeError, OverflowError, tokenize.TokenError),
)


def read_arrays(
    path: Path,
    names: Sequence[str] | None = None,
    *,
    error: type[DataError] = DataError,
    advice: str = "save it again with numpy.savez",
) -> Arrays:
    """Return the arrays of an .npz file by name.

    Args:
        path: the file.
        names: the arrays to read, all of which must be there; others are not touched. By default all.
        error: what to raise: ``CorruptFileError`` for a file that this package wrote.
        advice: what the message tells the reader to do about a damaged file.

    Raises:
        DataError: (or ``error``) in one line, if the file cannot be opened, is no archive or is damaged, or if an
            array to be read is missing, pickled, or larger than the bytes it has.
    """
    check_regular(path, error=error)
    try:
        with path.open("rb") as file:
            if file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
                raise error(f"{path}: a single array, not an archive: {advice}")
            file.seek(0)
            with zipfile.ZipFile(file) as archive:
                members = {member.filename.removesuffix(_NPY): member for member in archive.infolist()}
                wanted = list(members) if names is None else names
                for name in wanted:
                    if name not in members:
                        shown = (one if one.isprintable() else repr(one) for one in sorted(members)[:12])
                        found = ", ".join(shown) or "nothing"
                        raise error(f"{path}: has no array {name!r}, only {found}: {advice}")
                return {name: _read_member(archive, members[name]) for name in wanted}
    except error:
        raise
    except OSError as reason:
        raise error(
            f"{path}: cannot be read ({reason.strerror or reason}): check the path and its permissions"
        ) from None
    except _DAMAGE as reason:
        words = (str(reason).splitlines() or [type(reason).__name__])[0]
        raise error(f"{path}: not a valid NumPy archive ({words}): {advice}") from None


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """Return one array; what its header promises is compared with the bytes packed before it is allocated."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{member.filename} is compressed by a method that numpy does not use")
    if member.file_size > _DEFLATE_RATIO * member.compress_size + 1024:
        raise ValueError(f"{member.filename} declares more bytes than its compressed data can hold")
    with archive.open(member) as file:
        version = npy.read_magic(file)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read_header(file)
    if dtype.hasobject:
        raise ValueError(f"{member.filename} is pickled, which can run code; only numbers and text are read")
    if math.prod(shape) * dtype.itemsize > member.file_size:
        raise ValueError(
            f"{member.filename} claims the shape {shape}, more than its {member.file_size} bytes hold"
        )
    with archive.open(member) as file:
        array: np.ndarray = npy.read_array(file, allow_pickle=False)
        file.read(1)  # zipfile compares the checksum when it meets the end
    return array
