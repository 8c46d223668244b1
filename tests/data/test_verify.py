import dataclasses as dc
import shutil

import pytest
from made_datasets import webkb_files

from gyroformer.data.checksums import CHECKSUMS
from gyroformer.data.registry import DATASETS
from gyroformer.data.verify import verify
from gyroformer.durable import sha256_of


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """Texas, made small, with a registry entry that fits it."""
    folder = tmp_path / "webkb/texas/raw"
    webkb_files(folder)
    expected = {"nodes": 3, "edges": 2, "listed_edges": 4, "features": 3, "classes": 2, "homophily": 0.75}
    monkeypatch.setitem(DATASETS, "texas", dc.replace(DATASETS["texas"], **expected))
    for file in DATASETS["texas"].files[:2]:
        path = tmp_path / file.path
        monkeypatch.setitem(CHECKSUMS, file.path, (sha256_of(path), path.stat().st_size))
    return tmp_path


def test_a_set_as_published(tiny):
    found = verify("texas", tiny)
    assert found.ok
    assert found.measured["homophily"] == 0.75
    assert len(found.notes) == 10  # the stored splits that are not there


@pytest.mark.parametrize(
    "change, words",
    [
        ({"nodes": 4}, "nodes: expected 4, found 3"),
        ({"edges": 3}, "edges: expected 3, found 2"),
        ({"listed_edges": 5}, "listed_edges: expected 5, found 4"),
        ({"features": 2}, "features: expected 2, found 3"),
        ({"classes": 5}, "classes: expected 5, found 2"),
        ({"homophily": 0.751}, "homophily: expected 0.751, found 0.75"),
    ],
)
def test_each_number_is_compared(tiny, monkeypatch, change, words):
    monkeypatch.setitem(DATASETS, "texas", dc.replace(DATASETS["texas"], **change))
    assert verify("texas", tiny).differences == (words,)


def test_a_file_with_another_sum_differs_even_if_the_numbers_agree(tiny):
    path = tiny / "webkb/texas/raw/out1_graph_edges.txt"
    path.write_text(path.read_text() + "0\t1\n")
    assert verify("texas", tiny).differences == (
        "webkb/texas/raw/out1_graph_edges.txt: sha256 differs from the pinned one",
    )


def test_a_file_that_cannot_be_read_is_a_difference(tiny):
    (tiny / "webkb/texas/raw/out1_graph_edges.txt").write_text("node_id\tnode_id\nx\n")
    found = verify("texas", tiny)
    assert any("edges.txt:2: expected 2 fields" in text for text in found.differences)


def test_another_copy_of_a_set_without_a_pinned_download_is_a_note(tmp_path, monkeypatch):
    (tmp_path / "wordnet").mkdir()
    (tmp_path / "wordnet/mammal_closure.csv").write_text("id1,id2,weight\na,b,1\n")
    monkeypatch.setitem(DATASETS, "mammals", dc.replace(DATASETS["mammals"], nodes=2, edges=1))
    found = verify("mammals", tmp_path)
    assert found.ok
    assert found.notes == ("wordnet/mammal_closure.csv: sha256 differs from the copy known here",)


@pytest.mark.data
@pytest.mark.parametrize("name", DATASETS)
def test_every_real_set_is_as_published(real, name):
    found = verify(name, real)
    assert found.differences == ()
    assert found.notes == ()


@pytest.mark.data
def test_the_old_cornell_is_found_out(real, tmp_path):
    shutil.copytree(real / "webkb/cornell/raw", tmp_path / "webkb/cornell/raw")
    target = tmp_path / "webkb/cornell/raw/out1_node_feature_label.txt"
    target.unlink()
    shutil.copyfile(real / "webkb/texas/raw/out1_node_feature_label.txt", target)
    found = verify("cornell", tmp_path)
    assert any("before July 2022" in text for text in found.differences)
