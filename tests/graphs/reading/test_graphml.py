import gzip
import time

import networkx as nx
import pytest

from gyroformer.errors import DataError
from gyroformer.graphs.reading.read import read_graph

NS = 'xmlns="http://graphml.graphdrawing.org/xmlns"'


def document(body, keys=""):
    graph = f'<graph edgedefault="undirected">\n{body}\n</graph>'
    return f'<?xml version="1.0"?>\n<graphml {NS}>{keys}\n{graph}</graphml>'


SUFFIX = ".graphml"


def test_what_networkx_writes(tmp_path):
    graph = nx.Graph()
    graph.add_node("alone <&> \"'é")
    graph.add_edge("a", "b", weight=0.5, colour="red")
    graph.add_edge("b", "c d", weight=2.0)
    nx.write_graphml(graph, tmp_path / "g.graphml")
    data = read_graph(tmp_path / "g.graphml")
    assert data.ids == ["alone <&> \"'é", "a", "b", "c d"]
    assert data.edge_index.tolist() == [[1, 2, 2, 3], [2, 1, 3, 2]]
    assert data.edge_weight.tolist() == [0.5, 0.5, 2.0, 2.0]


def test_edges_before_nodes_default_weight_and_packing(write):
    keys = '<key id="w" for="edge" attr.name="weight" attr.type="double"><default>3</default></key>'
    body = (
        '<edge source="2" target="1"><data key="w"> 0.5 </data></edge><edge source="1" target="5"/>'
        '<node id="1"/><node id="2"/><node id="5"/>'
    )
    data = read_graph(write(gzip.compress(document(body, keys).encode()), "g.graphml.gz"))
    assert data.ids == [1, 2, 5]
    assert data.edge_weight.tolist() == [0.5, 3.0, 0.5, 3.0]


def test_utf16_and_no_namespace(write):
    text = '<?xml version="1.0" encoding="UTF-16"?>'
    text += '<graphml><graph><node id="é"/><node id="b"/></graph></graphml>'
    assert read_graph(write(text.encode("utf-16"))).ids == ["é", "b"]


def test_a_document_type_is_refused_at_once(write):
    entities = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
    bomb = (
        f'<?xml version="1.0"?>\n<!DOCTYPE graphml [<!ENTITY e0 "ha">{entities}]>\n<graphml>&e11;</graphml>'
    )
    start = time.perf_counter()
    with pytest.raises(DataError, match=r":2: a document type declaration .DTD"):
        read_graph(write(bomb))
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize(
    "content, line, words",
    [
        ("", 1, "not well-formed"),
        ("<html/>", 1, "not 'graphml'"),
        (document('<node id="a"/>')[:-12], 5, "not well-formed"),
        (document('<node id="a"/>\n<node id="a"/>'), 5, "second node with the id 'a'"),
        (document('<node id="a"/>\n<edge source="a" target="b"/>'), 5, "'b', which is not a declared node"),
        (document('<node id="a"/>\n<edge source="a"/>'), 5, "without the attribute 'target'"),
        (document("<node/>"), 4, "without the attribute 'id'"),
        (document(""), None, "no node is declared"),
        (document('<node id="a"/></graph>\n<graph><node id="b"/>'), 5, "second graph"),
        (document('<node id="a"/><hyperedge/>'), 4, "hyperedge"),
        (
            document(
                '<node id="a"/><edge source="a" target="a"><data key="w">x</data></edge>',
                '<key id="w" for="edge" attr.name="weight"/>',
            ),
            4,
            "weight 'x'",
        ),
        ('<?xml version="1.0" encoding="klingon"?><graphml/>', 1, "not well-formed|cannot be decoded"),
        (b"\xff\xfe<\x00g", 1, "not well-formed"),
    ],
)
def test_bad_files(write, content, line, words):
    path = write(content)
    with pytest.raises(DataError, match=words) as caught:
        read_graph(path)
    assert str(caught.value).startswith(str(path) + (f":{line}: " if line else ":"))
    assert "\n" not in str(caught.value)


def test_max_nodes(write):
    with pytest.raises(DataError, match="the limit is 1"):
        read_graph(write(document('<node id="a"/><node id="b"/>')), max_nodes=1)
