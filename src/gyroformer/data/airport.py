"""Airport: the flights between 3188 airports, from the plain npz or from HGCN's pickle.

Both give the same graph: ``x`` is latitude/90, longitude/180, altitude in feet/3000 and log10(GDP of the
country)/7; the label is the country's population in four bins, cut at 1e7, 1e8 and 1e9. The feature set
``hgcn`` is what HGCN feeds its model: ``x`` with rows summing to one, the degree up to 5 as one of six, and
a constant 1.
"""

from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from gyroformer.arrays import read_arrays
from gyroformer.data.sources import FETCH_AGAIN
from gyroformer.data.unpickle import COLLECTIONS, NETWORKX, Shell, unpickle
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
    graph = unpickle(path, NETWORKX, COLLECTIONS)
    if not isinstance(graph, Shell):
        raise DataError(f"{path}: expected a graph, found {type(graph).__name__}")
    try:
        attributes = cast(dict[int, dict[str, list[float]]], graph.state["_node"])
        neighbours = cast(dict[int, dict[int, object]], graph.state["_adj"])
        ids = np.array(list(attributes), dtype=np.int64)
        table = np.array([attributes[node]["feat"] for node in attributes], dtype=np.float64)
        index = {node: i for i, node in enumerate(attributes)}
        pairs = [(index[one], index[other]) for one in neighbours for other in neighbours[one]]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}: not the Airport graph ({error!r}); {FETCH_AGAIN}") from None
    edges = np.array(sorted(pairs), dtype=np.int64).T
    y = np.digitize(table[:, FEATURES], POPULATION_BINS).astype(np.int64)
    x = table[:, :FEATURES]
    x = (_hgcn_features(x, edges) if hgcn else x).astype(np.float32)
    return Listing(edges[0], edges[1], ids, x=x, y=y)


def _hgcn_features(x: NDArray[np.floating], edges: IntArray) -> NDArray[np.floating]:
    nodes = len(x)
    total = x.sum(axis=1, keepdims=True)
    fractions = np.divide(x, total, out=np.zeros(x.shape), where=total != 0)
    degree = np.minimum(np.bincount(edges[0], minlength=nodes), LARGEST_DEGREE)
    return np.hstack([fractions, np.eye(LARGEST_DEGREE + 1)[degree], np.ones((nodes, 1))])
