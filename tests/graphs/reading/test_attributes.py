import builtins
import io

import numpy as np
import pytest

from gyroformer.errors import DataError, MissingPartError
from gyroformer.graphs.reading.read import read_graph


@pytest.fixture
def write(tmp_path):
    def write(content, name):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def graph(write):
    return write("a b\nc a\n", "graph.txt")


@pytest.mark.parametrize(
    "content, name",
    [
        ("id,one,two\nc,5,6\nb,3,4\na,1,2e0\n", "x.csv"),
        ("c,5,6\r\nb,3,4\r\na,1,2\r\n", "x.csv"),
        ("one\tnode_id\ttwo\n5\tc\t6\n3\tb\t4\n1\ta\t2\n", "x.tsv"),
        ('# note\nname;one;two\n"c";5;6\n"b";3;4\n"a";1;2\n', "x.csv"),
        ("c 5 6\nb 3 4\na 1 2\n", "x.txt"),
        ("who,one,two,label\nc,5,6,x\nb,3,4,y\na,1,2,x\n", "x.csv"),  # labels are no features
    ],
)
def test_features_follow_the_ids(write, graph, content, name):
    data = read_graph(graph, features=write(content, name))
    assert data.ids == ["a", "b", "c"]
    assert data.x.tolist() == [[1, 2], [3, 4], [5, 6]]


def test_one_file_for_both_and_words_as_labels(write, graph):
    table = write("id,one,label\nc,5,cat\nb,3,dog\na,1,cat\n", "t.csv")
    data = read_graph(graph, features=table, labels=table)
    assert data.x.tolist() == [[1], [3], [5]]
    assert data.y.tolist() == [0, 1, 0]
    assert data.label_names == ["cat", "dog"]


@pytest.mark.parametrize(
    "content", ["id,label\nb,2\na,0\nc,5\n", "b 2\na 0\nc 5\n", "id,kind\na,0.0\nb,2.0\nc,5.0\n"]
)
def test_numbers_as_labels_stay(write, graph, content):
    data = read_graph(graph, labels=write(content, "y.csv"))
    assert data.y.tolist() == [0, 2, 5]
    assert "label_names" not in data


def test_rows_of_other_nodes_become_nodes_without_edges(write):
    graph = write("7 3\n3 9\n", "g.txt")
    data = read_graph(graph, features=write("id,v\n3,1\n5,2\n7,3\n9,4\n", "x.csv"))
    assert data.ids == [7, 3, 9, 5]
    assert data.x.ravel().tolist() == [3, 1, 4, 2]
    assert data.summary.isolated == 1
    with pytest.raises(DataError, match="1 ids are not in the graph or its other table, '8'"):
        read_graph(graph, features=graph.parent / "x.csv", labels=write("3,1\n5,1\n7,1\n9,1\n8,1\n", "y.csv"))


def test_archives_with_and_without_ids(write, tmp_path):
    graph = write("2 0\n0 3\n", "g.txt")
    np.savez(tmp_path / "x.npz", x=np.arange(4.0))
    data = read_graph(graph, features=tmp_path / "x.npz")
    assert data.ids == [2, 0, 3, 1]  # row 1 is node 1, which no edge names
    assert data.x.ravel().tolist() == [2, 0, 3, 1]
    np.savez(tmp_path / "y.npz", y=np.array([1, 0, 2, 1]), ids=np.array([3, 2, 1, 0]))
    assert read_graph(graph, features=tmp_path / "x.npz", labels=tmp_path / "y.npz").y.tolist() == [
        0,
        1,
        1,
        2,
    ]
    one_based = write("2 1\n1 3\n", "h.txt")
    np.savez(tmp_path / "z.npz", x=np.arange(3.0))
    assert read_graph(one_based, features=tmp_path / "z.npz").x.ravel().tolist() == [1, 0, 2]
    with pytest.raises(DataError, match="named by text"):
        read_graph(write("a b\n", "t.txt"), features=tmp_path / "z.npz")


def test_parquet(graph, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pa.table(
        {"one": [5.0, 3.0, 1.0], "id": ["c", "b", "a"], "two": [6, 4, 2], "label": ["u", "v", "u"]}
    )
    parquet.write_table(table, tmp_path / "t.parquet", write_page_checksum=True)
    data = read_graph(graph, features=tmp_path / "t.parquet", labels=tmp_path / "t.parquet")
    assert data.x.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert data.y.tolist() == [0, 1, 0]
    holes = pa.table({"id": ["c", "b", "a"], "v": [1.0, None, 2.0]})
    parquet.write_table(holes, tmp_path / "h.parquet")
    with pytest.raises(DataError, match=r"h.parquet: row 1: feature column 'v' of node 'b' is nan"):
        read_graph(graph, features=tmp_path / "h.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match="not a valid parquet"):
        read_graph(graph, features=tmp_path / "bad.parquet")


def test_parquet_without_its_package(graph, write, monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingPartError, match=r"gyroformer\[parquet\]"):
        read_graph(graph, features=write("", "t.parquet"))


@pytest.mark.parametrize(
    "content, place, words",
    [
        ("", ":", "no data rows"),
        ("id,v\n", ":", "no data rows"),
        ("a\nb\nc\n", ":1:", "one column"),
        ("id,v,w\na,1,2\nb,1,nan\nc,1,2\n", ":3:", "feature column 'w' of node 'b' is 'nan'"),
        ("id,v,w\na,1,2\nb,1,\nc,1,2\n", ":3:", "feature column 'w' of node 'b' is ''"),
        ("id,v,w\na,1,2\nb,1,red\nc,1,2\n", ":3:", "is 'red'"),
        ("id,v,w\na,1,2\nb,1,1e99\nc,1,2\n", ":3:", "is '1e99'"),
        ("id,v,w\na,1,2\nb,1\nc,1,2\n", ":3:", "2 columns where 3"),
        ("id,v\na,1\nb,1\n", ":", "no row for 1 of the graph's 3 nodes, 'c'"),
        ("id,v\na,1\nb,1\nc,1\nb,2\n", ":", "1 ids are repeated, 'b'"),
        ("id,v\na,1\n,1\nc,1\n", ":3:", "without a node id"),
        ("id,label\na,1\nb,1\nc,1\n", ":", "no feature column"),
    ],
)
def test_bad_features(write, graph, content, place, words):
    path = write(content, "x.csv")
    with pytest.raises(DataError) as caught:
        read_graph(graph, features=path)
    assert str(caught.value).startswith(f"{path}{place}")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "content, place, words",
    [
        ("id,label\na,1\nb,-2\nc,0\n", ":3:", "label '-2' is not a class number"),
        ("id,label\na,\nb,-1\n", ":", "no node has a label"),
        ("id,label\na,1\nb,1.5\nc,0\n", ":3:", "not a class number"),
        ("id,label\na,1\nb,inf\nc,0\n", ":3:", "not a class number"),
        ("id,label\na,1\nb,4000000000\nc,0\n", ":3:", "not a class number"),
        ("id,p,q\na,1,1\nb,1,1\nc,1,1\n", ":", "name the column of labels 'label'"),
    ],
)
def test_bad_labels(write, graph, content, place, words):
    path = write(content, "y.csv")
    with pytest.raises(DataError) as caught:
        read_graph(graph, labels=path)
    assert str(caught.value).startswith(f"{path}{place}")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "content, want, words",
    [
        ("id,label\na,1\nb,\nc,0\n", [1, -1, 0], None),
        ("id,label\na,1\nb,-1\nc,0\n", [1, -1, 0], None),
        ("id,label\na,x\nb,NaN\nc,y\n", [0, -1, 1], ["x", "y"]),
        ("id,label\nc,4\n", [-1, -1, 4], None),
    ],
)
def test_nodes_may_have_no_label(write, graph, content, want, words):
    data = read_graph(graph, labels=write(content, "y.csv"))
    assert data.y.tolist() == want
    assert getattr(data, "label_names", None) == words


def test_bad_archives(graph, tmp_path):
    np.savez(tmp_path / "n.npz", other=np.ones(3))
    for option, words in (("features", "no features in it, only other"), ("labels", "no labels in it")):
        with pytest.raises(DataError, match=words):
            read_graph(graph, **{option: tmp_path / "n.npz"})
    np.savez(
        tmp_path / "f.npz", x=np.array([[1.0, 2.0], [np.inf, 1.0], [1, 1]]), ids=np.array(["a", "b", "c"])
    )
    with pytest.raises(DataError, match=r"f.npz: feature row 1, column 0 is inf"):
        read_graph(graph, features=tmp_path / "f.npz")
    np.savez(tmp_path / "s.npz", x=np.float64(3), y=np.int64(3))
    with pytest.raises(DataError, match=r"s.npz: 'x' is a single number"):
        read_graph(graph, features=tmp_path / "s.npz")
    with pytest.raises(DataError, match=r"s.npz: labels must be"):
        read_graph(graph, labels=tmp_path / "s.npz")


TABLES = {
    "t.csv": b"id,one,label\na,1,x\nb,2,y\nc,3,x\n",
    "t.tsv": b'"a"\t1\nb\t2\nc\t0\n',
}


def table_bytes(name):
    if name in TABLES:
        return TABLES[name]
    buffer = io.BytesIO()
    if name == "t.npz":
        np.savez(buffer, x=np.ones((3, 2)), y=np.arange(3), ids=np.array(["a", "b", "c"]))
    else:
        pa = pytest.importorskip("pyarrow")
        columns = {"id": ["a", "b", "c"], "v": [1.0, 2.0, 3.0], "label": [0, 1, 1]}
        pytest.importorskip("pyarrow.parquet").write_table(pa.table(columns), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.npz", "t.parquet"])
def test_damaged_tables_give_a_graph_or_one_line(write, graph, name):
    whole = table_bytes(name)
    random = np.random.default_rng(0)
    damaged = [whole[: int(length)] for length in random.integers(0, len(whole), 60)]
    for _ in range(60):
        content = bytearray(whole)
        for place in random.integers(0, len(whole), 3):
            content[place] = random.integers(256)
        damaged.append(bytes(content))
    for content in damaged:
        path = write(content, name)
        for option in ("features", "labels"):
            try:
                read_graph(graph, **{option: path})
            except DataError as error:
                message = str(error)
            else:
                continue
            assert message.startswith(str(path))
            assert "\n" not in message


def test_labels_of_another_graph_are_refused(write, graph):
    path = write("id,label\nA,1\nB,0\nC,1\n", "y.csv")
    with pytest.raises(DataError, match=r"y\.csv: 3 of its 3 ids are not in the graph, 'A' among them"):
        read_graph(graph, labels=path)


def test_a_few_strange_ids_are_told(write, graph, caplog):
    path = write("id,label\na,1\nb,0\nc,1\nlonely,0\n", "y.csv")
    assert list(read_graph(graph, labels=path).ids)[-1] == "lonely"
    assert "1 of its 4 ids are not in the graph, 'lonely' among them" in caplog.text
