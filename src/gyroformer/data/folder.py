"""Where data sets live on this machine.

``GYROFORMER_DATA`` names the folder. Without it: the user's cache folder (``XDG_CACHE_HOME`` where it is
set, else the platform's own). Nothing is created by asking.
"""

import os
import sys
from pathlib import Path

from gyroformer.errors import UsageError

VARIABLE = "GYROFORMER_DATA"
OFFLINE_VARIABLE = "GYROFORMER_OFFLINE"


def data_folder() -> Path:
    """Return the folder that data sets are read from and downloaded into; it need not exist yet."""
    named = os.environ.get(VARIABLE, "")
    if not named:
        return _cache_folder() / "gyroformer"
    folder = Path(named).expanduser()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{VARIABLE} names a file, not a folder: {folder}; set it to a folder or unset it")
    return folder


def is_offline() -> bool:
    """Return True if ``GYROFORMER_OFFLINE`` forbids the network: any value but ``0`` and the empty one."""
    return os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0")


def _cache_folder() -> Path:
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    # the XDG standard says that a relative path in this variable is to be ignored
    if chosen and Path(chosen).is_absolute():
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path.home() / ".cache"
