"""Files that anybody may have made: only regular ones are opened, and JSON is bounded in size and depth."""

import json
import stat
from pathlib import Path
from typing import Any

from gyroformer.errors import CorruptFileError, DataError

#: bytes of the largest JSON file that is read, and how deep it may be nested; a run of 10⁸ labels has less
MAX_JSON, MAX_DEPTH = 256 << 20, 50
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def check_regular(path: Path, *, error: type[DataError] = DataError) -> int:
    """Return the size of a file; raise if it is none: a pipe without a writer is waited for without end."""
    try:
        found = path.stat()
    except FileNotFoundError:
        raise error(f"{path}: is missing") from None
    except (OSError, ValueError) as reason:  # ValueError: a name with a zero byte
        raise error(f"{path}: cannot be read ({getattr(reason, 'strerror', None) or reason})") from None
    if not stat.S_ISREG(found.st_mode):
        kind = KINDS.get(stat.S_IFMT(found.st_mode), "no file")
        raise error(f"{path}: is {kind}, not a regular file: give a file")
    return found.st_size


def read_json(
    path: Path, *, error: type[DataError] = CorruptFileError, infinite: bool = False
) -> dict[str, Any]:
    """Return the object in a JSON file; ``error`` if there is none, or one that no program of ours writes.

    Args:
        path: the file.
        error: what to raise.
        infinite: whether ``Infinity`` and ``NaN``, which Python writes and JSON does not know, are read.
    """
    size = check_regular(path, error=error)
    if size > MAX_JSON:
        raise error(f"{path}: has {size} bytes, more than the {MAX_JSON} that are read")
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=None if infinite else _refuse)
    except (OSError, ValueError, RecursionError) as reason:
        raise error(f"{path}: cannot be read ({reason})") from None
    if not isinstance(content, dict):
        raise error(f"{path}: is not a JSON object")
    if not _is_shallow(content):
        raise error(f"{path}: is nested deeper than {MAX_DEPTH} levels")
    return content


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _is_shallow(content: Any) -> bool:
    """Return whether ``content`` is nested at most ``MAX_DEPTH`` levels deep; without recursion."""
    level = [content]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return True
    return False
