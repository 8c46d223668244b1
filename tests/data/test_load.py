import pytest
import torch
from made_datasets import planetoid_files, webkb_files

import gyroformer as gf
from gyroformer.data.registry import DATASETS
from gyroformer.errors import DataError, UsageError


def test_a_name_is_read_from_the_data_folder(tmp_path, monkeypatch):
    planetoid_files(tmp_path / "planetoid/Cora/raw")
    monkeypatch.setenv("GYROFORMER_DATA", str(tmp_path))
    before = sorted(tmp_path.rglob("*"))
    data = gf.load("cora")
    assert data.name == "cora"
    assert data.num_nodes == len(data.ids) == 514
    assert data.x.dtype == torch.float32
    assert data.y.dtype == torch.int64
    assert data.train_mask.dtype == torch.bool
    assert data.is_undirected()
    assert (data.summary.self_loops, data.summary.duplicates) == (1, 1)
    data.validate()
    assert sorted(tmp_path.rglob("*")) == before  # nothing written beside the files


def test_direction_is_kept_on_request(tmp_path):
    webkb_files(tmp_path / "webkb/texas/raw")
    assert gf.load("texas", folder=tmp_path).edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    assert gf.load("texas", folder=tmp_path, directed=True).edge_index.tolist() == [[0, 1, 2], [1, 0, 0]]


def test_edge_lists_have_ids_and_no_weights(tmp_path):
    (tmp_path / "wordnet").mkdir()
    (tmp_path / "wordnet/mammal_closure.csv").write_text(
        "id1,id2,weight\ncat.n.01,mammal.n.01,1\ndog.n.01,mammal.n.01,1\n"
    )
    data = gf.load("mammals", folder=tmp_path, directed=True)
    assert data.ids == ["cat.n.01", "mammal.n.01", "dog.n.01"]
    assert data.edge_index.tolist() == [[0, 2], [1, 1]]
    assert "edge_weight" not in data


def test_a_path_goes_to_the_reader(tmp_path):
    (tmp_path / "edges.csv").write_text("a,b\nb,c\n")
    (tmp_path / "nodes.csv").write_text("id,height,label\na,1.5,0\nb,2.5,1\nc,3.5,1\n")
    data = gf.load(tmp_path / "edges.csv", delimiter=",", labels=tmp_path / "nodes.csv")
    assert data.ids == ["a", "b", "c"]
    assert data.y.tolist() == [0, 1, 1]
    assert "name" not in data
    with pytest.raises(UsageError, match="no file"):
        gf.load(tmp_path / "edgse.csv")


def test_a_missing_set_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("GYROFORMER_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"ind\.cora\.x: not found; run gyroformer datasets cora --fetch"):
        gf.load("cora")


@pytest.mark.parametrize(
    "name, options, words",
    [
        ("corra", {}, "no data set is called 'corra'; did you mean 'cora'"),
        ("cora", {"delimiter": ","}, "takes no 'delimiter'"),
        ("cora", {"labels": "y.csv"}, "takes no 'labels'"),
        ("cora", {"features": "hgcn"}, "no feature set 'hgcn'"),
        ("power", {"features": "x.csv"}, "no feature set"),
    ],
)
def test_wrong_requests_are_usage_errors(name, options, words, tmp_path):
    with pytest.raises(UsageError, match=words):
        gf.load(name, folder=tmp_path, **options)


@pytest.mark.data
@pytest.mark.parametrize("name", [name for name in DATASETS if name not in ("physics", "nouns")])
def test_every_real_set_loads(real, name):
    spec = DATASETS[name]
    data = gf.load(name, folder=real)
    data.validate()
    assert (data.num_nodes, data.summary.edges) == (spec.nodes, spec.edges)
    assert data.edge_index.size(1) == 2 * spec.edges
    assert len(set(data.ids)) == spec.nodes
    if spec.task == "classification":
        assert data.x.shape == (spec.nodes, spec.features)
        assert data.y.unique().tolist() == list(range(spec.classes))
