r"""A place for every node of a graph without any training: along a breadth-first tree, each a step from its parent.

Each step has a direction of its own, drawn at random,

.. math:: x_v = x_{\mathrm{parent}(v)} + s\, e_v, \qquad |e_v| = 1,

and in many dimensions such directions are nearly at right angles to each other. So the square of a distance is about
the number of steps on the way through the tree, :math:`|x_u - x_v|^2 \approx s^2\, \mathrm{steps}(u, v)`, and nodes are
nearest to their parents and children from the start.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order

from gyroformer.graphs.adjacency import Csr, IntArray, ranked_components

#: steps from the centre to the root of a component, where there are several
APART = 3.0


def tree_walk(adjacency: Csr, dim: int, *, step: float, seed: int) -> NDArray[np.float32]:
    """Return a place for each node, ``(N, dim)``.

    Args:
        adjacency: symmetric CSR matrix without self-loops.
        dim: number of coordinates.
        step: length of a step.
        seed: of the directions.
    """
    nodes = adjacency.shape[0]
    roots = component_roots(adjacency)
    order, parent = _from_the_centre(adjacency, roots)
    direction = np.random.default_rng(seed).standard_normal((nodes, dim), np.float32)
    direction *= step / np.linalg.norm(direction, axis=1, keepdims=True)
    direction[roots] *= APART if roots.size > 1 else 0.0
    places = np.zeros((nodes + 1, dim), np.float32)
    children = np.bincount(parent[order[1:]], minlength=nodes + 1)
    # the search lists a whole level, then the next, which has as many nodes as the level has children
    begin, end = 1, 1 + roots.size
    while begin < end:
        level = order[begin:end]
        places[level] = places[parent[level]] + direction[level]
        begin, end = end, end + int(children[level].sum())
    return places[:nodes]


def component_roots(adjacency: Csr) -> IntArray:
    """Return the node of each component that has the most neighbours, the first of several."""
    _, component = ranked_components(adjacency)
    by_degree = np.argsort(-np.diff(adjacency.indptr), kind="stable")
    _, first = np.unique(component[by_degree], return_index=True)
    return by_degree[first]


def _from_the_centre(adjacency: Csr, roots: IntArray) -> tuple[IntArray, IntArray]:
    """Return the nodes in breadth-first order from a centre N that is joined to all roots, and their parents."""
    nodes = adjacency.shape[0]
    ends = np.append(adjacency.indptr, adjacency.indptr[-1] + roots.size)
    spokes = np.concatenate([adjacency.indices, roots]).astype(np.int32)
    joined = sp.csr_matrix((np.ones(spokes.size, np.int8), spokes, ends), shape=(nodes + 1, nodes + 1))
    return breadth_first_order(joined, nodes, directed=True)
