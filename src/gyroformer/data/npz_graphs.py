"""Amazon Computers and the Coauthor graphs from the npz files of the gnn-benchmark repository.

Keys: ``adj_*`` and ``attr_*`` are the parts of two CSR matrices, ``labels`` the classes. Other keys, which
hold names as pickled objects in the public files, are never read. As in torch_geometric, every attribute
above zero counts as 1.
"""

from pathlib import Path

import numpy as np

from gyroformer.arrays import read_arrays
from gyroformer.data.sources import FETCH_AGAIN
from gyroformer.graphs.listing import Listing
from gyroformer.graphs.reading.npz import listing_of

NAMES = (
    "labels",
    *(f"{matrix}_{part}" for matrix in ("adj", "attr") for part in ("data", "indices", "indptr", "shape")),
)


def read_npz_graph(path: Path) -> Listing:
    """Return the graph in ``path``."""
    listing = listing_of(path, read_arrays(path, NAMES, advice=FETCH_AGAIN))
    listing.x.data = (listing.x.data > 0).astype(np.float32)
    listing.weight = None
    return listing.checked(path)
