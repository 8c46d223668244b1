"""Fetching a data set that a server on this machine holds, and taking one out of an archive."""

import dataclasses as dc
import hashlib
import io
import tarfile

import pytest
from file_server import Server

from gyroformer.data.checksums import CHECKSUMS
from gyroformer.data.fetch import fetch, take_from
from gyroformer.data.registry import DATASETS
from gyroformer.data.spec import FileSpec
from gyroformer.data.state import needed_paths, state_of
from gyroformer.errors import DataError

CONTENT = {"small/a.csv": b"0,1\n", "small/b.csv": b"1,2\n", "small/split.npz": b"masks"}


@pytest.fixture
def server(monkeypatch):
    """Serve the three files of a set called ``small``, the last of which only a split needs."""
    one = Server(b"")
    base = one.url.removesuffix("/file")
    files = []
    for path, content in CONTENT.items():
        one.paths[f"/{path}"] = content
        monkeypatch.setitem(CHECKSUMS, path, (hashlib.sha256(content).hexdigest(), len(content)))
        files.append(FileSpec(path, (f"{base}/{path}",), needed=not path.endswith(".npz")))
    monkeypatch.setitem(DATASETS, "small", dc.replace(DATASETS["karate"], files=tuple(files)))
    yield one
    one.close()


def test_what_is_missing_is_fetched_and_the_rest_left_alone(server, tmp_path):
    assert state_of("small", tmp_path) == "absent"
    (tmp_path / "small").mkdir()
    (tmp_path / "small/a.csv").write_text("mine")
    assert state_of("small", tmp_path) == "incomplete"
    seen = []
    got = fetch("small", tmp_path, loopback_http=True, report=lambda path, count: seen.append((path, count)))
    assert got == ["small/b.csv", "small/split.npz"]
    assert seen == [("small/b.csv", 4), ("small/split.npz", 5)]
    assert (tmp_path / "small/a.csv").read_text() == "mine"
    assert state_of("small", tmp_path) == "ready"
    assert fetch("small", tmp_path, loopback_http=True) == []
    (tmp_path / "small/split.npz").unlink()
    assert state_of("small", tmp_path) == "no splits"
    assert needed_paths("small", tmp_path) == [tmp_path / "small/a.csv", tmp_path / "small/b.csv"]


def test_a_changed_file_at_the_source_is_refused(server, tmp_path):
    server.paths["/small/b.csv"] = b"1,3\n"
    with pytest.raises(DataError, match="wrong sha256"):
        fetch("small", tmp_path, loopback_http=True)
    assert not (tmp_path / "small/b.csv").exists()


def test_offline_says_what_to_do(server, tmp_path):
    with pytest.raises(DataError, match="--offline"):
        fetch("small", tmp_path, offline=True)
    assert server.ranges == []


@pytest.mark.parametrize("name", [name for name, spec in DATASETS.items() if not spec.fetchable])
def test_a_set_without_a_pinned_download_says_what_to_do(tmp_path, name):
    with pytest.raises(DataError, match="no pinned download") as error:
        fetch(name, tmp_path)
    assert DATASETS[name].files[0].path in str(error.value)
    with pytest.raises(DataError, match="not found"):
        needed_paths(name, tmp_path)
    assert state_of(name, tmp_path) == "by hand"
    assert list(tmp_path.iterdir()) == []


def test_airport_needs_one_of_its_two_files(tmp_path):
    assert state_of("airport", tmp_path) == "absent"
    (tmp_path / "airport").mkdir()
    (tmp_path / "airport/airport.npz").write_bytes(b"")
    assert state_of("airport", tmp_path) == "ready"
    assert fetch("airport", tmp_path) == []
    assert needed_paths("airport", tmp_path) == [tmp_path / "airport/airport.npz"]


def make_archive(path, members):
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_files_are_taken_out_of_an_archive(server, tmp_path):
    members = {f"backup/data/{path}": content for path, content in CONTENT.items()} | {"backup/other": b"?"}
    archive = make_archive(tmp_path / "a.tar.gz", members)
    folder = tmp_path / "data"
    assert take_from(archive, ["small"], folder) == list(CONTENT)
    assert state_of("small", folder) == "ready"
    assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == [
        "a.csv",
        "b.csv",
        "split.npz",
    ]
    assert [path.name for path in folder.iterdir()] == ["small"]
    assert take_from(archive, ["small"], folder) == []
    assert server.ranges == []


def test_an_archive_with_other_contents_is_refused(server, tmp_path):
    archive = make_archive(tmp_path / "a.tar.gz", {"small/a.csv": b"0,9\n"})
    with pytest.raises(DataError, match=r"small/a\.csv has sha256"):
        take_from(archive, ["small"], tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []
