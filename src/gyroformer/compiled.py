"""Compile C++ kernels at first use and keep the result in the user's cache.

Without a compiler, or with ``GYROFORMER_NATIVE=0``, the torch forms are used; ``gyroformer doctor`` says which.
"""

import contextlib
import ctypes
import functools
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from gyroformer.cache import check_own, make_private, user_cache
from gyroformer.durable import move_into_place, sha256_of
from gyroformer.errors import GyroformerError

FLAGS = [
    *("-std=c++17", "-O3", "-march=native", "-fopenmp", "-fPIC"),
    # square roots and selections become vector instructions; nothing here gives up IEEE results
    *("-fno-math-errno", "-fno-trapping-math"),
]
#: seconds a compiler may take
PATIENCE = 300

_log = logging.getLogger(__name__)

#: the process that loaded the kernels: a child that it forks has none of the threads that they count on
_loaded_by = 0
_switched_off = False


class Kernels:
    """The C++ sources of one folder as a library that is compiled at first use.

    Args:
        folder: where the sources are; all of them make one library.
        constants: names that the sources read, and their values.
    """

    def __init__(self, folder: Path, constants: Mapping[str, float] | None = None) -> None:
        self.sources = sorted(folder.glob("*.cpp"))
        #: everything that the compiled library depends on
        self.read = sorted([*self.sources, *folder.glob("*.hpp")])
        self.flags = [*FLAGS, *(f"-D{name}={value!r}f" for name, value in (constants or {}).items())]
        self.library = functools.cache(self.load)
        _every.append(self)

    def load(self) -> ctypes.CDLL | None:
        """Return the compiled kernels, building them if need be, or None if this machine cannot."""
        global _loaded_by
        if os.environ.get("GYROFORMER_NATIVE") == "0":
            return None
        compiler = find_compiler()
        if compiler is None:
            _say_once(
                "no C++ compiler found: layers and geometry run as plain torch, several times slower on a CPU"
            )
            return None
        try:
            found = ctypes.CDLL(str(self.built(compiler)))
        except (OSError, subprocess.SubprocessError, GyroformerError) as error:
            said = (getattr(error, "stderr", "") or str(error)).strip()[:300]
            _say_once(f"the C++ kernels could not be built ({said}); layers and geometry run as plain torch")
            return None
        _loaded_by = os.getpid()
        return found

    def key(self) -> str:
        """Return what names the kernels that are in use, ``"none"`` if there are none."""
        found = self.library()
        return "none" if found is None else Path(found._name).name.split("-")[1]

    def built(self, compiler: str) -> Path:
        """Return the shared library for these sources, compiler and processor, compiled if it is not there.

        Its name ends in the checksum of its bytes, which are compared before they are loaded: code that a full disk or
        a bad one has changed would end the process, or never end.
        """
        version = _run([compiler, "--version"], patience=60)
        sources = [path.read_text(encoding="utf-8") for path in self.read]
        parts = [*sources, *self.flags, version, platform.machine(), _processor()]
        key = hashlib.sha256("\0".join(parts).encode())
        folder, stem = cache_folder(), f"kernels-{key.hexdigest()[:24]}"
        make_private(folder)
        for path in sorted(folder.glob(f"{stem}-*.so")):
            if path.name == _name(stem, path):
                check_own(path)
                return path
            _log.warning("%s: is damaged: the kernels are compiled again", path)
            path.unlink()
        return self.compile(compiler, folder, stem)

    def compile(self, compiler: str, folder: Path, stem: str) -> Path:
        """Return the library, compiled into ``folder``: source by source, as many at a time as there are cores."""
        _say_once("compiling C++ kernels, once on this machine: a minute or so", logging.INFO)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            objects = [str(Path(scratch) / f"{source.stem}.o") for source in self.sources]
            command = [compiler, *self.flags]
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                jobs = [
                    pool.submit(_run, [*command, "-c", str(source), "-o", to], patience=PATIENCE)
                    for source, to in zip(self.sources, objects, strict=True)
                ]
            for job in jobs:
                job.result()
            part = Path(scratch) / "library.so"
            _run([*command, "-shared", *objects, "-o", str(part)], patience=PATIENCE)
            part.chmod(0o700)  # by default a compiler asks the umask, which may let others write
            target = folder / _name(stem, part)
            move_into_place(part, target)
        return target


_every: list[Kernels] = []


def used() -> str | None:
    """Return which kernels this process uses: their keys, ``"none"`` if it has to do without; None if none yet."""
    if not any(kernels.library.cache_info().currsize for kernels in _every):
        return None
    keys = [kernels.key() for kernels in _every]
    return "none" if set(keys) == {"none"} else "-".join(keys)


def make_ready() -> None:
    """Load every library, compiled if need be: who times or watches what comes next should not wait for that."""
    for kernels in _every:
        kernels.library()


def threads() -> int:
    """Return the threads that a kernel may use: torch's, but one in a process that was forked with kernels loaded.

    The threads of OpenMP do not survive a fork, and who waits for them waits for ever.
    """
    return torch.get_num_threads() if os.getpid() == _loaded_by else 1


@contextlib.contextmanager
def torch_forms() -> Iterator[None]:
    """Use the torch forms inside the block, everywhere."""
    global _switched_off
    before, _switched_off = _switched_off, True
    try:
        yield
    finally:
        _switched_off = before


def switched_off() -> bool:
    """Return whether :func:`torch_forms` is at work."""
    return _switched_off


def find_compiler() -> str | None:
    """Return the C++ compiler to use, None if there is none."""
    return os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")


def cache_folder() -> Path:
    """Return where compiled kernels are kept."""
    return user_cache() / "kernels"


@functools.cache
def _say_once(message: str, level: int = logging.WARNING) -> None:
    """Say something once a process: there are several libraries, and what is true of one is of all."""
    _log.log(level, message)


def _name(stem: str, path: Path) -> str:
    return f"{stem}-{sha256_of(path)[:32]}.so"


def _run(command: list[str], *, patience: float) -> str:
    """Return what a command says, in whatever encoding."""
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", check=True, timeout=patience
    )
    return done.stdout


def _processor() -> str:
    """Return the processor's features: ``-march=native`` code must not run on a lesser one."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor()
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line for line in lines if line.startswith("flags")), "")
