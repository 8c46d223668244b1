import numpy as np
import pytest

from gyroformer.errors import DataError
from gyroformer.estimators.node_split import given_split, held_out

CODES = np.repeat([0, 1, 2, -1], [40, 20, 10, 30])
LABELLED = np.arange(70)


def test_a_share_of_each_class_is_held_out():
    train, val = held_out(LABELLED, CODES, 0.2, seed=0)
    assert np.bincount(CODES[val]).tolist() == [8, 4, 2]
    assert sorted([*train, *val]) == LABELLED.tolist()
    assert np.array_equal(held_out(LABELLED, CODES, 0.2, seed=0)[1], val)
    assert not np.array_equal(held_out(LABELLED, CODES, 0.2, seed=1)[1], val)


@pytest.mark.parametrize("fraction", [0.01, 0.5, 0.99])
def test_each_class_keeps_a_node_and_some_node_is_held_out(fraction):
    codes = np.array([0, 0, 0, 1, 2])
    train, val = held_out(np.arange(5), codes, fraction, seed=0)
    assert set(codes[train]) == {0, 1, 2}
    assert len(val) > 0


def test_single_nodes_of_every_class_are_too_few():
    with pytest.raises(DataError, match="2 labelled nodes are too few"):
        held_out(np.arange(2), np.array([0, 1]), 0.5, seed=0)


def test_unlabelled_nodes_are_left_out_of_a_given_split():
    split = given_split((np.arange(0, 100, 2), np.arange(1, 100, 4)), CODES, 0.2, seed=0)
    assert split.train.max() < 70 > split.val.max()
    assert split.test.tolist() == list(range(3, 70, 4))
    named = given_split((np.arange(10), np.arange(10, 20), np.arange(20, 90)), CODES, 0.2, seed=0)
    assert named.test.tolist() == list(range(20, 70))
    rest = given_split((None, np.arange(10), np.arange(10, 60)), CODES, 0.2, seed=0)
    assert rest.train.tolist() == list(range(60, 70))
