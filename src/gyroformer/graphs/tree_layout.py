r"""A hierarchy laid out in the plane around its roots, as trees are drawn: a place for every node without any training.

Every node has a sector of the circle that is as wide as its share of the leaves, and lies where a circle of the
hyperbolic plane of curvature -1 is so long that all sectors of its size have room side by side,

.. math:: r_v = \log(\text{leaves} / \text{leaves below}\ v),

at least :data:`STEP` beyond its parent. A flat plane has no such room: its circles grow with r, trees with :math:`e^r`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gyroformer.graphs.adjacency import IntArray

#: least distance of a node from its parent, where it is its only child
STEP = 0.3

Numbers = NDArray[np.float64]


class TreeLayout(NamedTuple):
    """Where the nodes are: angles and distances from the centre, ``(N,)`` each."""

    angle: Numbers
    radius: Numbers

    def coordinates(self) -> Numbers:
        """Return x and y, ``(N, 2)``."""
        return self.radius[:, None] * np.stack([np.cos(self.angle), np.sin(self.angle)], axis=1)


def tree_layout(edges: IntArray, depth: IntArray) -> TreeLayout:
    """Return the layout of a hierarchy.

    Args:
        edges: from each node to its parents, ``(2, E)``, without a cycle. Of several parents the lowest one counts.
        depth: of each node, the number of edges on the longest way up, ``(N,)``.
    """
    parent = lowest_parents(edges, depth)
    levels = [np.nonzero(depth == level)[0] for level in range(int(depth.max(initial=0)) + 1)]
    leaves = _leaves_below(parent, levels)
    begin, radius = np.zeros(len(depth)), np.zeros(len(depth))
    total = leaves[levels[0]].sum()
    for level in levels:
        above = parent[level]
        # siblings side by side, in the order of their indices: a run of the sorted level is a parent's children
        order = np.argsort(above, kind="stable")
        nodes, above = level[order], above[order]
        ends = np.cumsum(leaves[nodes])
        begins = ends - leaves[nodes]
        first = np.searchsorted(above, above, side="left")
        inside = above >= 0
        begin[nodes] = begins - begins[first] + np.where(inside, begin[above], 0.0)
        radius[nodes] = np.maximum(np.log(total / leaves[nodes]), np.where(inside, radius[above] + STEP, 0.0))
    return TreeLayout(2 * np.pi * (begin + leaves / 2) / total, radius)


def lowest_parents(edges: IntArray, depth: IntArray) -> IntArray:
    """Return the parent of each node that is one level above it, the first of several, ``(N,)``; -1 for a root."""
    parent = np.full(len(depth), -1, np.int64)
    below, above = edges
    # a node lies one level below its lowest parent; written backwards, the first of several stays
    lowest = np.nonzero(depth[above] == depth[below] - 1)[0][::-1]
    parent[below[lowest]] = above[lowest]
    return parent


def _leaves_below(parent: IntArray, levels: list[IntArray]) -> Numbers:
    """Return the number of leaves of each node's part of the tree; a leaf has one, itself."""
    leaves = np.ones(len(parent))
    leaves[parent[parent >= 0]] = 0.0
    for level in levels[:0:-1]:
        np.add.at(leaves, parent[level], leaves[level])
    return leaves
