import os
import pickle

import numpy as np
import pytest
from made_datasets import python2_pickle

from gyroformer.data.unpickle import COLLECTIONS, NETWORKX, NUMPY, SCIPY, unpickle
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
    np.testing.assert_array_equal(unpickle(tmp_path / "a", NUMPY), array)


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
        b"\x80\x02cnumpy\nndarray\nK\x05\x85R.",  # an array of any size
        b"\x80\x02cscipy.sparse.csr\ncsr_matrix\nK\x05\x85R.",
        b"\x80\x02ccollections\ndefaultdict\nK\x05\x85R.",
    ],
    ids=["empty", "text", "cut", "array", "matrix", "dict"],
)
def test_broken_files_are_one_line(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(DataError, match="not loaded") as error:
        unpickle(tmp_path / "a", *EVERYTHING)
    assert "\n" not in str(error.value)


def test_a_huge_array_is_not_made(tmp_path):
    # _reconstruct(ndarray, (2**40,), 'b')
    asks = (
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n\x8a\x06\x00\x00\x00\x00\x00\x01\x85"
    )
    (tmp_path / "a").write_bytes(asks + b"U\x01b\x87R.")
    with pytest.raises(DataError, match="it makes an array"):
        unpickle(tmp_path / "a", NUMPY)
