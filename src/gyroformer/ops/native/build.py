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

from gyroformer.cache import check_own, make_private, user_cache
from gyroformer.durable import move_into_place, sha256_of
from gyroformer.errors import GyroformerError
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


#: the process that loaded the kernels: a child that it forks has none of the threads that they count on
_loaded_by = 0


@functools.cache
def library() -> ctypes.CDLL | None:
    """Return the compiled kernels, building them if need be, or None if this machine cannot."""
    global _loaded_by
    if os.environ.get("GYROFORMER_NATIVE") == "0":
        return None
    compiler = find_compiler()
    if compiler is None:
        _log.warning("no C++ compiler found: layers run as plain torch, about three times slower on a CPU")
        return None
    try:
        found = ctypes.CDLL(str(_built(compiler)))
    except (OSError, subprocess.SubprocessError, GyroformerError) as error:
        said = getattr(error, "stderr", "") or str(error)
        _log.warning("the C++ kernels could not be built (%s); layers run as plain torch", said.strip()[:300])
        return None
    _loaded_by = os.getpid()
    return found


def used() -> str | None:
    """Return which kernels this process has used: their key, ``"none"`` if it has to do without; None if none yet."""
    if not library.cache_info().currsize:
        return None
    found = library()
    return "none" if found is None else Path(found._name).name.split("-")[1]


def threads() -> int:
    """Return the threads that a kernel may use: torch's, but one in a process that was forked with the kernels loaded.

    The threads of OpenMP do not survive a fork, and who waits for them waits for ever.
    """
    return torch.get_num_threads() if os.getpid() == _loaded_by else 1


def find_compiler() -> str | None:
    """Return the C++ compiler to use, None if there is none."""
    return os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")


def _built(compiler: str) -> Path:
    """Return the shared library for these sources, compiler and processor, compiled if it is not there.

    Its name ends in the checksum of its bytes, which are compared before they are loaded: code that a full disk or a
    bad one has changed would end the process, or never end.
    """
    version = _run([compiler, "--version"], patience=60)
    sources = [path.read_text(encoding="utf-8") for path in READ]
    key = hashlib.sha256("\0".join([*sources, *FLAGS, version, platform.machine(), _processor()]).encode())
    folder, stem = cache_folder(), f"kernels-{key.hexdigest()[:24]}"
    make_private(folder)
    for path in sorted(folder.glob(f"{stem}-*.so")):
        if path.name == _name(stem, path):
            check_own(path)
            return path
        _log.warning("%s: is damaged: the kernels are compiled again", path)
        path.unlink()
    return _compiled(compiler, folder, stem)


def _compiled(compiler: str, folder: Path, stem: str) -> Path:
    handle, name = tempfile.mkstemp(dir=folder, suffix=".part")
    os.close(handle)
    part = Path(name)
    try:
        _run([compiler, *FLAGS, *map(str, SOURCES), "-o", name], patience=PATIENCE)
        target = folder / _name(stem, part)
        part.chmod(0o700)  # by default a compiler asks the umask, which may let others write
        move_into_place(part, target)
    finally:
        part.unlink(missing_ok=True)
    return target


def _name(stem: str, path: Path) -> str:
    return f"{stem}-{sha256_of(path)[:32]}.so"


def _run(command: list[str], *, patience: float) -> str:
    """Return what a command says, in whatever encoding."""
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=True, timeout=patience
    )
    return done.stdout


def cache_folder() -> Path:
    """Return where compiled kernels are kept."""
    return user_cache() / "kernels"


def _processor() -> str:
    """Return the processor's features: ``-march=native`` code must not run on a lesser one."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor()
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line for line in lines if line.startswith("flags")), "")
