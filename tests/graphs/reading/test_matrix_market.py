import gzip

import pytest
import scipy.io
import scipy.sparse

from gyroformer.errors import DataError
from gyroformer.graphs.reading.read import read_graph

HEAD = "%%MatrixMarket matrix coordinate"


SUFFIX = ".mtx"


def test_pattern_symmetric(write):
    data = read_graph(write(f"{HEAD} pattern symmetric\n% note\n4 4 3\n2 1\n3 1\n2 2\n"))
    assert data.edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    assert data.ids == [1, 2, 3, 4]
    assert "edge_weight" not in data
    assert (data.summary.self_loops, data.summary.isolated, data.summary.listed_edges) == (1, 1, 3)


def test_a_symmetric_matrix_has_both_directions_even_if_directed(write):
    path = write(f"{HEAD} real symmetric\n3 3 2\n2 1 0.5\n3 2 2\n")
    data = read_graph(path, directed=True)
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.edge_weight.tolist() == [0.5, 0.5, 2.0, 2.0]


def test_an_entry_of_value_0_is_no_edge(write):
    data = read_graph(write(f"{HEAD} real general\n3 3 2\n2 1 0\n3 2 2.5\n"))
    assert data.edge_index.tolist() == [[1, 2], [2, 1]]


@pytest.mark.parametrize("name", ["g.mtx", "g.edges", "g.txt"])  # the banner decides, not the name
def test_what_scipy_writes(tmp_path, name):
    matrix = scipy.sparse.random_array((30, 30), density=0.1, rng=1)
    scipy.io.mmwrite(tmp_path / "g.mtx", matrix, precision=17)
    (tmp_path / "g.mtx").rename(tmp_path / name)
    data = read_graph(tmp_path / name, directed=True)
    expected = matrix.tolil()
    expected.setdiag(0)
    found = scipy.sparse.coo_array((data.edge_weight, data.edge_index.numpy()), shape=(30, 30))
    assert abs(found - expected.tocsr()).max() < 1e-7


@pytest.mark.parametrize(
    "content, line, words",
    [
        ("", None, "empty"),
        ("1 2\n2 3\n", 1, "not a Matrix Market header"),
        (f"{HEAD} complex general\n1 1 0\n", 1, "cannot be a graph"),
        (f"{HEAD} real skew-symmetric\n1 1 0\n", 1, "cannot be a graph"),
        ("%%MatrixMarket matrix array real general\n2 2\n1\n0\n0\n1\n", 1, "dense"),
        (f"{HEAD} pattern general\n", None, "no size line"),
        (f"{HEAD} pattern general\n3 3\n", 2, "not a size line"),
        (f"{HEAD} pattern general\n3 3 -1\n", 2, "not a size line"),
        (f"{HEAD} pattern general\n3 4 0\n", 2, "must be square"),
        (f"{HEAD} pattern general\n0 0 0\n", 2, "must be square"),
        (f"{HEAD} pattern general\n100000000000 100000000000 1\n1 1\n", None, "the limit is"),
        (f"{HEAD} pattern general\n9 9 999999999999\n1 1\n", 2, "cannot hold them"),
        (f"{HEAD} real general\n9 9 4\n1 2 1\n2 3 1\n", None, "2 of 4 declared"),
        (f"{HEAD} pattern general\n9 9 1\n1 2\n2 3\n", 4, "more than the 1 entries"),
        (f"{HEAD} pattern general\n3 3 2\n1 2\n2 4\n", 4, "not an entry of a 3 x 3 matrix"),
        (f"{HEAD} pattern general\n3 3 2\n1 2\n0 1\n", 4, "not an entry"),
        (f"{HEAD} pattern general\n3 3 2\n1 2\nx 1\n", 4, "not an entry"),
        (f"{HEAD} pattern general\n3 3 2\n1 2\n99999999999999999999 1\n", 4, "not an entry"),
        (f"{HEAD} pattern general\n3 3 2\n1 2\n2 1 5\n", 4, "3 columns where 2"),
        (f"{HEAD} real general\n3 3 2\n1 2 1\n2 1 nan\n", 4, "weight 'nan'"),
    ],
)
def test_headers_and_entries_that_lie(write, content, line, words):
    path = write(content)
    with pytest.raises(DataError) as caught:
        read_graph(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(path) + (f":{line}: " if line else ":"))


def test_a_packed_file_that_lies_allocates_nothing(write):
    path = write(
        gzip.compress(f"{HEAD} pattern general\n9 9 999999999999\n1 2\n".encode(), mtime=0), "g.mtx.gz"
    )
    with pytest.raises(DataError, match="1 of 999999999999 declared entries"):
        read_graph(path)
