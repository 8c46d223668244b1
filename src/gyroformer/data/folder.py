"""Where data sets live on this machine.

``GYROFORMER_DATA`` names the folder. Without it: this package's own in the user's cache folder. Nothing is
created by asking.
"""

import os
from pathlib import Path

from gyroformer.cache import user_cache
from gyroformer.errors import UsageError

VARIABLE = "GYROFORMER_DATA"
OFFLINE_VARIABLE = "GYROFORMER_OFFLINE"


def data_folder() -> Path:
    """Return the folder that data sets are read from and downloaded into; it need not exist yet."""
    named = os.environ.get(VARIABLE, "")
    if not named:
        return user_cache()
    try:
        folder = Path(named).expanduser()
    except RuntimeError as error:  # "~" without a home folder
        raise UsageError(f"{VARIABLE}={named}: {error} Set it to an absolute path") from None
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{VARIABLE} names a file, not a folder: {folder}; set it to a folder or unset it")
    return folder


def is_offline() -> bool:
    """Return True if ``GYROFORMER_OFFLINE`` forbids the network: any value but ``0`` and the empty one."""
    return os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0")
