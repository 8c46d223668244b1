"""What a parser hands over: the contents of the files, nothing dropped yet."""

import dataclasses as dc
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gyroformer.errors import DataError

Int = NDArray[np.int64]


@dc.dataclass(frozen=True, kw_only=True)
class Parsed:
    """A labelled graph as its files list it; ends and rows that do not fit raise a DataError.

    Attributes:
        origin: the file that lists the edges, for messages.
        source: first node of each listed edge, positions from 0.
        target: second node of each listed edge.
        x: features, one row a node; an array or a scipy sparse matrix.
        y: labels.
        ids: the nodes' own names, where the files have any.
        symmetric: True if the set is usually published with both directions of each edge and no loops.
        public: the masks ``train``, ``val``, ``test`` that come with the set.
    """

    origin: Path
    source: Int
    target: Int
    x: NDArray[np.floating] | sparse.csr_array
    y: Int
    ids: Int | None = None
    symmetric: bool = False
    public: dict[str, NDArray[np.bool_]] | None = None

    def __post_init__(self) -> None:
        nodes = self.y.size
        for ends in (self.source, self.target):
            wrong = np.flatnonzero((ends < 0) | (ends >= nodes))
            if wrong.size:
                place = int(wrong[0])
                raise DataError(
                    f"{self.origin}: edge {place} ends at node {ends[place]}, but nodes are numbered "
                    f"0 to {nodes - 1}; get the file anew"
                )
        if self.x.shape[0] != nodes:
            raise DataError(f"{self.origin}: {self.x.shape[0]} rows of features for {nodes} labels")

    def published_edges(self) -> tuple[Int, Int]:
        """Return the distinct ordered pairs that the usual edge list of this set has."""
        source, target = self.source, self.target
        if self.symmetric:
            apart = source != target
            source, target = source[apart], target[apart]
            source, target = np.concatenate([source, target]), np.concatenate([target, source])
        pairs = np.unique(source * np.int64(self.y.size) + target)
        return pairs // self.y.size, pairs % self.y.size

    def homophily(self) -> float:
        """Return the share of the published edges whose two ends have the same label."""
        source, target = self.published_edges()
        if not source.size:
            raise DataError(f"{self.origin}: no edge is listed, so there is no homophily")
        return float(np.mean(self.y[source] == self.y[target]))
