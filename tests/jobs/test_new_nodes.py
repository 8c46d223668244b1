"""Nodes that a run was not trained on: placed by their edges or by the model, and what cannot be placed."""

import json

import networkx as nx
import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import gyroformer as gf
from gyroformer.cli.app import app
from gyroformer.compiled import torch_forms
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


def test_known_nodes_give_way_only_where_the_user_lets_them(folder):
    words = ("--add", folder / "added.csv", "--no-header", "--json", "--nearest", 5)
    stay, move = (
        json.loads(told("predict", folder / "run", *words, *more).stdout) for more in ([], ["--adjust"])
    )
    assert (stay["added"], stay["moved"]) == (4, 0)
    assert (move["added"], move["moved"] > 0) == (4, True)
    graph = nx.les_miserables_graph()
    hits = [row["neighbour"] in graph[row["node"]] for row in move["nearest"]]
    assert np.mean(hits) > 0.7
    again = told("predict", folder / "run", *words, "--adjust")
    assert json.loads(again.stdout) == move  # the same each time
    shown = told("predict", folder / "run", "--add", folder / "added.csv", "--no-header", "--adjust")
    assert "known nodes are not where the run had them" in shown.stdout


def test_far_nodes_do_not_give_way():
    # a ring: a new node between two places that are far apart brings these together
    ring = nx.cycle_graph(80)
    embedder = gf.GraphEmbedder(epochs=150, random_state=0).fit(ring)
    edges = [("new", 0), ("new", 40)]
    stay, move = embedder.add(edges), embedder.add(edges, adjust=True)
    np.testing.assert_array_equal(stay.embedding_[:80], embedder.embedding_)
    moved = np.abs(move.embedding_[:80] - embedder.embedding_).max(1) > 0
    assert set(move.ids_[:80][moved]) == {79, 0, 1, 39, 40, 41}  # two steps from the new node
    assert move.distance(0, 40) < 0.8 * stay.distance(0, 40)
    near = {node for node, _ in move.nearest("new", 2)}
    assert near == {0, 40}


def test_known_nodes_give_way_without_a_compiler_too():
    ring = nx.cycle_graph(30)
    embedder = gf.GraphEmbedder(epochs=100, random_state=0).fit(ring)
    with torch_forms():
        more = embedder.add([("new", 0), ("new", 15)], adjust=True)
    assert {node for node, _ in more.nearest("new", 2)} == {0, 15}


def test_a_run_by_the_inner_product_places_no_nodes():
    embedder = gf.GraphEmbedder(model="points", rank_by="dot", epochs=2).fit([("a", "b"), ("b", "c")])
    with pytest.raises(UsageError, match="ranks neighbours by the inner product"):
        embedder.add([("c", "d")])


def test_adjust_is_refused_where_it_has_no_effect(folder, featured):
    done = told("predict", folder / "run", "--adjust")
    assert done.exit_code == 2
    assert "--add FILE" in done.stderr
    words = ("--add", featured / "added.csv", "--no-header", "--features", featured / "new_x.csv", "--adjust")
    done = told("predict", featured / "run", *words)
    assert done.exit_code == 2
    assert "--adjust has no effect" in done.stderr


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Return a folder with a run on a hierarchy, edges from a node to its ancestor, and an added leaf and branch."""
    path = tmp_path_factory.mktemp("tree")
    lines = [f"n{child},n{(child - 1) // 3}" for child in range(1, 40)]
    (path / "tree.csv").write_text("\n".join(lines) + "\n")
    # below n5; and one above n39 and n40, which are new too, below n2
    (path / "added.csv").write_text("leaf,n5\nbranch,n2\ntwig,branch\nother,branch\n")
    words = (
        "--hierarchy",
        "--closure",
        "--ancestor",
        "target",
        "--no-header",
        "--epochs",
        300,
        "--threads",
        1,
    )
    done = told("embed", path / "tree.csv", *words, "--out", path / "run")
    assert done.exit_code == 0, done.stderr
    return path


def test_new_nodes_of_a_hierarchy_find_their_ancestors(tree):
    words = ("--add", tree / "added.csv", "--no-header", "--ancestors", 3, "--json")
    done = told("predict", tree / "run", *words)
    assert done.exit_code == 0, done.stderr
    said = json.loads(done.stdout)
    found = {
        name: [row["ancestor"] for row in said["ancestors"] if row["node"] == name] for name in said["ids"]
    }
    assert set(found) == {"leaf", "branch", "twig", "other"}
    # those that follow from the added edges are ancestors too: the run was made with --closure
    assert set(found["leaf"]) == {"n5", "n1", "n0"}
    assert set(found["branch"][:2]) == {"n2", "n0"}
    assert set(found["twig"]) == {"branch", "n2", "n0"}
    given = {(row["node"], row["ancestor"]): row["given"] for row in said["ancestors"]}
    assert given["leaf", "n1"]
    assert said["moved"] == 0


def test_an_edge_that_closes_a_cycle_of_a_hierarchy_is_refused(tree):
    (tree / "cycle.csv").write_text("n0,top\ntop,n5\n")
    done = told("predict", tree / "run", "--add", tree / "cycle.csv", "--no-header")
    assert done.exit_code == 3
    assert "the graph has a cycle" in done.stderr


def test_an_embedder_of_a_hierarchy_that_knows_more_nodes():
    branches = nx.balanced_tree(2, 4, create_using=nx.DiGraph)  # from an ancestor to its descendant
    embedder = gf.GraphEmbedder(hierarchy=True, closure=True, epochs=300, random_state=0).fit(branches)
    more = embedder.add([(3, "new")])
    assert {node for node, _ in more.ancestors("new", 3)} == {3, 1, 0}
    assert embedder.ancestors(7, 3) == [(node, pytest.approx(score)) for node, score in more.ancestors(7, 3)]
    assert "new" not in list(embedder.ids_)


@pytest.mark.parametrize("adjust", [[], ["--adjust"]])
def test_a_directed_run_knows_where_edges_of_new_nodes_lead(tmp_path_factory, tmp_path, adjust):
    path = tmp_path_factory.getbasetemp() / "needs"
    if not path.exists():
        path.mkdir()
        steps = [(a, b) for a in range(40) for b in range(a + 1, min(a + 4, 40))]
        kept = [(a, b) for a, b in steps if 20 not in (a, b)]
        (path / "needs.csv").write_text("".join(f"p{a},p{b}\n" for a, b in kept))
        (path / "added.csv").write_text("".join(f"p{a},p{b}\n" for a, b in steps if 20 in (a, b)))
        words = ("--directed", "--no-header", "--epochs", 200, "--threads", 1)
        done = told("link", path / "needs.csv", *words, "--out", path / "run")
        assert done.exit_code == 0, done.stderr
        # every edge once, whichever way it leads
        shown = told("predict", path / "run").stdout
        assert f"39 nodes, {len(kept)} edges" in " ".join(shown.split())
    pairs = [("p20", "p22"), ("p22", "p20"), ("p20", "p2"), ("p18", "p20"), ("p20", "p18")]
    (tmp_path / "pairs.csv").write_text("".join(f"{a},{b}\n" for a, b in pairs))
    words = ("--add", path / "added.csv", "--no-header", *adjust, "--json")
    done = told("predict", path / "run", *words, "--pairs", tmp_path / "pairs.csv")
    assert done.exit_code == 0, done.stderr
    said = json.loads(done.stdout)
    chance = {(row["source"], row["target"]): row["probability"] for row in said["distances"]}
    assert chance["p20", "p22"] > chance["p22", "p20"]
    assert chance["p18", "p20"] > chance["p20", "p18"]
    assert chance["p20", "p22"] > chance["p20", "p2"]
    assert (said["moved"] > 0) == bool(adjust)
    listed = json.loads(told("predict", path / "run", *words, "--for", "p20", "--new-edges", 5).stdout)
    ends = {row["target"] for row in listed["new_edges"]}
    assert not ends & {"p21", "p22", "p23"}  # edges that were added are not new
