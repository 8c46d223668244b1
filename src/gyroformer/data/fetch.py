"""Bring the files of a data set into the data folder, from their addresses or from an archive."""

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from gyroformer.data.archive import unpack
from gyroformer.data.download import download
from gyroformer.data.registry import get_spec
from gyroformer.data.spec import DatasetSpec, FileSpec
from gyroformer.data.state import missing_files, used_files
from gyroformer.durable import make_folder, move_into_place, sha256_of
from gyroformer.errors import DataError

Report = Callable[[str, int], None]


def fetch(
    name: str, folder: Path, *, offline: bool = False, report: Report | None = None, **transfer: object
) -> list[str]:
    """Download the files of ``name`` that are missing in ``folder``; return their paths.

    Args:
        name: a data set.
        folder: the data folder; files that are there are left alone.
        offline: raise instead of using the network.
        report: called with a path and the number of bytes that just came.
        transfer: further arguments of :func:`~gyroformer.data.download.download`.
    """
    spec = get_spec(name)
    missing = missing_files(used_files(spec, folder), folder)
    if any(not file.urls for file in missing):
        raise DataError(
            f"{name}: no pinned download, because the copy whose checksum is known was made from the public one; "
            f"{spec.by_hand}"
        )
    for file in missing:
        _fetch_file(file, folder, offline=offline, report=report, **transfer)
    return [file.path for file in missing]


def _fetch_file(
    file: FileSpec, folder: Path, *, offline: bool, report: Report | None, **transfer: object
) -> None:
    def progress(count: int) -> None:
        if report:
            report(file.path, count)

    download(
        file.urls,
        folder / file.path,
        sha256=file.sha256,
        size=file.size,
        offline=offline,
        progress=progress,
        **transfer,  # type: ignore[arg-type]
    )


def take_from(archive: Path, names: Iterable[str], folder: Path) -> list[str]:
    """Take the files of the data sets ``names`` out of a tar or zip archive; return the paths taken.

    Members may lie in any folder of the archive as long as their path ends as it does in the data folder.
    Each must have the checksum that is known for it; files that are there are left alone.
    """
    wanted = {file.path: file for name in names for file in _all_files(get_spec(name))}
    make_folder(folder)
    taken = []
    with tempfile.TemporaryDirectory(dir=folder, prefix=".unpack-") as scratch:
        for member in unpack(archive, Path(scratch), wanted=lambda path: _ends(path, wanted) is not None):
            file = wanted[_ends(member.relative_to(scratch).as_posix(), wanted) or ""]
            found = sha256_of(member)
            if found != file.sha256:
                raise DataError(f"{archive}: {file.path} has sha256 {found}, expected {file.sha256}")
            target = folder / file.path
            if not target.exists():
                make_folder(target.parent)
                move_into_place(member, target)
                taken.append(file.path)
    return sorted(taken)


def _all_files(spec: DatasetSpec) -> tuple[FileSpec, ...]:
    return (*spec.files, *spec.instead)


def _ends(path: str, wanted: dict[str, FileSpec]) -> str | None:
    """Return the wanted path that ``path`` ends with, at a folder's border."""
    parts = path.split("/")
    tails = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((tail for tail in tails if tail in wanted), None)
