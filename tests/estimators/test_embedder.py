import html

import networkx as nx
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from small_graphs import labelled_graph
from unpacked import page_block

import gyroformer as gf
from gyroformer.errors import DataError, UsageError

QUICK = {"epochs": 3, "dim": 8, "model_options": {"identifiers": 2}, "random_state": 0}


@pytest.fixture(scope="module")
def tree():
    return nx.relabel_nodes(nx.balanced_tree(2, 3), lambda node: f"leaf {node}")


@pytest.fixture(scope="module")
def embedder(tree):
    return gf.GraphEmbedder(**QUICK).fit(tree)


def test_a_tree_is_learned(tree):
    # from disorder: a start along the tree itself may leave nothing to learn
    before = gf.GraphEmbedder(epochs=1, random_state=0, start="random").fit(tree).score()
    after = gf.GraphEmbedder(epochs=80, random_state=0, start="random").fit(tree).score()
    assert before < 0.7
    assert after > 0.9


def test_the_embedding(embedder, tree):
    assert embedder.embedding_.shape == (15, 8)
    assert embedder.embedding_.dtype == np.float32
    assert np.array_equal(embedder.transform(tree), embedder.embedding_)
    assert np.array_equal(gf.GraphEmbedder(**QUICK).fit_transform(tree), embedder.embedding_)
    assert embedder.map_ == embedder.results_["map"]


def test_distances_by_id(embedder):
    ids = list(embedder.ids_)
    one = embedder.distance(ids[0], ids[5])
    assert isinstance(one, float)
    assert one == embedder.distance(ids[5], ids[0]) > 0
    rows = embedder.distance([ids[0]] * 15, ids)
    assert rows.shape == (15,)
    assert np.array_equal(rows, embedder.distance(ids[0], ids))
    assert rows[5] == np.float32(one)
    assert rows[0] == 0
    with pytest.raises(UsageError, match="make no pairs"):
        embedder.distance(ids[:2], ids[:3])
    with pytest.raises(UsageError, match="did you mean 'leaf 3'"):
        embedder.distance("leav 3", ids[0])


def test_the_distances_are_those_of_the_embedding():
    """In a flat space coordinates say it: a tangent vector is half the position."""
    found = gf.GraphEmbedder(model="tokengt", **QUICK).fit(nx.path_graph(9))
    apart = np.linalg.norm(found.embedding_[0] - found.embedding_[4])
    assert found.distance(0, 4) == pytest.approx(2 * apart, rel=1e-4)


def test_nearest(embedder):
    ids = list(embedder.ids_)
    found = embedder.nearest(ids[3], n=14)
    assert sorted(name for name, _ in found) == sorted(set(ids) - {ids[3]})
    far = [distance for _, distance in found]
    assert far == sorted(far)
    assert found[:4] == embedder.nearest(ids[3], n=4)
    assert found == embedder.nearest(ids[3], n=100)
    assert far[0] == pytest.approx(embedder.distance(ids[3], found[0][0]), rel=1e-5)
    with pytest.raises(UsageError, match="at least 1"):
        embedder.nearest(ids[3], n=0)


def test_score_counts_the_edges_of_the_graph_given(embedder, tree):
    assert embedder.score() == embedder.score(tree) == pytest.approx(embedder.map_ / 100, abs=1e-12)
    other = nx.create_empty_copy(tree)
    ids = list(tree)
    other.add_edges_from((node, embedder.nearest(node, n=1)[0][0]) for node in ids)
    assert embedder.transform(other).shape == (15, 8)
    assert embedder.score(other) != embedder.score()


def test_without_features_other_nodes_are_not_known(embedder):
    with pytest.raises(UsageError, match="knows no others"):
        embedder.transform(nx.path_graph(15))


def test_with_features_other_graphs_are():
    fitted = gf.GraphEmbedder(use_features=True, **QUICK).fit(labelled_graph(nodes=20))
    assert fitted.n_features_in_ == 6
    assert fitted.transform(labelled_graph(nodes=25)).shape == (25, 8)
    assert 0 < fitted.score(labelled_graph(nodes=25)) <= 1
    with pytest.raises(UsageError, match="X has 4 features, but GraphEmbedder is expecting 6"):
        fitted.transform(labelled_graph(features=4))
    with pytest.raises(DataError, match="no features to use"):
        gf.GraphEmbedder(use_features=True).fit(nx.path_graph(4))


def test_refitting_forgets_the_features():
    embedder = gf.GraphEmbedder(use_features=True, **QUICK).fit(labelled_graph(nodes=20))
    embedder.set_params(use_features=False).fit(labelled_graph(nodes=20))
    assert not hasattr(embedder, "n_features_in_")


def test_columns_have_names(embedder):
    assert embedder.get_feature_names_out().tolist() == [f"graphembedder{i}" for i in range(8)]


def test_a_table_of_pandas(tree):
    pandas = pytest.importorskip("pandas")
    found = gf.GraphEmbedder(**QUICK).set_output(transform="pandas").fit(tree).transform(tree)
    assert isinstance(found, pandas.DataFrame)
    assert found.columns[0] == "graphembedder0"


def test_distances_in_the_form_of_scikit_learn(embedder):
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.neighbors import NearestNeighbors

    far = embedder.pairwise_distances()
    assert far.shape == (15, 15)
    np.testing.assert_allclose(far[3, 7], embedder.distance(embedder.ids_[3], embedder.ids_[7]), rtol=1e-5)
    some = list(embedder.ids_[[9, 2]])
    np.testing.assert_allclose(embedder.pairwise_distances(some)[0, 1], far[9, 2], rtol=1e-5)
    distances, rows = embedder.kneighbors(n_neighbors=4)
    theirs = NearestNeighbors(n_neighbors=4, metric="precomputed").fit(far).kneighbors()
    np.testing.assert_allclose(distances, theirs[0], rtol=1e-4)
    assert (embedder.kneighbors(some, 4, return_distance=False) == rows[[9, 2]]).all()
    labels = AgglomerativeClustering(3, metric="precomputed", linkage="average").fit_predict(far)
    assert set(labels) == {0, 1, 2}
    with pytest.raises(UsageError, match="n_neighbors must be from 1 to 14"):
        embedder.kneighbors(n_neighbors=15)


def test_flat_vectors(embedder):
    vectors = embedder.flatten(5)
    assert (vectors.shape, vectors.dtype) == ((15, 5), np.float32)
    assert 0 < embedder.flat_map_ <= 100


def test_a_fitted_graph_can_be_explored(embedder, tree, tmp_path):
    with pytest.raises(NotFittedError):
        gf.GraphEmbedder(**QUICK).explore()
    table = tmp_path / "more.csv"
    table.write_text("node,height\nleaf 0,1\nleaf 3,2\n")
    found = embedder.explore(node_data=table, height=640)
    about, _ = page_block(found.page)
    assert about["graphs"][0]["ids"] == list(tree)
    assert about["runs"][0]["columns"][-1]["name"] == "height"
    inline = found._repr_html_()
    assert 'height="640"' in inline
    assert html.unescape(inline.split('srcdoc="')[1].split('" width')[0]) == found.page
    assert found.save(tmp_path / "deep" / "page.html").read_text(encoding="utf-8") == found.page
    assert ".save(path)" in repr(found)
    with pytest.raises(DataError, match="cannot be written"):
        found.save(tmp_path)
