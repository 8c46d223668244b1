"""Compile the C++ kernels at first use and keep the result in the user's cache.

Without a compiler, or with ``GYROFORMER_NATIVE=0``, the torch forms are used; ``gyroformer doctor`` says which.
"""

import ctypes
import functools
import hashlib
import logging
import math
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch

from gyroformer.cache import user_cache
from gyroformer.errors import UsageError
from gyroformer.ops.attention import feature_floor
from gyroformer.ops.lifted import REACH, least_cone

FOLDER = Path(__file__).parent
SOURCES = sorted(FOLDER.glob("*.cpp"))
#: everything that the compiled library depends on
READ = sorted([*SOURCES, *FOLDER.glob("*.hpp")])
CONSTANTS = {
    "SET_REACH": REACH,
    "SET_LEAST": least_cone(torch.float32),
    "SET_FLOOR": feature_floor(torch.float32),
    "SET_LOWEST": math.exp(feature_floor(torch.float32)) * (1 + 1e-6),
}
FLAGS = [
    *("-std=c++17", "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared"),
    # square roots and selections become vector instructions; nothing here gives up IEEE results
    *("-fno-math-errno", "-fno-trapping-math"),
    *(f"-D{name}={value!r}f" for name, value in CONSTANTS.items()),
]
#: seconds a compiler may take
PATIENCE = 300

_log = logging.getLogger(__name__)


@functools.cache
def library() -> ctypes.CDLL | None:
    """Return the compiled kernels, building them if need be, or None if this machine cannot."""
    if os.environ.get("GYROFORMER_NATIVE") == "0":
        return None
    compiler = find_compiler()
    if compiler is None:
        _log.warning("no C++ compiler found: layers run as plain torch, about three times slower on a CPU")
        return None
    try:
        return ctypes.CDLL(str(_built(compiler)))
    except (OSError, subprocess.SubprocessError, UsageError) as error:
        said = getattr(error, "stderr", "") or str(error)
        _log.warning("the C++ kernels could not be built (%s); layers run as plain torch", said.strip()[:300])
        return None


def used() -> str | None:
    """Return which kernels this process has used: their key, ``"none"`` if it has to do without; None if none yet."""
    if not library.cache_info().currsize:
        return None
    found = library()
    return "none" if found is None else Path(found._name).stem.removeprefix("kernels-")


def find_compiler() -> str | None:
    """Return the C++ compiler to use, None if there is none."""
    return os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")


def _built(compiler: str) -> Path:
    """Return the shared library for these sources, compiler and processor, compiled if it is not there."""
    version = subprocess.run(
        [compiler, "--version"], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    parts = [*(path.read_text() for path in READ), *FLAGS, version, platform.machine(), _processor()]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
    folder = cache_folder()
    target = folder / f"kernels-{key}.so"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, suffix=".part")
        os.close(handle)
        try:
            command = [compiler, *FLAGS, *map(str, SOURCES), "-o", name]
            subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
            Path(name).replace(target)
        finally:
            Path(name).unlink(missing_ok=True)
    return target


def cache_folder() -> Path:
    """Return where compiled kernels are kept."""
    return user_cache() / "native"


def _processor() -> str:
    """Return the processor's features: ``-march=native`` code must not run on a lesser one."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor()
    return next((line for line in info.read_text().splitlines() if line.startswith("flags")), "")
