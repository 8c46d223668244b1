"""Graphs of NetworkX and igraph, whose nodes may carry attributes: features and labels by their names."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gyroformer.errors import DataError, UsageError, did_you_mean
from gyroformer.graphs.check import UNLABELLED
from gyroformer.graphs.listing import Listing
from gyroformer.graphs.reading.columns import NO_WEIGHT


def from_networkx(
    graph: Any, *, weight: str | None = None, features: Sequence[str] | None = None, labels: str | None = None
) -> Listing:
    """Take nodes in their order; an edge without a weight among weighted ones counts 1, as NetworkX says."""
    nodes = list(graph.nodes())
    index = {node: i for i, node in enumerate(nodes)}
    listed = list(graph.edges(data=weight or "weight"))
    ends = np.array([(index[u], index[v]) for u, v, _ in listed], dtype=np.int64).reshape(-1, 2)
    values = [value for _, _, value in listed]
    attributes = [graph.nodes[node] for node in nodes]
    listing = Listing(
        ends[:, 0], ends[:, 1], _names(nodes), _weights(values, weight), symmetric=not graph.is_directed()
    )
    return _with_attributes(listing, attributes, features, labels)


def from_igraph(
    graph: Any, *, weight: str | None = None, features: Sequence[str] | None = None, labels: str | None = None
) -> Listing:
    """Take vertices in their order, named by their ``name`` where they have one, else by their index."""
    count = graph.vcount()
    names = graph.vs["name"] if "name" in graph.vs.attributes() else list(range(count))
    ends = np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    key = weight or "weight"
    values = graph.es[key] if key in graph.es.attributes() else [None] * len(ends)
    attributes = [vertex.attributes() for vertex in graph.vs]
    listing = Listing(
        ends[:, 0], ends[:, 1], _names(names), _weights(values, weight), symmetric=not graph.is_directed()
    )
    return _with_attributes(listing, attributes, features, labels)


def _names(nodes: Sequence[Any]) -> list[int | str]:
    return [
        node if isinstance(node, (int, str)) and not isinstance(node, bool) else str(node) for node in nodes
    ]


def _weights(values: Sequence[Any], wanted: str | None) -> np.ndarray | None:
    """Return the edges' weights, 1 where there is none; None for a graph without weights."""
    if wanted == NO_WEIGHT:
        return None
    if all(value is None for value in values):
        if wanted is not None and values:
            raise UsageError(f"no edge has the attribute {wanted!r} that is to be the weight")
        return None
    return np.array([1.0 if value is None else value for value in values])


def _with_attributes(
    listing: Listing,
    attributes: Sequence[Mapping[str, Any]],
    features: Sequence[str] | None,
    labels: str | None,
) -> Listing:
    """Add the attributes that were asked for as features and labels."""
    if isinstance(features, str):
        raise UsageError(f"features must be a list of names of attributes, e.g. [{features!r}]")
    known = list(dict.fromkeys(name for one in attributes for name in one))
    for name in [*(features or ()), *([labels] if labels is not None else ())]:
        if name not in known:
            raise UsageError(
                f"no node has the attribute {name!r}{did_you_mean(str(name), [str(k) for k in known])} "
                f"(attributes: {', '.join(map(str, known)) or 'none'})"
            )
    if features is not None:
        rows = [[_number(listing, row, one, name) for name in features] for row, one in enumerate(attributes)]
        listing.x = np.array(rows, dtype=np.float64).reshape(len(rows), len(features))
    if labels is not None:
        listing.y, listing.label_names = _classes([one.get(labels) for one in attributes])
    return listing


def _number(listing: Listing, row: int, attributes: Mapping[str, Any], name: str) -> float:
    value = attributes.get(name)
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise DataError(
            f"the attribute {name!r} of node {listing.ids[row]!r} is {value!r}, not a finite number: set it for every "
            "node, or leave it out of features"
        )
    return found


def _classes(values: Sequence[Any]) -> tuple[np.ndarray, list[str] | None]:
    """Return class numbers, and names if they are words; None and NaN are no label."""
    known = [value for value in values if value is not None and value == value]
    if known and all(
        isinstance(v, (int, np.integer)) and not isinstance(v, bool) and v >= UNLABELLED for v in known
    ):
        return np.array([int(v) if v is not None and v == v else UNLABELLED for v in values]), None
    names = sorted({str(value) for value in known})
    index = {name: number for number, name in enumerate(names)}
    return np.array([index[str(v)] if v is not None and v == v else UNLABELLED for v in values]), names
