"""Every format gives back the graph that was written, and no bytes give anything but a graph or an error."""

import csv
import gzip
import io
import os
import string
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.reading.read import SUFFIXES, read_graph

# Anything that a text file can hold on a line; edge lists split on blanks get no blank in their ids.
letters = st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp", "Zs", "Cs"))
texts = st.text(letters, min_size=1, max_size=8)
spaced = st.text(st.one_of(letters, st.just(" ")), min_size=1, max_size=8).map(str.strip).filter(bool)
integers = st.integers(-(2**70), 2**70)


def graphs(names):
    return st.lists(st.tuples(names, names), min_size=1, max_size=12)


def links(data):
    """The edges as a set of unordered pairs of names."""
    return {frozenset((str(data.ids[u]), str(data.ids[v]))) for u, v in data.edge_index.T.tolist()}


def expected(edges):
    return {frozenset((str(u), str(v))) for u, v in edges if u != v}


def order(edges):
    return list(dict.fromkeys(str(name) for edge in edges for name in edge))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("graphs")


def check(path, edges, **options):
    data = read_graph(path, **options)
    assert links(data) == expected(edges)
    assert [str(name) for name in data.ids] == order(edges)
    assert data.summary.listed_edges == len(edges)
    return data


@settings(deadline=None)  # a file each time
@given(
    graphs(integers),
    st.sampled_from([" ", "\t", ",", ";", "  "]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_edge_lists_of_integers(folder, edges, sign, end, packed):
    content = "".join(f"{u}{sign}{v}{end}" for u, v in edges).encode()
    path = folder / ("i.txt.gz" if packed else "i.txt")
    path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
    data = check(path, edges)
    assert all(type(name) is int for name in data.ids)


@settings(deadline=None)  # a file each time
@given(graphs(spaced), st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]))
@example([("source", "target"), ("a", "b")], "utf-8")
def test_quoted_csv_of_text(folder, edges, encoding):
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(["source", "target"])
    writer.writerows(edges)
    (folder / "t.csv").write_bytes(text.getvalue().encode(encoding))
    check(folder / "t.csv", edges)


@settings(deadline=None)  # a file each time
@given(graphs(texts.filter(lambda name: name[0] not in "#%" and '"' not in name)))
def test_edge_lists_of_text(folder, edges):
    (folder / "t.tsv").write_text("".join(f"{u}\t{v}\n" for u, v in edges), encoding="utf-8")
    check(folder / "t.tsv", edges, header=False, delimiter="\t")
    (folder / "t.edges").write_text("".join(f"{u} {v}\n" for u, v in edges), encoding="utf-8")
    check(folder / "t.edges", edges, header=False, delimiter=" ")


@settings(deadline=None)  # a file each time
@given(graphs(st.text(string.ascii_letters + string.digits, min_size=3, max_size=6)))
def test_networkx_edge_lists(folder, edges):
    graph = nx.Graph(edges)
    nx.write_edgelist(graph, folder / "n.edgelist")
    assert links(read_graph(folder / "n.edgelist", header=False)) == expected(edges)


@settings(deadline=None)  # a file each time
@given(graphs(spaced))
def test_graphml_and_gml(folder, edges):
    graph = nx.Graph()
    for u, v in edges:
        graph.add_edge(u, v)
    nx.write_graphml_xml(graph, folder / "n.graphml")
    nx.write_gml(graph, folder / "n.gml")
    for name in ("n.graphml", "n.gml"):
        data = read_graph(folder / name)
        assert links(data) == expected(edges)
        assert [str(node) for node in data.ids] == order(edges)


@settings(deadline=None)  # a file each time
@given(graphs(st.integers(0, 6)), st.integers(7, 9))
def test_matrices_and_archives(folder, edges, nodes):
    ends = np.array(edges).T
    matrix = sp.coo_array((np.ones(len(edges)), ends), shape=(nodes, nodes))
    lines = "".join(f"{u + 1} {v + 1}\n" for u, v in edges)
    header = f"%%MatrixMarket matrix coordinate pattern general\n{nodes} {nodes} {len(edges)}\n"
    (folder / "m.mtx").write_text(header + lines)
    np.savez(folder / "e.npz", edge_index=ends, num_nodes=nodes)
    sp.save_npz(folder / "s.npz", matrix)
    for name, first in (("m.mtx", 1), ("e.npz", 0), ("s.npz", 0)):
        data = read_graph(folder / name)
        assert data.ids == list(range(first, first + nodes))
        assert links(data) == expected([(u + first, v + first) for u, v in edges])


SEEDS = {
    "g.txt": b"# c\n1 2\n2 3\n3 1\n",
    "g.csv": b'source,target,weight\n"a",b,1\nb,c,2.5\n',
    "g.txt.gz": gzip.compress(b"1 2\n2 3\n3 1\n" * 20, mtime=0),
    "g.mtx": b"%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 1.5\n3 1 2\n",
    "g.graphml": b'<graphml><key id="w" for="edge" attr.name="weight"/><graph><node id="a"/><node id="b"/>'
    b'<edge source="a" target="b"><data key="w">2</data></edge></graph></graphml>',
    "g.gml": b'graph [ node [ id 1 label "a&amp;b" ] node [ id 2 label "b" ] '
    b"edge [ source 1 target 2 weight 2 ] ]",
}


def archive():
    buffer = io.BytesIO()
    np.savez(buffer, edge_index=np.array([[0, 1], [1, 2]]), x=np.ones((3, 2)), y=np.array([0, 1, 0]))
    return buffer.getvalue()


SEEDS["g.npz"] = archive()


def outcome(path):
    """Read, and insist on a graph or an error that names the file on one line."""
    try:
        data = read_graph(path)
    except DataError as error:
        message = str(error)
    else:
        assert isinstance(data, Data)
        assert data.num_nodes >= 1
        data.validate()
        return
    assert message.startswith(str(path))
    assert "\n" not in message


@pytest.mark.parametrize("name", SEEDS)
def test_every_truncation(folder, name):
    for length in range(len(SEEDS[name])):
        (folder / name).write_bytes(SEEDS[name][:length])
        outcome(folder / name)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(SEEDS)), st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1))
def test_changed_bytes(folder, name, changes):
    content = bytearray(SEEDS[name])
    for place, value in changes:
        content[place % len(content)] = value
    (folder / name).write_bytes(bytes(content))
    outcome(folder / name)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(SEEDS)), st.binary(max_size=200))
def test_random_bytes(folder, name, content):
    (folder / name).write_bytes(content)
    outcome(folder / name)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["g.txt", "g.csv", "g.tsv", "g.mtx", "g.gml"]),
    st.text("01 ,;\t\n\"'#%{}[]ab.-eé", max_size=40),
)
def test_random_text(folder, name, content):
    head = "%%MatrixMarket matrix coordinate real general\n" if name == "g.mtx" else ""
    (folder / name).write_text(head + content, encoding="utf-8")
    outcome(folder / name)


def test_nothing_is_written(folder):
    place = folder / "quiet"
    place.mkdir()
    (place / "bad.csv").write_text("source,target\n")
    with pytest.raises(DataError):
        read_graph(place / "bad.csv")
    assert [item.name for item in place.iterdir()] == ["bad.csv"]


def test_paths_that_are_no_graph_files(tmp_path):
    (tmp_path / "graph.csv").write_text("1,2\n")
    with pytest.raises(UsageError, match=r"no file .*did you mean 'graph.csv'"):
        read_graph(tmp_path / "grpah.csv")
    with pytest.raises(UsageError, match="is a folder"):
        read_graph(tmp_path)
    with pytest.raises(UsageError, match="no file"):
        read_graph(tmp_path / "graph.csv", features=tmp_path / "missing.csv")
    with pytest.raises(UsageError, match="no file"):
        read_graph("a\0b.txt")
    with pytest.raises(UsageError, match="cannot be a file"):
        read_graph("a" * 5000 + ".txt")
    (tmp_path / "graph.pkl").write_text("1,2\n")
    with pytest.raises(DataError, match=r"unknown suffix '.pkl': use one of .txt .csv"):
        read_graph(tmp_path / "graph.pkl")
    np.savez(tmp_path / "g.npz", edge_index=np.array([[0], [1]]))
    with pytest.raises(UsageError, match="for edge lists"):
        read_graph(tmp_path / "g.npz", delimiter=",")


def test_suffixes_in_capitals(tmp_path):
    (tmp_path / "G.CSV").write_text("1,2\n")
    assert read_graph(tmp_path / "G.CSV").ids == [1, 2]
    assert ".npz" in SUFFIXES


DATA = os.environ.get("GYROFORMER_DATA")


@pytest.mark.data
@pytest.mark.skipif(not DATA, reason="GYROFORMER_DATA is not set")
@pytest.mark.parametrize(
    "name, nodes, edges",
    [
        ("web-edu/web-edu.edges.csv", 3031, 6474),
        ("power/power.edges.csv", 4941, 6594),
        ("facebook/facebook.edges.csv", 4039, 88234),
        ("bio-worm/bio-wormnet.edges.csv", 2274, 78328),
        ("networks/karate/karate.edges", 34, 78),
        ("networks/email-Enron/email-Enron.txt.gz", 36692, 183831),
        ("networks/ca-AstroPh/ca-AstroPh.txt.gz", 18772, 198050),
        ("networks/musae-facebook/edges.csv", 22470, 170823),
        ("wordnet/mammal_closure.csv", 1180, 6540),
        ("wordnet/noun_closure.csv.gz", 82115, 742618),
        ("wordnet/noun_hypernyms.csv.gz", 82115, 84427),
        ("airport/airport.npz", 3188, 18630),
        ("amazon/Computers/raw/amazon_electronics_computers.npz", 13752, 245861),
    ],
)
def test_real_files(name, nodes, edges):
    data = read_graph(Path(DATA) / name)
    assert (data.summary.nodes, data.summary.edges) == (nodes, edges)
