"""The edges of a labelled graph as usually published, and how many of them join equal labels."""

import numpy as np

from gyroformer.errors import DataError
from gyroformer.graphs.adjacency import IntArray
from gyroformer.graphs.listing import Listing


def published_edges(listing: Listing, *, both_ways: bool) -> tuple[IntArray, IntArray]:
    """Return the distinct ordered pairs that the usual edge list of this graph has.

    With ``both_ways`` that list has each edge in both directions and no self-loops, else what the files list.
    """
    source, target, nodes = listing.source, listing.target, len(listing.ids)
    if both_ways:
        apart = source != target
        source, target = source[apart], target[apart]
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
    pairs = np.unique(source * np.int64(nodes) + target)
    return pairs // nodes, pairs % nodes


def homophily(listing: Listing, *, both_ways: bool) -> float:
    """Return the fraction of the published edges whose two ends have the same label."""
    if listing.y is None:
        raise DataError("the graph has no labels, so it has no homophily")
    source, target = published_edges(listing, both_ways=both_ways)
    if not source.size:
        raise DataError("no edge is listed, so there is no homophily")
    return float(np.mean(listing.y[source] == listing.y[target]))
