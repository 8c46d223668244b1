import pytest

from gyroformer.data.folder import data_folder, is_offline
from gyroformer.errors import UsageError


def test_the_variable_comes_first(monkeypatch, tmp_path):
    monkeypatch.setenv("GYROFORMER_DATA", str(tmp_path / "not yet"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder() == tmp_path / "not yet"
    assert not (tmp_path / "not yet").exists()
    monkeypatch.delenv("GYROFORMER_DATA")
    assert data_folder() == tmp_path / "cache" / "gyroformer"


def test_a_home_that_does_not_exist(monkeypatch):
    monkeypatch.setenv("GYROFORMER_DATA", "~nobody-of-this-name/data")
    with pytest.raises(UsageError, match=r"GYROFORMER_DATA=~nobody-of-this-name/data: .* absolute path"):
        data_folder()


def test_a_file_is_no_data_folder(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GYROFORMER_DATA", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="names a file"):
        data_folder()


@pytest.mark.parametrize("value, offline", [("", False), ("0", False), ("1", True), ("yes", True)])
def test_offline_switch(monkeypatch, value, offline):
    monkeypatch.setenv("GYROFORMER_OFFLINE", value)
    assert is_offline() is offline
