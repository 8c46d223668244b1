"""Airport: the flights between 3188 airports, from the plain npz or from HGCN's pickle.

Both give the same graph: ``x`` is latitude/90, longitude/180, altitude in feet/3000 and log10(GDP of the
country)/7; the label is the country's population in four bins, cut at 1e7, 1e8 and 1e9. The feature set
``hgcn`` is what HGCN feeds its model: ``x`` with rows summing to one, the degree up to 5 as one of six, and
a constant 1.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gyroformer.arrays import read_arrays
from gyroformer.data.old_pickles import COLLECTIONS, NETWORKX, Shell, is_node, unpickle
from gyroformer.data.sources import FETCH_AGAIN
from gyroformer.errors import DataError
from gyroformer.graphs.adjacency import IntArray
from gyroformer.graphs.listing import Listing
from gyroformer.graphs.reading.npz import listing_of

FEATURES = 4
POPULATION_BINS = (7 / 7, 8 / 7, 9 / 7)  # log10 of the population, over 7
LARGEST_DEGREE = 5


def read_airport(path: Path, *, features: str = "raw") -> Listing:
    """Return the graph in ``path``: a ``.npz`` or the pickle ``airport.p``, which runs no code here."""
    read = _from_npz if path.suffix == ".npz" else _from_pickle
    return read(path, hgcn=features == "hgcn").checked(path)


def _from_npz(path: Path, *, hgcn: bool) -> Listing:
    chosen = "x_hgcn" if hgcn else "x"
    arrays = read_arrays(path, ("edge_index", chosen, "y", "node_id"), advice=FETCH_AGAIN)
    arrays["x"] = arrays.pop(chosen)
    return listing_of(path, arrays)


def _from_pickle(path: Path, *, hgcn: bool) -> Listing:
    attributes, neighbours = _node_tables(path)
    ids = np.array(list(attributes), dtype=np.int64)
    table = np.array([one["feat"] for one in attributes.values()], dtype=np.float64)
    index = {node: i for i, node in enumerate(attributes)}
    pairs = [(index[one], index[other]) for one in neighbours for other in neighbours[one]]
    edges = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T
    y = np.digitize(table[:, FEATURES], POPULATION_BINS).astype(np.int64)
    x = table[:, :FEATURES]
    x = (_hgcn_features(x, edges) if hgcn else x).astype(np.float32)
    return Listing(edges[0], edges[1], ids, x=x, y=y)


def _node_tables(path: Path) -> tuple[dict[int, dict[str, list[float]]], dict[int, dict[int, object]]]:
    """Return the attributes and the neighbours of each node."""
    graph = unpickle(path, NETWORKX, COLLECTIONS)
    state = graph.state if type(graph) is Shell and type(graph.state) is dict else {}
    attributes, neighbours = state.get("_node"), state.get("_adj")
    if type(attributes) is not dict or type(neighbours) is not dict or not attributes:
        raise DataError(f"{path}: not the Airport graph: it has no nodes or no neighbours; {FETCH_AGAIN}")
    described = all(
        is_node(node) and type(one) is dict and _is_row(one.get("feat")) for node, one in attributes.items()
    )
    known = all(type(one) is dict and one.keys() <= attributes.keys() for one in neighbours.values())
    few = known and sum(map(len, neighbours.values())) <= path.stat().st_size
    if not described or not few or not neighbours.keys() <= attributes.keys():
        raise DataError(f"{path}: not the Airport graph: its nodes are described otherwise; {FETCH_AGAIN}")
    return attributes, neighbours


def _is_row(values: Any) -> bool:
    return (
        type(values) is list
        and len(values) == FEATURES + 1
        and all(type(one) is float or (type(one) is int and abs(one) < 1 << 53) for one in values)
    )


def _hgcn_features(x: NDArray[np.floating], edges: IntArray) -> NDArray[np.floating]:
    nodes = len(x)
    total = x.sum(axis=1, keepdims=True)
    fractions = np.divide(x, total, out=np.zeros(x.shape), where=total != 0)
    degree = np.minimum(np.bincount(edges[0], minlength=nodes), LARGEST_DEGREE)
    return np.hstack([fractions, np.eye(LARGEST_DEGREE + 1)[degree], np.ones((nodes, 1))])
