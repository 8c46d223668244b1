import numpy as np
import pytest
import torch

from gyroformer.errors import UsageError
from gyroformer.estimators.inputs import Ids, node_indices, plain, seed_of


def test_nodes_as_masks_and_as_places():
    assert node_indices([False, True, True], 3, "nodes").tolist() == [1, 2]
    assert node_indices(torch.tensor([True, False]), 2, "nodes").tolist() == [0]
    assert node_indices([[2], [0]], 3, "nodes").tolist() == [2, 0], "their order is kept"
    assert node_indices([], 3, "nodes").tolist() == []
    for wrong, said in (
        ([3], "names node 3"),
        ([-1], "names node -1"),
        ([[1, 2]], "got shape"),
        (["a"], "integers"),
    ):
        with pytest.raises(UsageError, match=said):
            node_indices(wrong, 3, "nodes")


def test_ids():
    assert Ids([5, 7]).array().dtype == np.int64
    assert Ids(["a", "bc"]).array().tolist() == ["a", "bc"]
    mixed = Ids([1, "1"])
    assert mixed.array().tolist() == [1, "1"]
    assert mixed.indices(["1", 1]).tolist() == [1, 0]
    assert mixed.indices("1").tolist() == [1]
    assert mixed.indices(np.array([1])).tolist() == [0]
    assert mixed.index(torch.tensor(1)) == 0
    with pytest.raises(UsageError, match="no node has the id 2"):
        mixed.index(2)


def test_seeds():
    assert seed_of(7) == seed_of(np.int32(7)) == 7
    stream = np.random.RandomState(0)
    assert seed_of(stream) != seed_of(stream)
    for wrong in (True, 1.5, -1, 2**32, "1"):
        with pytest.raises(UsageError, match="random_state"):
            seed_of(wrong)


def test_numbers_of_numpy_become_pythons():
    found = plain({"a": np.int64(1), "b": [np.float32(0.5)], "c": {"d": np.bool_(True)}})
    assert found == {"a": 1, "b": [0.5], "c": {"d": True}}
    assert [type(found["a"]), type(found["b"][0]), type(found["c"]["d"])] == [int, float, bool]
