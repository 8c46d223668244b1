"""Which files of a data set are there."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from gyroformer.data.registry import get_spec
from gyroformer.data.spec import DatasetSpec, FileSpec
from gyroformer.errors import DataError

State = Literal["ready", "no splits", "incomplete", "absent", "by hand"]


def used_files(spec: DatasetSpec, folder: Path) -> tuple[FileSpec, ...]:
    """Return the files that are read in ``folder``: those of ``instead`` if they are there."""
    if spec.instead and not missing_files(spec.instead, folder):
        return spec.instead
    return spec.files


def state_of(name: str, folder: Path) -> State:
    """Return what can be done with a data set: use it, fetch it, or get it by hand."""
    spec = get_spec(name)
    files = used_files(spec, folder)
    missing = missing_files(files, folder)
    if not missing:
        return "ready"
    if not any(file.needed for file in missing):
        return "no splits"
    if not spec.fetchable:
        return "by hand"
    return "absent" if len(missing) == len(files) else "incomplete"


def needed_paths(name: str, folder: Path) -> list[Path]:
    """Return where the needed files of a data set are; if one is missing, say what to do."""
    spec = get_spec(name)
    files = [file for file in used_files(spec, folder) if file.needed]
    missing = missing_files(files, folder)
    if missing:
        cure = f"run gyroformer datasets {name} --fetch" if spec.fetchable else spec.by_hand
        raise DataError(f"{folder / missing[0].path}: not found; {cure}")
    return [folder / file.path for file in files]


def missing_files(files: Sequence[FileSpec], folder: Path) -> list[FileSpec]:
    """Return those of ``files`` that are not in ``folder``."""
    return [file for file in files if not (folder / file.path).is_file()]
