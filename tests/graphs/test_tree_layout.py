"""The layout of a hierarchy: sectors by leaves, radii by their logarithm, and what it is worth without training."""

import math

import numpy as np
import pytest

from gyroformer.graphs.hierarchy import closure
from gyroformer.graphs.tree_layout import STEP, TreeLayout, lowest_parents, tree_layout


def laid_out(edges, nodes):
    edges = np.asarray(edges, np.int64).T.reshape(2, -1)
    _, depth = closure(edges, nodes)
    return tree_layout(edges, depth)


def test_sectors_are_as_wide_as_their_share_of_the_leaves():
    # 0 has the children 1, with the leaves 3, 4, 5, and 2, a leaf
    found = laid_out([(1, 0), (2, 0), (3, 1), (4, 1), (5, 1)], 6)
    quarter = math.pi / 2
    assert found.angle[[3, 4, 5, 2]] == pytest.approx(
        [quarter / 2, 1.5 * quarter, 2.5 * quarter, 3.5 * quarter]
    )
    assert found.angle[1] == pytest.approx(1.5 * quarter)  # the middle of its three leaves
    assert math.log(4 / 3) < STEP
    assert found.radius == pytest.approx([0, STEP, math.log(4), *[math.log(4)] * 3])


def test_an_only_child_lies_a_step_beyond_its_parent():
    found = laid_out([(1, 0), (2, 1)], 3)
    assert found.radius == pytest.approx([0, STEP, 2 * STEP])
    assert found.angle == pytest.approx([math.pi] * 3)


def test_of_several_parents_the_lowest_counts():
    edges = np.array([[1, 2, 3, 3], [0, 1, 0, 2]])
    _, depth = closure(edges, 4)
    assert lowest_parents(edges, depth).tolist() == [-1, 0, 1, 2]


def test_trees_of_a_forest_share_the_circle():
    found = laid_out([(1, 0), (3, 2), (4, 2)], 5)
    assert found.angle[[1, 3, 4]] == pytest.approx(np.array([1, 3, 5]) * math.pi / 3)
    assert found.radius[[0, 2]] == pytest.approx([math.log(3), math.log(3 / 2)])


def test_coordinates_are_polar():
    x, y = TreeLayout(np.array([math.pi / 2]), np.array([2.0])).coordinates()[0]
    assert (x, y) == pytest.approx((0, 2), abs=1e-12)


def test_siblings_of_a_large_tree_have_the_same_room_at_every_level():
    """The arc between neighbouring leaves of a complete tree is about 2π e^r / leaves / 2 = π at every depth."""
    levels, first = 8, [2**level - 1 for level in range(9)]
    edges = [(node, (node - 1) // 2) for node in range(1, first[-1])]
    found = laid_out(edges, first[-1])
    for level in range(2, levels):
        nodes = slice(first[level], first[level + 1])
        turns = np.diff(np.sort(found.angle[nodes]))
        arcs = turns * np.sinh(found.radius[nodes][0])
        assert arcs == pytest.approx([math.pi] * len(arcs), rel=0.1)
