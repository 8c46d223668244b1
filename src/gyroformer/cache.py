"""Where this package keeps what it can make or fetch again."""

import os
import sys
from pathlib import Path

from gyroformer.errors import UsageError


def user_cache() -> Path:
    """Return this package's folder in the user's cache folder; it need not exist yet.

    That is ``$XDG_CACHE_HOME/gyroformer`` where the variable is set, else a folder in the platform's own.

    Raises:
        UsageError: if the user has no home folder and no variable names another one.
    """
    return _cache_root() / "gyroformer"


def _cache_root() -> Path:
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    # the XDG specification says that a relative path in this variable is to be ignored
    if chosen and Path(chosen).is_absolute():
        return Path(chosen)
    if sys.platform == "darwin":
        return _home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or _home() / "AppData" / "Local")
    return _home() / ".cache"


def _home() -> Path:
    try:
        home = Path.home()
    except RuntimeError:  # a user without an entry and without HOME, as in some containers
        home = Path()
    if not home.is_absolute():
        raise UsageError("no home folder is known: set HOME, or XDG_CACHE_HOME to an absolute path")
    return home
