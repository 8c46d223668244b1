import pickle

import numpy as np
import pytest
import torch

from gyroformer.data.airport import read_airport
from gyroformer.data.load import load
from gyroformer.errors import DataError, UsageError


def made_pickle(path):
    nx = pytest.importorskip("networkx")
    graph = nx.Graph()
    for node, population in ((40, 0.9), (7, 1.0), (23, 1.2), (5, 1.3)):
        graph.add_node(node, feat=[0.5, 0.25, 0.0, 0.25 * node, population])
    graph.add_edges_from([(40, 23), (40, 7), (23, 23)])  # not in the order of the nodes
    path.write_bytes(pickle.dumps(graph, protocol=3))


def test_the_pickle_keeps_order_and_bins_the_population(tmp_path):
    made_pickle(tmp_path / "airport.p")
    parsed = read_airport(tmp_path / "airport.p")
    assert parsed.ids.tolist() == [40, 7, 23, 5]
    assert parsed.y.tolist() == [0, 1, 2, 3]
    assert list(zip(parsed.source.tolist(), parsed.target.tolist(), strict=True)) == [
        *[(0, 1), (0, 2), (1, 0), (2, 0), (2, 2)]
    ]


def test_features_of_hgcn(tmp_path):
    made_pickle(tmp_path / "airport.p")
    x = read_airport(tmp_path / "airport.p", features="hgcn").x
    np.testing.assert_allclose(x[1], [0.5 / 2.5, 0.1, 0, 1.75 / 2.5, 0, 1, 0, 0, 0, 0, 1], rtol=1e-6)
    assert x.dtype == np.float32


@pytest.mark.parametrize("name", ["airport.npz", "airport.p"])
def test_other_files_are_refused(tmp_path, name):
    (tmp_path / name).write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(DataError, match=name):
        read_airport(tmp_path / name)


@pytest.mark.data
@pytest.mark.parametrize("features", ["raw", "hgcn"])
def test_the_pickle_equals_the_plain_file(real, features):
    plain, pickled = (
        read_airport(real / "airport" / name, features=features) for name in ("airport.npz", "airport.p")
    )
    for key in ("source", "target", "x", "y", "ids"):
        np.testing.assert_array_equal(getattr(plain, key), getattr(pickled, key), err_msg=key)


@pytest.mark.data
def test_the_features_of_hgcn_are_those_stored(real):
    with np.load(real / "airport/airport.npz", allow_pickle=False) as held:
        assert np.array_equal(load("airport", folder=real, features="hgcn").x.numpy(), held["x_hgcn"])


@pytest.mark.data
def test_without_the_plain_file_the_pickle_is_read(real, tmp_path):
    (tmp_path / "airport").mkdir()
    (tmp_path / "airport/airport.p").write_bytes((real / "airport/airport.p").read_bytes())
    one, other = load("airport", folder=tmp_path), load("airport", folder=real)
    assert torch.equal(one.x, other.x)
    assert torch.equal(one.edge_index, other.edge_index)
    assert one.ids == other.ids
    with pytest.raises(UsageError, match="it has raw, hgcn"):
        load("airport", folder=real, features="hgnc")
