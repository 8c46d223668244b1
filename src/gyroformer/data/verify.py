"""Compare the files of a data set, and what is in them, with the registry."""

import dataclasses as dc
from pathlib import Path

from gyroformer.data.edge_lists import read_edges
from gyroformer.data.homophily import homophily, published_edges
from gyroformer.data.load import parse
from gyroformer.data.registry import get_spec
from gyroformer.data.spec import DatasetSpec
from gyroformer.data.state import needed_paths, used_files
from gyroformer.durable import sha256_of
from gyroformer.errors import DataError

COUNTS = ("nodes", "edges", "listed_edges", "features", "classes")
#: the registry has three decimals; the rest is room for the last bit
HOMOPHILY_TOLERANCE = 0.0005 + 1e-9

Number = int | float | None


@dc.dataclass(frozen=True, slots=True)
class Verdict:
    """What was measured, what of it differs from the registry, and what is merely worth saying."""

    name: str
    measured: dict[str, Number]
    differences: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True if nothing differs."""
        return not self.differences


def verify(name: str, folder: Path) -> Verdict:
    """Return how the data set ``name`` in ``folder`` compares with the registry.

    A file that differs from its pinned checksum is a difference; one that has no pinned download may be another
    copy of the same contents, so there only the contents count and the checksum is a note.
    """
    spec = get_spec(name)
    differences, notes = _check_checksums(spec, folder)
    try:
        measured = measure(name, folder)
    except DataError as error:
        return Verdict(name, {}, (*differences, str(error)), tuple(notes))
    differences += _compare(spec, measured)
    return Verdict(name, measured, tuple(differences), tuple(notes))


def measure(name: str, folder: Path) -> dict[str, Number]:
    """Return the counts and the homophily of a data set, read from its files."""
    paths = needed_paths(name, folder)
    spec = get_spec(name)
    if spec.task == "reconstruction":
        data = read_edges(paths[0])
        return {"nodes": data.summary.nodes, "edges": data.summary.edges}
    listing = parse(name, paths)
    features = listing.x.shape[1]
    listing.x = None  # as the dense table of a graph it can take a gigabyte
    data = listing.graph(directed=False)
    return {
        "nodes": data.summary.nodes,
        "edges": data.summary.edges,
        "listed_edges": published_edges(listing, both_ways=spec.both_ways)[0].size,
        "features": features,
        "classes": len(set(data.y.tolist())),
        "homophily": homophily(listing, both_ways=spec.both_ways),
    }


def _check_checksums(spec: DatasetSpec, folder: Path) -> tuple[list[str], list[str]]:
    differences: list[str] = []
    notes: list[str] = []
    used = used_files(spec, folder)
    for file in (*spec.files, *spec.instead):
        path = folder / file.path
        if not path.is_file():
            if file in used and not file.needed:
                notes.append(f"{file.path}: not found (a stored split)")
        elif sha256_of(path) != file.sha256:
            known = "from the pinned one" if file.urls else "from the copy known here"
            (differences if file.urls else notes).append(f"{file.path}: sha256 differs {known}")
    return differences, notes


def _compare(spec: DatasetSpec, measured: dict[str, Number]) -> list[str]:
    differences = []
    for key in COUNTS:
        if key in measured and measured[key] != getattr(spec, key):
            differences.append(f"{key}: expected {getattr(spec, key)}, found {measured[key]}")
    found = measured.get("homophily")
    if spec.homophily is not None and (found is None or abs(found - spec.homophily) > HOMOPHILY_TOLERANCE):
        differences.append(f"homophily: expected {spec.homophily:.3f}, found {found}")
    return differences
