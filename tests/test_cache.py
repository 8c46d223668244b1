from pathlib import Path

import pytest

from gyroformer.cache import user_cache
from gyroformer.errors import UsageError


@pytest.fixture(autouse=True)
def _unset(monkeypatch):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)


def test_the_variable_comes_first_and_nothing_is_created(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert user_cache() == tmp_path / "cache" / "gyroformer"
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    "platform, place",
    [("linux", ".cache"), ("darwin", "Library/Caches"), ("win32", "AppData/Local")],
)
@pytest.mark.parametrize("variable", ["", "relative"])
def test_the_platforms_own_cache_folder(monkeypatch, tmp_path, platform, place, variable):
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", variable)
    assert user_cache() == tmp_path / place / "gyroformer"


def test_without_a_home_the_message_says_what_to_set(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    for home in (no_home, lambda: Path("relative")):
        monkeypatch.setattr(Path, "home", home)
        with pytest.raises(UsageError, match="no home folder is known: set HOME, or XDG_CACHE_HOME"):
            user_cache()
