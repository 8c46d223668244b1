import numpy as np
import pandas
import pytest

from gyroformer.errors import DataError, UsageError
from gyroformer.estimators.inputs import Ids
from gyroformer.estimators.labels import encoded, labels_of_nodes


@pytest.mark.parametrize(
    "labels, classes, codes",
    [
        ([3, -1, 7, 3], [3, 7], [0, -1, 1, 0]),
        ([-2, 5, -1], [-2, 5], [0, 1, -1]),
        (["b", "", "a"], ["a", "b"], [1, -1, 0]),
        ([1.0, np.nan, 0.0, -1.0], [0.0, 1.0], [1, -1, 0, -1]),
        ([True, False], [False, True], [1, 0]),
        (np.array(["b", None, "a", "", np.nan], dtype=object), ["a", "b"], [1, -1, 0, -1, -1]),
        (np.array([4, None, 2, -1], dtype=object), [2, 4], [1, -1, 0, -1]),
        (np.array([b"b", b"", b"a"]), [b"a", b"b"], [1, -1, 0]),
    ],
)
def test_to_class_numbers(labels, classes, codes):
    found, numbers = encoded(np.asarray(labels))
    assert found.tolist() == classes
    assert found.dtype != object
    assert numbers.tolist() == codes
    assert numbers.dtype == np.int64


@pytest.mark.parametrize(
    "labels, error, said",
    [
        ([0.5, 1.5], UsageError, "Unknown label type"),
        ([1j, 2j], UsageError, "numbers or text"),
        (np.array([1, "a"], dtype=object), UsageError, "one kind"),
        ([4, 4, -1], DataError, "all labels are 4, 1 class"),
        ([""], DataError, "no node has a label"),
    ],
)
def test_what_cannot_be_learned(labels, error, said):
    with pytest.raises(error, match=said):
        encoded(np.asarray(labels))


def test_labels_of_all_nodes():
    ids = Ids(["u", "v", 3])
    assert labels_of_nodes({3: "x", "u": "y"}, ids).tolist() == ["y", None, "x"]
    assert labels_of_nodes([[1], [2], [3]], ids).tolist() == [1, 2, 3]
    with pytest.raises(UsageError, match="each of the 3 nodes"):
        labels_of_nodes([[1, 0], [0, 1], [1, 1]], ids)


def test_a_series_goes_by_its_index():
    ids = Ids(["a", "b", "c"])
    assert labels_of_nodes(pandas.Series({"c": 1, "a": 0}), ids).tolist() == [0, None, 1]
    assert labels_of_nodes(pandas.Series(["x", "y", "z"]), ids).tolist() == ["x", "y", "z"]
    # integer ids in another order: the index means ids, not rows
    assert labels_of_nodes(pandas.Series(["x", "y"]), Ids([1, 0])).tolist() == ["y", "x"]
    with pytest.raises(UsageError, match="names 'd', which is no node"):
        labels_of_nodes(pandas.Series({"d": 1}), ids)
