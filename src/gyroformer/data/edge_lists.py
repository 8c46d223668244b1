"""Data sets that are a plain edge list: the reconstruction graphs, SNAP's, and WordNet's closures."""

from pathlib import Path
from typing import TYPE_CHECKING

from gyroformer.graphs.reading.read import read_graph

if TYPE_CHECKING:
    from torch_geometric.data import Data


def read_edges(path: Path, *, directed: bool = False) -> "Data":
    """Return the graph listed in ``path``, nodes in the order in which the file first names them.

    The weight column of WordNet's closures is 1 throughout and is left out.
    """
    data = read_graph(path, directed=directed)
    if "edge_weight" in data:
        del data.edge_weight
    return data
