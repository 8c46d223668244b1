import networkx as nx
import pytest

from gyroformer.errors import DataError
from gyroformer.graphs.reading.read import read_graph

SUFFIX = ".gml"


def test_what_networkx_writes(tmp_path):
    graph = nx.Graph()
    graph.add_node('alone "&" é [x]')
    graph.add_edge("a", "b", weight=0.5, colour="red")
    graph.add_edge("b", "c d", weight=2.0, nested={"source": "no", "list": [1, 2]})
    nx.write_gml(graph, tmp_path / "g.gml")
    data = read_graph(tmp_path / "g.gml")
    assert data.ids == ['alone "&" é [x]', "a", "b", "c d"]
    assert data.edge_index.tolist() == [[1, 2, 2, 3], [2, 1, 3, 2]]
    assert data.edge_weight.tolist() == [0.5, 0.5, 2.0, 2.0]


def test_ids_where_labels_are_missing_or_repeated(write):
    body = (
        'Creator "x [ ] # y"\ngraph [ directed 0 # note ]\nnode [ id 7 label "p" ] node [ id 9 label "p" ]\n'
    )
    data = read_graph(write(body + "edge [ source 9 target 7 value 2 ] ]"))
    assert data.ids == [7, 9]
    assert data.edge_weight.tolist() == [2.0, 2.0]
    assert read_graph(write('graph [ node [ id 1 label "q" ] node [ id 2 ] ]')).ids == [1, 2]


def test_entities(write):
    labels = 'graph [ node [ id 1 label "&#128;&amp;&#x41;&nosuch;&#9999999;" ] ]'
    assert read_graph(write(labels)).ids == ["\x80&A&nosuch;&#9999999;"]


@pytest.mark.parametrize(
    "content, line, words",
    [
        ("", None, "no 'graph ['"),
        ("1 2\n2 3\n", None, "no 'graph ['"),
        ("graph [\nnode [ id 1 ]\n", None, "truncated"),
        ("graph [\n] ]", 2, "match the brackets"),
        ("graph [ node [ id ] ]", 1, "match the brackets"),
        ("[ ]", 1, "without a key"),
        ('graph [ "x" ]', 1, "where a key was expected"),
        ('graph [\nnode [ id "1 ]\n', 2, "never closed"),
        ("graph [ ]", None, "no node is declared"),
        ("graph [\nnode [ label 1 ]\n]", 2, "without 'id'"),
        ("graph [\nnode [ id 1 ]\nedge [ source 1 ]\n]", 3, "without 'target'"),
        ("graph [\nnode [ id 1 ]\nedge [ source 1 target 2 ]\n]", 3, "'2', which is not a declared node"),
        ("graph [\nnode [ id 1 ]\nnode [ id 1 ]\n]", 3, "second node"),
        ("graph [ node [ id 1 ] ]\ngraph [ ]", 2, "second graph"),
        ("graph [\nnode [ id 1 ]\nedge [ source 1 target 1 weight x ]\n]", 3, "weight 'x'"),
    ],
)
def test_bad_files(write, content, line, words):
    path = write(content)
    with pytest.raises(DataError) as caught:
        read_graph(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(path) + (f":{line}: " if line else ":"))
