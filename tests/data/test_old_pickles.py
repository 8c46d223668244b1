import collections
import os
import pickle

import numpy as np
import pytest
from made_datasets import planetoid_files, python2_pickle

from gyroformer.data.old_pickles import COLLECTIONS, NETWORKX, NUMPY, SCIPY, array_of, unpickle
from gyroformer.data.planetoid import read_planetoid
from gyroformer.errors import DataError

EVERYTHING = (NUMPY, SCIPY, COLLECTIONS, NETWORKX)


class Runs:
    """A pickle of this asks for a command to be run on loading."""

    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


def test_arrays_of_python_2_are_read(tmp_path):
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    (tmp_path / "a").write_bytes(python2_pickle(array))
    np.testing.assert_array_equal(array_of(unpickle(tmp_path / "a", NUMPY), tmp_path / "a"), array)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "call",
    [(os.system, "touch {}"), (eval, "open({!r}, 'w')"), (getattr, "x", "upper"), (__import__, "os")],
    ids=["system", "eval", "getattr", "import"],
)
def test_nothing_is_run(tmp_path, protocol, call):
    trace = tmp_path / "trace"
    function, *args = call
    evil = Runs(function, *(arg.format(str(trace)) for arg in args))
    (tmp_path / "evil").write_bytes(pickle.dumps({"x": evil}, protocol=protocol))
    with pytest.raises(DataError, match="it asks for"):
        unpickle(tmp_path / "evil", *EVERYTHING)
    assert not trace.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a pickle",
        python2_pickle(np.arange(9))[:-20],
    ],
    ids=["empty", "text", "cut"],
)
def test_broken_files_are_one_line(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(DataError, match="not loaded") as error:
        unpickle(tmp_path / "a", *EVERYTHING)
    assert "\n" not in str(error.value)


ARRAY = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
#: pickles that numpy's own functions, or the unpickler of Python, would follow into other memory or a dead process
HOSTILE = {
    "an array of any size": b"\x80\x02cnumpy\nndarray\nK\x05\x85R.",
    "a huge array": b"\x80\x02" + ARRAY + b"\x8a\x06\x00\x00\x00\x00\x00\x01\x85U\x01b\x87R.",
    "an array of pointers": python2_pickle(np.arange(9)).replace(b"i8", b"O8"),
    "another size": python2_pickle(np.arange(9)).replace(b"i8", b"i4"),
    "a type with fields": python2_pickle(np.zeros(3, dtype=[("a", "i8")])),
    "a state for a function": b"\x80\x02" + ARRAY + b"}U\x01xK\x01sb.",
    "tuples in tuples": b"\x80\x02)" + b"\x85" * 300_000 + b".",
    "lists in lists": b"\x80\x02" + b"]" * 300_000 + b"a" * 299_999 + b".",
    "a key of tuples in tuples": b"\x80\x02})" + b"\x85" * 300_000 + b"K\x01s.",
    "a list of itself": b"\x80\x02]q\x00h\x00a.",
    "a missing entry": b"\x80\x02h\x07.",
    "an empty stack": b"\x80\x02.",
    "a mark that is not there": b"\x80\x02t.",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", ["allx", "ally", "graph"])
def test_hostile_files_are_one_line(tmp_path, content, name):
    planetoid_files(tmp_path)
    (tmp_path / f"ind.cora.{name}").write_bytes(content)
    with pytest.raises(DataError, match=f"ind.cora.{name}: ") as error:
        read_planetoid(tmp_path, "cora")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    "graph",
    [
        {"a": [1]},
        {1: 2},
        {1: None},
        {1: [2.5]},
        {1: [10**12]},
        {-1: [1]},
        {1: ["x"]},
        {1: [True]},
        {1: [[1]]},
    ],
    ids=str,
)
def test_other_values_than_neighbours_are_refused(tmp_path, graph):
    planetoid_files(tmp_path)
    content = python2_pickle(collections.defaultdict(list, graph))
    (tmp_path / "ind.cora.graph").write_bytes(content.replace(b"cbuiltins\nlist", b"c__builtin__\nlist"))
    with pytest.raises(DataError, match=r"ind\.cora\.graph: expected lists of neighbours"):
        read_planetoid(tmp_path, "cora")


def test_a_list_named_again_and_again_is_not_spread_out(tmp_path):
    shared = list(range(500))
    graph = collections.defaultdict(list, dict.fromkeys(range(510), shared))
    planetoid_files(tmp_path)
    (tmp_path / "ind.cora.graph").write_bytes(python2_pickle(graph))
    with pytest.raises(DataError, match="expected lists of neighbours"):
        read_planetoid(tmp_path, "cora")
