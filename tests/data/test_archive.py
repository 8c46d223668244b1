"""Archives that try to write where they should not."""

import gzip
import io
import stat
import tarfile
import zipfile

import pytest

from gyroformer.data.archive import unpack
from gyroformer.errors import DataError

OUTSIDE = ["../evil", "a/../../evil", "/evil", "..\\evil", "C:\\evil", "C:evil", "\\\\host\\evil", "a\\b"]


def make_tar(path, *entries, mode="w:gz"):
    with tarfile.open(path, mode) as tar:
        for entry in entries:
            name, content = entry if isinstance(entry, tuple) else (entry, b"x")
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(content) if info.isfile() else 0
            tar.addfile(info, io.BytesIO(content))
    return path


def make_zip(path, *entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return path


def link(name, to, kind):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, to
    return info


@pytest.fixture
def inside(tmp_path):
    folder = tmp_path / "inside"
    folder.mkdir()
    return folder


def written(tmp_path):
    return [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix not in (".tar", ".zip")]


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_good_tar(tmp_path, inside, mode):
    archive = make_tar(tmp_path / "a.tar", ("d/one", b"1"), ("two", b"22"), mode=mode)
    assert unpack(archive, inside) == [inside / "d/one", inside / "two"]
    assert (inside / "two").read_bytes() == b"22"


def test_a_good_zip_and_only_what_is_wanted(tmp_path, inside):
    archive = make_zip(tmp_path / "a.zip", ("d/one", b"1"), ("two", b"22"))
    assert unpack(archive, inside, wanted=lambda name: name == "two") == [inside / "two"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_path_that_leaves_the_folder_refuses_the_whole_archive(tmp_path, inside, name):
    for archive in (
        make_tar(tmp_path / "a.tar", ("good", b"1"), (name, b"2")),
        make_zip(tmp_path / "a.zip", ("good", b"1"), (name, b"2")),
    ):
        with pytest.raises(DataError, match="would land outside"):
            unpack(archive, inside)
    assert written(tmp_path) == []


@pytest.mark.parametrize(
    "entry",
    [
        link("l", "/etc", tarfile.SYMTYPE),
        link("l", "good", tarfile.SYMTYPE),
        link("l", "good", tarfile.LNKTYPE),
        link("l", "", tarfile.CHRTYPE),
        link("l", "", tarfile.FIFOTYPE),
    ],
    ids=["symlink-out", "symlink", "hardlink", "device", "fifo"],
)
def test_links_and_devices_in_a_tar_are_refused(tmp_path, inside, entry):
    archive = make_tar(tmp_path / "a.tar", ("good", b"1"), entry, ("l/evil", b"2"))
    with pytest.raises(DataError, match=r"a\.tar"):
        unpack(archive, inside)
    assert written(tmp_path) == []


def test_links_in_a_zip_are_refused(tmp_path, inside):
    info = zipfile.ZipInfo("l")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with pytest.raises(DataError, match="a link or a device"):
        unpack(make_zip(tmp_path / "a.zip", ("good", b"1"), (info, "/etc")), inside)
    assert written(tmp_path) == []


def test_contents_out_of_proportion_are_refused(tmp_path, inside):
    zeros = bytes(3_000_000)
    for archive in (make_zip(tmp_path / "a.zip", ("z", zeros)), make_tar(tmp_path / "a.tar", ("z", zeros))):
        with pytest.raises(DataError, match="over the limit"):
            unpack(archive, inside)
        with pytest.raises(DataError, match="over the limit"):
            unpack(archive, inside, max_ratio=1e9, max_bytes=1_000_000)
    assert written(tmp_path) == []


def test_a_tar_bomb_is_not_decompressed_to_be_judged(tmp_path, inside, monkeypatch):
    bomb = make_tar(tmp_path / "a.tar", ("z", bytes(30_000_000)), ("y", b"1"))
    read = []
    plain = gzip.GzipFile.read
    monkeypatch.setattr(gzip.GzipFile, "read", lambda self, size=-1: read.append(size) or plain(self, size))
    with pytest.raises(DataError, match="1 files of 30000000 bytes"):
        unpack(bomb, inside)
    assert 0 < sum(read) < 1_000_000


def test_a_zip_that_lies_about_a_size_is_refused(tmp_path, inside):
    archive = make_zip(tmp_path / "a.zip", ("z", b"a" * 5000 + b"b"))
    raw = archive.read_bytes()
    # the length stands in both headers; claim 10 bytes
    lying = raw.replace((5001).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    assert lying != raw
    archive.write_bytes(lying)
    with pytest.raises(DataError, match=r"a\.zip"):
        unpack(archive, inside)
    assert sum(path.stat().st_size for path in written(tmp_path)) <= 10


@pytest.mark.parametrize("cut", [0, 10, 60])
def test_truncated_and_other_files_are_one_line(tmp_path, inside, cut):
    whole = make_tar(tmp_path / "a.tar", ("good", bytes(range(256)) * 50)).read_bytes()
    (tmp_path / "b.tar").write_bytes(whole[:cut])
    with pytest.raises(DataError, match="cannot be unpacked") as error:
        unpack(tmp_path / "b.tar", inside)
    assert "\n" not in str(error.value)


def test_a_file_is_not_written_twice(tmp_path, inside):
    archive = make_tar(tmp_path / "a.tar", ("one", b"1"), ("one", b"2"))
    with pytest.raises(DataError, match="cannot be unpacked"):
        unpack(archive, inside)
