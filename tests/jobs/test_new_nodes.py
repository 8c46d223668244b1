"""Nodes that a run was not trained on: placed by their edges or by the model, and what cannot be placed."""

import json

import networkx as nx
import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import gyroformer as gf
from gyroformer.cli.app import app
from gyroformer.errors import DataError, UsageError

HIDDEN = ["Javert", "Cosette", "Enjolras", "Combeferre"]


def told(*words):
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a run on a graph without some nodes, and the edges of these."""
    path = tmp_path_factory.mktemp("new")
    graph = nx.les_miserables_graph()
    lines = {True: [], False: []}
    for a, b in graph.edges:
        lines[a in HIDDEN or b in HIDDEN].append(f"{a},{b}")
    (path / "known.csv").write_text("\n".join(lines[False]) + "\n")
    (path / "added.csv").write_text("\n".join(lines[True]) + "\n")
    done = told(
        "embed", path / "known.csv", "--no-header", "--epochs", 100, "--out", path / "run", "--threads", 1
    )
    assert done.exit_code == 0, done.stderr
    return path


def test_new_nodes_are_near_their_neighbours(folder):
    done = told(
        "predict", folder / "run", "--add", folder / "added.csv", "--no-header", "--nearest", 5, "--json"
    )
    assert done.exit_code == 0, done.stderr
    said = json.loads(done.stdout)
    graph = nx.les_miserables_graph()
    assert sorted(said["ids"]) == sorted(HIDDEN)  # the new ones are asked about
    hits = [row["neighbour"] in graph[row["node"]] for row in said["nearest"]]
    assert len(hits) == 20
    # by chance about one in four would be
    assert np.mean(hits) > 0.7
    assert all(row["distance"] < 20 for row in said["nearest"])


def test_known_nodes_stay_where_they_are(folder):
    before = told("predict", folder / "run", "--distance", "Valjean", "Marius", "--json")
    words = ("--add", folder / "added.csv", "--no-header", "--distance", "Valjean", "Marius", "--json")
    after = told("predict", folder / "run", *words)
    first, second = (json.loads(one.stdout)["distances"] for one in (before, after))
    assert first == second


def test_all_nodes_are_written(folder):
    out = folder / "points.csv"
    done = told("predict", folder / "run", "--add", folder / "added.csv", "--no-header", "--embeddings", out)
    assert done.exit_code == 0, done.stderr
    ids = [line.split(",")[0] for line in out.read_text().splitlines()[1:]]
    assert set(HIDDEN) <= set(ids)
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    "text, words, code, message",
    [
        ("Valjean,Marius\n", [], 2, "known already"),
        ("Rocinante,Dulcinea\n", [], 3, "no edge or path to a known node"),
        ("Rocinante,Valjean\n", ["known.csv"], 2, "leave GRAPH out"),
        ("Rocinante,Valjean\n", ["--features", "known.csv"], 2, "takes no features"),
    ],
)
def test_what_cannot_be_placed_is_named(folder, text, words, code, message):
    (folder / "other.csv").write_text(text)
    words = [folder / word if word.endswith(".csv") else word for word in words]
    done = told("predict", folder / "run", *words, "--add", folder / "other.csv", "--no-header")
    assert done.exit_code == code
    assert message in done.stderr


def test_nodes_that_know_only_new_ones_follow_these(folder):
    (folder / "chain.csv").write_text("Valjean,Rocinante\nRocinante,Dulcinea\n")
    done = told(
        "predict", folder / "run", "--add", folder / "chain.csv", "--no-header", "--nearest", 1, "--json"
    )
    said = {row["node"]: row["neighbour"] for row in json.loads(done.stdout)["nearest"]}
    assert said["Dulcinea"] == "Rocinante"
    assert set(said) == {"Rocinante", "Dulcinea"}


def test_edges_between_known_nodes_are_said_to_move_nothing(folder, caplog):
    (folder / "more.csv").write_text("Valjean,Rocinante\nNapoleon,Marius\n")
    told("predict", folder / "run", "--add", folder / "more.csv", "--no-header", "--json")
    assert "1 of the added edges are between known nodes" in caplog.text


def test_of_a_link_run_probabilities_know_the_new_nodes(folder):
    run = folder / "links"
    done = told("link", folder / "known.csv", "--no-header", "--epochs", 60, "--out", run, "--threads", 1)
    assert done.exit_code == 0, done.stderr
    words = ("--add", folder / "added.csv", "--no-header", "--json", "--distance")
    near = told("predict", run, *words, "Javert", "Valjean")
    far = told("predict", run, *words, "Javert", "Napoleon")
    chances = [json.loads(one.stdout)["distances"][0]["probability"] for one in (near, far)]
    assert chances[0] > chances[1]
    found = told("predict", run, "--add", folder / "added.csv", "--no-header", "--for", "Javert", "--json")
    ends = {row["target"] for row in json.loads(found.stdout)["new_edges"]}
    assert not ends & set(nx.les_miserables_graph()["Javert"])  # edges that were added are not new


@pytest.fixture(scope="module")
def featured(tmp_path_factory):
    """Return a folder with a classify run on nodes with features."""
    path = tmp_path_factory.mktemp("featured")
    stream = np.random.default_rng(0)
    group = np.arange(60) % 2
    pairs = [
        (a, b)
        for a in range(60)
        for b in range(a)
        if stream.random() < (0.2 if group[a] == group[b] else 0.01)
    ]
    columns = stream.normal(size=(60, 2)) + 3 * np.eye(2)[group]
    known = [(a, b) for a, b in pairs if a < 50]
    (path / "edges.csv").write_text("".join(f"n{a},n{b}\n" for a, b in known))
    (path / "added.csv").write_text("".join(f"n{a},n{b}\n" for a, b in pairs if a >= 50))
    ids = sorted({node for pair in known for node in pair})
    rows = [f"n{i},{columns[i][0]:.3f},{columns[i][1]:.3f}\n" for i in range(60)]
    (path / "x.csv").write_text("id,a,b\n" + "".join(rows[i] for i in ids))
    (path / "new_x.csv").write_text("id,a,b\n" + "".join(rows[50:]))
    (path / "y.csv").write_text("id,label\n" + "".join(f"n{i},{'odd' if i % 2 else 'even'}\n" for i in ids))
    words = ("--features", path / "x.csv", "--labels", path / "y.csv", "--epochs", 40, "--threads", 1)
    done = told("classify", path / "edges.csv", "--no-header", *words, "--out", path / "run")
    assert done.exit_code == 0, done.stderr
    return path


def test_a_model_with_features_labels_new_nodes(featured):
    words = (
        "--add",
        featured / "added.csv",
        "--no-header",
        "--features",
        featured / "new_x.csv",
        "--labels",
        "--json",
    )
    done = told("predict", featured / "run", *words)
    assert done.exit_code == 0, done.stderr
    labels = {row["node"]: row["label"] for row in json.loads(done.stdout)["labels"]}
    assert set(labels) <= {f"n{i}" for i in range(50, 60)}
    right = [label == ("odd" if int(node[1:]) % 2 else "even") for node, label in labels.items()]
    assert np.mean(right) > 0.8


def test_features_that_lack_a_new_node_are_named(featured):
    words = ("--add", featured / "added.csv", "--no-header")
    assert "--features FILE" in told("predict", featured / "run", *words).stderr
    done = told("predict", featured / "run", *words, "--features", featured / "x.csv")
    assert done.exit_code == 3
    assert "no row for the new node" in done.stderr


def test_an_embedder_that_knows_more_nodes(folder):
    graph = nx.les_miserables_graph()
    known = graph.subgraph([node for node in graph if node not in HIDDEN])
    embedder = gf.GraphEmbedder(epochs=100, random_state=0).fit(known)
    edges = [(a, b) for a, b in graph.edges if a in HIDDEN or b in HIDDEN]
    more = embedder.add(edges)
    assert len(more.ids_) == len(embedder.ids_) + len(HIDDEN)
    np.testing.assert_array_equal(more.embedding_[: len(embedder.ids_)], embedder.embedding_)
    assert more.nearest("Javert", 1)[0][0] in graph["Javert"]
    assert more.pairwise_distances(["Javert", "Valjean"]).shape == (2, 2)
    assert more.flatten(8).shape == (77, 8)
    assert "Javert" not in embedder.ids_
    rows = embedder.transform(graph)  # all nodes, in the order of the graph
    index = list(graph).index("Javert")
    np.testing.assert_array_equal(rows[index], more.embedding_[list(more.ids_).index("Javert")])
    with pytest.raises(UsageError, match="known already"):
        embedder.add([("Valjean", "Marius")])
    with pytest.raises(DataError, match="no edge or path"):
        embedder.add([("a", "b")])
    lonely = nx.Graph(graph)
    lonely.add_node("Rocinante")
    with pytest.raises(DataError, match="'Rocinante'"):
        embedder.transform(lonely)


def test_a_node_without_edges_in_the_run_is_placed_anew():
    graph = nx.les_miserables_graph()
    known = nx.Graph(graph.subgraph([node for node in graph if node != "Myriel"]))
    alone = [node for node in known if known.degree(node) == 0]
    assert alone
    embedder = gf.GraphEmbedder(epochs=100, random_state=0).fit(known)
    more = embedder.add([("Myriel", other) for other in graph["Myriel"]])
    moved = np.abs(more.embedding_[: len(embedder.ids_)] - embedder.embedding_).max(1) > 0
    assert set(embedder.ids_[moved]) == set(alone)
    assert more.distance("Myriel", alone[0]) < np.median([more.distance("Myriel", n) for n in known])
    assert torch.isfinite(torch.from_numpy(more.embedding_)).all()


def test_a_hierarchy_takes_no_new_nodes():
    tree = nx.balanced_tree(2, 3, create_using=nx.DiGraph)
    embedder = gf.GraphEmbedder(hierarchy=True, epochs=2, random_state=0).fit(tree)
    with pytest.raises(UsageError, match="cannot be placed in a hierarchy"):
        embedder.add([(100, 0)])
