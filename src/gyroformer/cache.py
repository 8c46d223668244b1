"""Where this package keeps what it can make or fetch again."""

import os
import stat
import sys
from pathlib import Path

from gyroformer.errors import DataError, UsageError


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


def make_private(folder: Path) -> None:
    """Make a folder, with its parents, that only this user can change, and raise if another could.

    What is loaded from it runs with the user's rights.

    Raises:
        DataError: the folder belongs to another user or can be written by others, or cannot be made.
    """
    try:
        for one in [*reversed(folder.parents), folder]:
            if not one.is_dir():
                one.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot be created ({error.strerror}); set XDG_CACHE_HOME") from None
    check_own(folder)
    for parent in folder.resolve().parents:
        mode = parent.stat().st_mode
        if os.name == "posix" and mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise DataError(
                f"{parent}: anybody can put another folder in place of {folder}; chmod o-w it, or set XDG_CACHE_HOME"
            )


def check_own(path: Path) -> None:
    """Raise unless a file or folder belongs to this user and nobody else can write it."""
    if os.name != "posix":  # elsewhere the user's cache folder has an access list of its own
        return
    found = path.lstat()
    if found.st_uid != os.geteuid():
        raise DataError(
            f"{path}: belongs to another user, whose code would run; set XDG_CACHE_HOME to a folder of yours"
        )
    if stat.S_ISLNK(found.st_mode) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise DataError(f"{path}: others can write it, and their code would run; chmod go-w it, or remove it")
