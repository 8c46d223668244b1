import csv
import json

import numpy as np
import pytest

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.reading.read import read_graph
from gyroformer.jobs.answer_files import write_answers, write_embeddings
from gyroformer.jobs.predict import Answer

ANSWER = Answer("nearest", ("node", "distance"), [("a,b", 0.1), ("ü", 2.0)])
ARRAYS = {
    "embedding": np.random.default_rng(0).normal(size=(3, 2, 4)).astype(np.float32) * 1e-3,
    "curvature": np.array([-1.0, 0.5], np.float32),
}
IDS = ["a", "b,c", "ü"]


@pytest.mark.parametrize("suffix, mark", [(".csv", ","), (".tsv", "\t")])
def test_an_answer_is_a_table(tmp_path, suffix, mark):
    path = tmp_path / f"answer{suffix}"
    write_answers(path, [ANSWER], {})
    with path.open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file, delimiter=mark)) == [["node", "distance"], ["a,b", "0.1"], ["ü", "2.0"]]


def test_json_takes_all_answers_and_a_table_one(tmp_path):
    write_answers(tmp_path / "a.json", [ANSWER, ANSWER], {"ids": ["x"]})
    assert json.loads((tmp_path / "a.json").read_text()) == {"ids": ["x"]}
    with pytest.raises(UsageError, match="one answer"):
        write_answers(tmp_path / "a.csv", [ANSWER, ANSWER], {})
    with pytest.raises(UsageError, match="are written as"):
        write_answers(tmp_path / "a.xml", [ANSWER], {})
    with pytest.raises(DataError, match="cannot be written"):
        write_answers(tmp_path / "no" / "a.csv", [ANSWER], {})


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_coordinates_as_text_read_back_as_the_same_numbers(tmp_path, suffix):
    path = tmp_path / f"points{suffix}"
    write_embeddings(path, IDS, ARRAYS)
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter={".csv": ",", ".tsv": "\t"}[suffix])
    assert header == ["id", *(f"h{head}_{i}" for head in range(2) for i in range(4))]
    assert [row[0] for row in rows] == IDS
    read = np.array([row[1:] for row in rows], dtype=np.float32)
    assert np.array_equal(read, ARRAYS["embedding"].reshape(3, 8))


def test_coordinates_can_be_features_of_a_graph(tmp_path):
    write_embeddings(tmp_path / "points.csv", ["a", "b", "c"], ARRAYS)
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\n")
    data = read_graph(tmp_path / "edges.csv", features=tmp_path / "points.csv")
    assert np.array_equal(data.x.numpy(), ARRAYS["embedding"].reshape(3, 8))


def test_npz_and_parquet(tmp_path):
    write_embeddings(tmp_path / "points.npz", IDS, ARRAYS)
    with np.load(tmp_path / "points.npz") as found:
        assert found["ids"].tolist() == IDS
        assert np.array_equal(found["embedding"], ARRAYS["embedding"])
        assert np.array_equal(found["curvature"], ARRAYS["curvature"])
    parquet = pytest.importorskip("pyarrow.parquet", reason="the extra parquet is not installed")
    write_embeddings(tmp_path / "points.parquet", IDS, ARRAYS)
    table = parquet.read_table(tmp_path / "points.parquet").to_pydict()
    assert table["id"] == IDS
    assert table["h1_3"] == ARRAYS["embedding"][:, 1, 3].tolist()
    with pytest.raises(UsageError, match=r"\.npz, \.csv"):
        write_embeddings(tmp_path / "points.txt", IDS, ARRAYS)
