"""Compiled code is loaded only from a folder that is the user's alone, and only as it was compiled."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from gyroformer import compiled as compiling
from gyroformer.cache import check_own, make_private
from gyroformer.errors import DataError
from gyroformer.ops.native import build, fused

COMPILER = build.find_compiler()
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compile once, and give the bytes to the tests that damage them."""
    folder = tmp_path_factory.mktemp("compiled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "cache_folder", lambda: folder / "kernels")
        return build.KERNELS.built(COMPILER)


@pytest.fixture
def cached(compiled, tmp_path, monkeypatch):
    """Return a folder that holds the library, where the compiler is told to write a mark instead of compiling."""
    folder = tmp_path / "kernels"
    make_private(folder)
    (folder / compiled.name).write_bytes(compiled.read_bytes())
    (folder / compiled.name).chmod(0o700)
    monkeypatch.setattr(compiling, "cache_folder", lambda: folder)

    def no_compiler(compiler, where, stem):
        raise AssertionError("compiled again")

    monkeypatch.setattr(build.KERNELS, "compile", no_compiler)
    return folder / compiled.name


@needs_compiler
def test_a_library_is_kept_and_private(cached):
    assert build.KERNELS.built(COMPILER) == cached
    assert stat.S_IMODE(cached.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(cached.stat().st_mode) & 0o022 == 0


def cut(content, where):
    return content[:where]


def flip(content, where):
    return content[:where] + bytes([content[where] ^ 1]) + content[where + 1 :]


@needs_compiler
@pytest.mark.parametrize("damage", [cut, flip])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.999])
def test_a_damaged_library_is_compiled_again(cached, damage, share):
    content = cached.read_bytes()
    cached.write_bytes(damage(content, int(share * len(content))))
    with pytest.raises(AssertionError, match="compiled again"):
        build.KERNELS.built(COMPILER)
    assert not cached.exists()


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_or_file_that_others_can_write_is_refused(tmp_path, mode):
    folder = tmp_path / "kernels"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(DataError, match="others can write it"):
        make_private(folder)
    (tmp_path / "file").touch()
    (tmp_path / "file").chmod(mode)
    with pytest.raises(DataError, match="others can write it"):
        check_own(tmp_path / "file")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_of_another_user_is_refused(tmp_path):
    folder = tmp_path / "kernels"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, -1)
    with pytest.raises(DataError, match="belongs to another user"):
        make_private(folder)


def test_a_folder_that_can_be_replaced_is_refused(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(DataError, match="anybody can put another folder in place"):
        make_private(tmp_path / "open" / "kernels")
    (tmp_path / "open").chmod(0o1777)  # as /tmp is
    make_private(tmp_path / "open" / "kernels")


def test_a_link_is_refused(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "kernels").symlink_to(tmp_path / "real")
    with pytest.raises(DataError, match="others can write it"):
        make_private(tmp_path / "kernels")


def test_an_open_umask_does_not_open_the_folder(tmp_path):
    before = os.umask(0)
    try:
        make_private(tmp_path / "a" / "b")
    finally:
        os.umask(before)
    assert (
        stat.S_IMODE((tmp_path / "a").stat().st_mode)
        == stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode)
        == 0o700
    )


def doctor(**env):
    code = "import sys; sys.argv = ['gyroformer', 'doctor']; from gyroformer.__main__ import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=120,
        env={**{k: v for k, v in os.environ.items() if k not in ("XDG_CACHE_HOME",)}, **env},
    )  # fmt: skip


def test_a_planted_library_does_not_run(tmp_path):
    folder = tmp_path / "gyroformer" / "kernels"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    done = doctor(XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 0
    assert b"others can write it" in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert b"plain torch" in done.stdout


def test_no_home_and_a_compiler_that_speaks_otherwise(tmp_path):
    compiler = tmp_path / "c++"
    compiler.write_bytes(
        b"#!/bin/sh\nprintf '\\377\\376 nicht gefunden'\nprintf '\\377 Fehler' >&2\nexit 1\n"
    )
    compiler.chmod(0o755)
    for env in (
        {"HOME": "relative"},
        {"CXX": str(compiler)},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ):
        done = doctor(GYROFORMER_DATA=str(tmp_path), **env)
        assert done.returncode == 0, done.stderr
        assert b"Traceback" not in done.stderr
        assert done.stderr.count(b"\n") <= 1


def _in_child(queue):
    torch.set_num_threads(2)
    x = torch.ones(1, 400, 3, 2, 4)
    queue.put(float(fused.attention(x, torch.zeros(2), None).sum()))


@needs_compiler
def test_a_forked_child_does_not_wait_for_threads_that_are_gone():
    if build.library() is None:
        pytest.skip("no kernels on this machine")
    code = (
        "import multiprocessing as mp, torch, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "torch.set_num_threads(2)\n"
        "from test_native_build import _in_child, fused\n"
        "fused.attention(torch.ones(1, 400, 3, 2, 4), torch.zeros(2), None)\n"
        "context = mp.get_context('fork'); queue = context.SimpleQueue()\n"
        "child = context.Process(target=_in_child, args=(queue,)); child.start(); child.join(20)\n"
        "print(child.exitcode); child.kill()\n"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, timeout=100)
    assert done.stdout.strip() == b"0", done.stderr
