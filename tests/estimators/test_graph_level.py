"""Classification and regression of whole graphs: what is learned, what is read, and wrong use."""

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from torch_geometric.data import Data

import gyroformer as gf
from gyroformer.errors import CorruptFileError, DataError, UsageError
from gyroformer.estimators.many_graphs import NodeColumns, walk_columns


def rings_and_stars(count=40):
    """Return rings and stars of 5 to 9 nodes, and which is which."""
    graphs, names = [], []
    for i in range(count):
        size = 5 + i % 5
        graphs.append(nx.cycle_graph(size) if i % 2 else nx.star_graph(size - 1))
        names.append("ring" if i % 2 else "star")
    return graphs, names


def quick(kind=gf.GraphClassifier, **options):
    return kind(
        **{"dim": 8, "heads": 2, "layers": 1, "epochs": 8, "batch_size": 8, "random_state": 0, **options}
    )


@pytest.fixture(scope="module")
def fitted():
    graphs, names = rings_and_stars()
    return quick().fit(graphs, names)


def test_it_learns_and_names_classes(fitted):
    graphs, names = rings_and_stars(20)
    assert fitted.classes_.tolist() == ["ring", "star"]
    assert fitted.score(graphs, names) == 1.0
    chances = fitted.predict_proba(graphs)
    assert chances.shape == (20, 2)
    np.testing.assert_allclose(chances.sum(1), 1)
    assert fitted.predict([nx.cycle_graph(12)]).tolist() == ["ring"]  # of a size that was not seen
    assert fitted.transform(graphs).shape == (20, 8)
    assert len(fitted.validation_) == 8
    assert fitted.results_["val_accuracy"] == 1.0
    assert fitted.curvatures_.shape == (1, 2)


def test_the_numbering_of_nodes_does_not_matter(fitted):
    graph = nx.lollipop_graph(4, 3)
    turned = nx.relabel_nodes(graph, {i: (5 * i) % 7 for i in range(7)})
    turned = nx.Graph(sorted(turned.edges))
    np.testing.assert_allclose(
        fitted.predict_proba([graph]), fitted.predict_proba([turned]), rtol=1e-4, atol=1e-5
    )


def test_a_graph_in_a_batch_is_the_graph_alone(fitted):
    graphs, _ = rings_and_stars(12)
    alone = np.concatenate([fitted.predict_proba([graph]) for graph in graphs])
    np.testing.assert_allclose(fitted.predict_proba(graphs), alone, rtol=1e-4, atol=1e-5)


def test_repeatable_clonable_and_in_scikit_learn():
    graphs, names = rings_and_stars(30)
    one, two = (quick(epochs=2).fit(graphs, names).predict_proba(graphs) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert clone(quick(dim=4)).get_params()["dim"] == 4
    assert len(cross_val_score(quick(epochs=2), graphs, names, cv=3)) == 3


def test_stops_when_nothing_gets_better():
    graphs, names = rings_and_stars()
    found = quick(epochs=50, patience=2, lr=0.0, curvature_lr=0.0).fit(graphs, names)
    assert found.results_["stopped"] == "patience"
    assert found.results_["epochs"] == 3


def test_progress_is_printed(capsys):
    graphs, names = rings_and_stars(20)
    quick(epochs=2, verbose=True).fit(graphs, names)
    assert "pass 1/2  loss" in capsys.readouterr().out


def test_words_and_numbers_of_nodes():
    paths = []
    for i in range(40):
        graph = nx.path_graph(4)
        nx.set_node_attributes(graph, dict.fromkeys(graph, "acid" if i % 2 else "base"), "kind")
        nx.set_node_attributes(graph, {n: 1000.0 + n for n in graph}, "mass")
        paths.append(graph)
    labels = [i % 2 for i in range(40)]
    found = quick(features=["kind", "mass"], walks=0).fit(paths, labels)
    assert found.score(paths, labels) == 1.0
    columns = found.columns_
    assert columns.words == (("acid", "base"), None)
    read = columns.read(paths[:1], torch.float32)[0].x
    # numbers first, brought to mean 0 and deviation 1; a column for each word
    assert read.shape == (4, 3)
    assert read[:, 0].mean().abs() < 1e-5
    assert read[0, 1:].tolist() == [0.0, 1.0]
    strange = nx.path_graph(4)
    nx.set_node_attributes(strange, "salt", "kind")
    nx.set_node_attributes(strange, 1001.0, "mass")
    assert columns.read([strange], torch.float32)[0].x[0, 1:].tolist() == [0.0, 0.0]


def test_data_with_features_of_nodes_and_edges():
    torch.manual_seed(0)
    graphs = []
    for i in range(40):
        edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        sign = 1.0 if i % 2 else -1.0
        graphs.append(
            Data(
                x=torch.ones(3, 2),
                edge_index=edges,
                edge_attr=torch.full((4, 1), sign),
                y=torch.tensor([i % 2]),
            )
        )
    found = quick(epochs=15).fit(graphs)  # its own y
    assert found.model_.options.edge_features == 1
    assert found.score(graphs, [i % 2 for i in range(40)]) == 1.0


@pytest.mark.parametrize("several", [False, True])
def test_regression(several, tmp_path):
    graphs = [nx.cycle_graph(n) if n % 2 else nx.star_graph(n - 1) for n in range(4, 24)]
    y = np.array([100.0 + 5 * (n % 2) for n in range(4, 24)])
    y = np.stack((y, -y), 1) if several else y
    found = quick(gf.GraphRegressor, epochs=40).fit(graphs, y)
    assert found.predict(graphs).shape == y.shape
    assert found.score(graphs, y) > 0.9
    found.save(tmp_path / "kept")
    np.testing.assert_array_equal(
        gf.GraphRegressor.load(tmp_path / "kept").predict(graphs), found.predict(graphs)
    )


def test_saved_and_loaded(fitted, tmp_path):
    graphs, _ = rings_and_stars(6)
    fitted.save(tmp_path / "kept")
    again = gf.GraphClassifier.load(tmp_path / "kept")
    np.testing.assert_array_equal(again.predict_proba(graphs), fitted.predict_proba(graphs))
    assert again.classes_.tolist() == fitted.classes_.tolist()
    assert again.get_params()["epochs"] == 8
    with pytest.raises(DataError, match="holds no GraphRegressor"):
        gf.GraphRegressor.load(tmp_path / "kept")
    (tmp_path / "kept" / "model.safetensors").write_bytes(b"no")
    with pytest.raises(CorruptFileError):
        gf.GraphClassifier.load(tmp_path / "kept")


def test_walks_are_the_chances_to_be_back():
    square = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
    columns = walk_columns(square, 5, 3)  # node 4 has no edge
    torch.testing.assert_close(columns[0], torch.tensor([np.log(3), 0.5, 0.0, 0.5]).float())
    assert columns[4].tolist() == [0, 0, 0, 0]


def test_columns_are_learned_from_training_graphs_alone():
    graphs, names = rings_and_stars(20)
    outlier = nx.complete_graph(9)
    held = np.arange(21) == 20
    found = quick(epochs=1).fit([*graphs, outlier], [*names, "ring"], val=held)
    want = NodeColumns.learn(graphs, None, walks=8)
    torch.testing.assert_close(found.columns_.mean, want.mean)
    assert found.validation_.tolist() == [20]


GRAPHS, NAMES = rings_and_stars(10)


@pytest.mark.parametrize(
    "build, message",
    [
        (lambda: quick().fit(GRAPHS, NAMES[:5]), "a target for each of the 10 graphs"),
        (lambda: quick().fit(GRAPHS), "graph 0 has no y of its own"),
        (lambda: quick().fit(GRAPHS[0], NAMES), "put it into a list"),
        (lambda: quick().fit([], []), "no graph in the list"),
        (lambda: quick().fit(GRAPHS, ["a"] * 10), "1 class"),
        (lambda: quick().fit(GRAPHS, [None, *NAMES[1:]]), "graph 0 has no label"),
        (lambda: quick().fit(GRAPHS, np.linspace(0, 1, 10)), "see GraphRegressor"),
        (lambda: quick(model="gcn").fit(GRAPHS, NAMES), "'fpst' or 'tokengt'"),
        (lambda: quick(features="kind").fit(GRAPHS, NAMES), r"e\.g\. \['kind'\]"),
        (lambda: quick(features=["kind"]).fit(GRAPHS, NAMES), r"graph \d: no node has the attribute 'kind'"),
        (lambda: quick(model_options={"dim": 4}).fit(GRAPHS, NAMES), "dim cannot be one of model_options"),
        (lambda: quick(validation_fraction=0.0).fit(GRAPHS, NAMES), "validation_fraction must be"),
        (lambda: quick().fit([*GRAPHS[:9], nx.Graph()], NAMES), "graph 9"),
        (lambda: quick(gf.GraphRegressor).fit(GRAPHS, NAMES), "a finite number for each graph"),
        (
            lambda: quick().fit(
                [*GRAPHS[:9], Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]))], NAMES
            ),
            "feature columns",
        ),
    ],
)
def test_wrong_use_is_named(build, message):
    with pytest.raises((UsageError, DataError), match=message):
        build()
