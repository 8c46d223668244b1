"""What is known of a data set, and of each of its files, before it is read."""

import dataclasses as dc
from typing import Literal

from gyroformer.data.checksums import CHECKSUMS

Task = Literal["classification", "reconstruction"]
Family = Literal["planetoid", "webkb", "actor", "airport", "npz", "edges", "wordnet"]


@dc.dataclass(frozen=True, slots=True)
class FileSpec:
    """One file of a data set.

    Attributes:
        path: path under the data folder.
        urls: addresses that serve exactly these bytes, tried in turn; none: no pinned download.
        needed: False for a file that only one split reads.
    """

    path: str
    urls: tuple[str, ...] = ()
    needed: bool = True

    @property
    def sha256(self) -> str:
        """The checksum that the file must have."""
        return CHECKSUMS[self.path][0]

    @property
    def size(self) -> int:
        """The length in bytes that the file must have."""
        return CHECKSUMS[self.path][1]


@dc.dataclass(frozen=True, kw_only=True, slots=True)
class DatasetSpec:
    """What is known of a data set before it is read.

    Attributes:
        files: what the parser reads, the first ones first.
        instead: files that, where they are found, are read in place of ``files``.
        edges: distinct unordered pairs, self loops left out.
        listed_edges: columns of the edge list as usually published (``homophily`` is over these).
        homophily: fraction of the listed edges whose two ends have the same label, to three decimals.
        splits: names of the splits that fit this set, the default one first.
        feature_sets: names that ``load(..., features=NAME)`` knows, the default one first.
        by_hand: how to get the files that have no pinned download.
    """

    task: Task
    family: Family
    files: tuple[FileSpec, ...]
    instead: tuple[FileSpec, ...] = ()
    source: str
    licence: str
    nodes: int
    edges: int
    listed_edges: int | None = None
    features: int = 0
    classes: int = 0
    homophily: float | None = None
    splits: tuple[str, ...] = ()
    feature_sets: tuple[str, ...] = ()
    by_hand: str = ""
    note: str = ""

    @property
    def both_ways(self) -> bool:
        """True if the usual edge list has each edge in both directions, whatever the files list."""
        return self.family in ("planetoid", "npz")

    @property
    def default_split(self) -> str | None:
        """The split used when none is named."""
        return self.splits[0] if self.splits else None

    @property
    def fetchable(self) -> bool:
        """True if every needed file has an address with a pinned checksum."""
        return all(file.urls for file in self.files if file.needed)
