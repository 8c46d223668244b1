"""Arrays out of npz files, never through a pickle."""

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gyroformer.errors import DataError


def read_arrays(path: Path, names: Sequence[str]) -> list[np.ndarray]:
    """Return the arrays ``names`` of an npz file; others in it are not touched."""
    try:
        # opened here, because numpy leaves its own handle open when the file turns out to be broken
        with path.open("rb") as file:
            held = np.load(file, allow_pickle=False)
            if not isinstance(held, np.lib.npyio.NpzFile):
                raise DataError(f"{path}: a single array, not an npz file")
            return [held[name] for name in names]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: no npz file with {', '.join(names)} ({error}); get the file anew") from None
