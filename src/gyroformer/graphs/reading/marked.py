"""Nodes and edges as GraphML and GML declare them: nodes one by one, edges by the names of their ends."""

import math
from pathlib import Path

import numpy as np

from gyroformer.errors import DataError
from gyroformer.graphs.listing import Listing
from gyroformer.graphs.reading.lines import located, quoted
from gyroformer.graphs.reading.names import check_max_nodes, plain_names


class MarkedGraph:
    """Collects declarations; an edge may come before the nodes it joins."""

    def __init__(self, path: Path, max_nodes: int) -> None:
        self._path, self._max_nodes = path, max_nodes
        self._indices: dict[str, int] = {}
        self._ends: list[str] = []
        self._lines: list[int] = []
        self._weights: dict[int, float] = {}
        self.default_weight = 1.0  # NetworkX's meaning of an edge without a weight among weighted ones

    def add_node(self, name: str, line: int) -> None:
        """Declare a node."""
        if name in self._indices:
            raise located(
                self._path, line, f"a second node with the id {quoted(name)}: give each node its own"
            )
        self._indices[name] = len(self._indices)
        check_max_nodes(self._path, len(self._indices), self._max_nodes)

    def add_edge(self, source: str, target: str, line: int) -> None:
        """Declare an edge."""
        self._ends += (source, target)
        self._lines.append(line)

    def set_weight(self, value: float) -> None:
        """Give the last edge a weight."""
        self._weights[len(self._lines) - 1] = value

    def number(self, text: str, line: int) -> float:
        """Return a weight's text as a finite number."""
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise located(self._path, line, f"weight {quoted(text)} is not a finite number: write e.g. 0.5")
        return value

    def listing(self, labels: list[str] | None = None) -> Listing:
        """Return the graph, its nodes named by ``labels`` where given."""
        if not self._indices:
            raise DataError(
                f"{self._path}: no node is declared, so there is no graph: check what wrote the file"
            )
        ends = np.array([self._indices.get(name, -1) for name in self._ends], dtype=np.int64)
        if (ends < 0).any():
            wrong = int(np.flatnonzero(ends < 0)[0])
            raise located(
                self._path,
                self._lines[wrong // 2],
                f"an edge ends at {quoted(self._ends[wrong])}, which is not a declared node: declare it",
            )
        weight = None
        if self._weights:
            weight = np.full(len(self._lines), self.default_weight)
            weight[list(self._weights)] = list(self._weights.values())
        names = list(self._indices) if labels is None else labels
        return Listing(ends[0::2], ends[1::2], plain_names([name.encode("utf-8") for name in names]), weight)
