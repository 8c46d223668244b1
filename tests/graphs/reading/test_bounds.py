"""Files made to be never read to their end: refused within moments, in little memory."""

import gzip

import pytest

from gyroformer.errors import DataError
from gyroformer.graphs.reading import lines
from gyroformer.graphs.reading.read import read_graph


@pytest.mark.parametrize("suffix", [".csv.gz", ".txt.gz", ".gml.gz", ".graphml.gz", ".mtx.gz", ".edges.gz"])
@pytest.mark.parametrize("filling", [b"\n", b" ", b"a,b\n"])
def test_a_small_file_that_unpacks_without_end(tmp_path, monkeypatch, suffix, filling):
    monkeypatch.setattr(lines, "LARGE", 1 << 18)
    path = tmp_path / f"bomb{suffix}"
    head = {".mtx.gz": b"%%MatrixMarket matrix coordinate pattern general\n", ".graphml.gz": b"<graphml>"}
    with gzip.open(path, "wb") as file:
        file.write(head.get(suffix, b""))
        file.write(filling * (2 << 20))
    with pytest.raises(DataError, match=r"bomb\S*: |bomb\S*:\d+: "):
        read_graph(path)


def test_an_ordinary_packed_file_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LARGE", 1 << 10)
    path = tmp_path / "g.csv.gz"
    with gzip.open(path, "wt") as file:
        file.writelines(f"n{i},n{i // 2}\n" for i in range(1, 5000))
    assert read_graph(path).num_nodes == 5000


@pytest.mark.parametrize("depth, fits", [(90, True), (200, False), (200_000, False)])
def test_lists_in_lists(tmp_path, depth, fits):
    path = tmp_path / "deep.gml"
    inner = "a [ " * depth + "] " * depth
    path.write_text(f"graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 ] {inner} ]")
    if fits:
        assert read_graph(path).num_nodes == 2
    else:
        with pytest.raises(DataError, match="nested deeper than 100"):
            read_graph(path)


def test_elements_in_elements(tmp_path):
    path = tmp_path / "deep.graphml"
    path.write_text("<graphml><graph>" + "<a>" * 200_000)
    with pytest.raises(DataError, match="nested deeper than 100"):
        read_graph(path)
