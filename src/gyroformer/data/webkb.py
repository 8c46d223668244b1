"""Texas, Cornell, Wisconsin and Actor from the tables of the geom-gcn repository.

Two text files each, tab between fields, one header line: ``node, features, label`` and ``node, node``.
The features are 0/1 values for the three universities and numbers of words present for Actor.
"""

from pathlib import Path

import numpy as np

from gyroformer.data.homophily import homophily
from gyroformer.data.sources import FETCH_AGAIN
from gyroformer.durable import sha256_of
from gyroformer.errors import DataError
from gyroformer.graphs.adjacency import IntArray
from gyroformer.graphs.listing import Listing

NODES, EDGES = "out1_node_feature_label.txt", "out1_graph_edges.txt"

#: the node table of Texas: until 2022 the table given out for Cornell was a copy of it
_TEXAS_NODES = "cf5a3ca346cdd1210b8342e22517fcbbdae658065b7a3145f59350e50e6236a3"
_OLD_CORNELL_HOMOPHILY = 0.305


def read_webkb(folder: Path, *, name: str) -> Listing:
    """Return one of the WebKB graphs; Cornell with the nodes of Texas is refused."""
    listing = _read(folder, words=False)
    found = homophily(listing, both_ways=False)
    if name == "cornell" and (
        sha256_of(folder / NODES) == _TEXAS_NODES or round(found, 3) == _OLD_CORNELL_HOMOPHILY
    ):
        raise DataError(
            f"{folder / NODES}: this is the table of Texas, as in copies of Cornell made before July 2022 "
            f"(homophily {found:.3f} instead of 0.131); remove both out1_*.txt files there "
            "and run gyroformer datasets cornell --fetch"
        )
    return listing


def read_actor(folder: Path) -> Listing:
    """Return the Actor graph; its features are word numbers, made into 0/1 columns."""
    return _read(folder, words=True)


def _read(folder: Path, *, words: bool) -> Listing:
    nodes, features, labels = _node_table(folder / NODES)
    count = len(nodes)
    if sorted(nodes) != list(range(count)):
        raise DataError(f"{folder / NODES}: nodes must be numbered 0 to {count - 1}, each once")
    if not words and len({len(row) for row in features}) > 1:
        raise DataError(f"{folder / NODES}: rows have different numbers of features; {FETCH_AGAIN}")
    width = max(int(row.max()) for row in features) + 1 if words else len(features[0])
    x = np.zeros((count, width), dtype=np.float32)
    y = np.empty(count, dtype=np.int64)
    for node, row, label in zip(nodes, features, labels, strict=True):
        y[node] = label
        if words:
            x[node, row] = 1.0
        else:
            x[node] = row
    ends = np.array([row for _, row in _rows(folder / EDGES, fields=2)], dtype=np.int64).reshape(-1, 2)
    return Listing(ends[:, 0], ends[:, 1], range(count), x=x, y=y).checked(folder / EDGES)


def _node_table(path: Path) -> tuple[list[int], list[IntArray], list[int]]:
    nodes, features, labels = [], [], []
    for number, (node, listed, label) in _rows(path, fields=3):
        try:
            values = np.array(listed.split(","), dtype=np.int64)
        except ValueError:
            raise DataError(f"{path}:{number}: a feature is not an integer; {FETCH_AGAIN}") from None
        if values.min() < 0:
            raise DataError(f"{path}:{number}: a feature is negative; {FETCH_AGAIN}")
        nodes.append(int(node))
        features.append(values)
        labels.append(int(label))
    return nodes, features, labels


def _rows(path: Path, *, fields: int) -> list[tuple[int, list[str]]]:
    """Return (line number, fields) of the lines after the header; all but the feature field are numbers."""
    rows = []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines[1:], start=2):
        row = line.split("\t")
        if len(row) != fields or not (row[0].isdecimal() and row[-1].isdecimal()):
            raise DataError(
                f"{path}:{number}: expected {fields} fields with node numbers, found {line[:40]!r}"
            )
        rows.append((number, row))
    if not rows:
        raise DataError(f"{path}: no rows; {FETCH_AGAIN}")
    return rows
