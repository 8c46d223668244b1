"""Where a command is told to write: what cannot be written is said before the work, and nothing else is touched."""

import hashlib
import os

import pytest
from evil_runs import small_run
from small_graphs import write_tree
from typer.testing import CliRunner

from gyroformer.cli.app import app


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    small_run(folder)
    return folder


def contents(folder):
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


#: commands that write a file which they are told, up to its name
WRITERS = {
    "report": ["report", "{run}", "--out"],
    "curvature": ["curvature", "{graph}", "--plot"],
    "bench": ["bench", "web-edu", "--variants", "flat", "--rounds", "1", "--no-memory", "--out"],
    "predict": ["predict", "{run}", "--nearest", "1", "--out"],
    "embeddings": ["predict", "{run}", "--embeddings"],
}
TARGETS = {
    "empty": "",
    "a folder": "{folder}",
    "the working folder": ".",
    "in a missing folder": "{folder}/missing/{missing}/a.json",
    "in a file": "{graph}/a.json",
    "a device": "/dev/null",
    "a name too long": "{folder}/" + "x" * 300 + ".json",
    "a zero byte": "{folder}/\0.json",
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("command", WRITERS)
def test_what_cannot_be_written_is_one_line(command, target, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graph, *_ = write_tree(tmp_path / "tree.csv")
    if command == "report" and target == "in a missing folder":
        pytest.skip("report makes the folder")
    names = {"run": run, "graph": graph, "folder": tmp_path, "missing": "too"}
    before = contents(tmp_path) | contents(run)
    done = CliRunner().invoke(app, [word.format(**names) for word in [*WRITERS[command], TARGETS[target]]])
    assert done.exit_code in (2, 3), (done.output, done.exception)
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert contents(tmp_path) | contents(run) == before


@pytest.mark.parametrize("name", ["results.json", "config.json", "checkpoints/x.json", "new.txt"])
def test_a_report_replaces_no_file_of_the_run(name, run):
    before = contents(run)
    done = CliRunner().invoke(app, ["report", str(run), "--out", str(run / name)])
    assert done.exit_code == 2
    assert "is in the folder of a run" in done.stderr
    assert contents(run) == before


BAD_INPUT = {
    "no graph": ["embed", "{folder}/none.csv"],
    "a bad graph": ["embed", "{folder}/bad.csv"],
    "no labels": ["classify", "{graph}"],
    "bad labels": ["classify", "{graph}", "--labels", "{folder}/bad.csv"],
    "a bad option": ["embed", "{graph}", "--dim", "7", "--heads", "2"],
    "too large": ["embed", "{graph}", "--dim", "65536", "--layers", "1000"],
    "a bad device": ["embed", "{graph}", "--device", "hpu"],
    "several seeds": ["embed", "{folder}/none.csv", "--seeds", "2"],
}


def is_one_error(stderr):
    """Return whether the error is one line, the last; what was understood, or is being done, may come before it."""
    *before, last = stderr.splitlines()
    harmless = all("undirected edges of" in line or line.endswith(" …") for line in before)
    return last.startswith("error: ") and harmless


@pytest.mark.parametrize("case", BAD_INPUT)
def test_a_bad_input_leaves_nothing_behind(case, tmp_path):
    graph, *_ = write_tree(tmp_path / "tree.csv")
    (tmp_path / "bad.csv").write_text("a\n\x01b,c,d\n")
    names = {"graph": graph, "folder": tmp_path}
    before = contents(tmp_path)
    words = [*(word.format(**names) for word in BAD_INPUT[case]), "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code in (2, 3), (done.output, done.exception)
    assert is_one_error(done.stderr)
    assert contents(tmp_path) == before
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("target", ["{graph}", "{graph}/x", "/dev/null", "/proc/none"])
@pytest.mark.parametrize("more", [[], ["--seeds", "2"]])
def test_a_run_folder_that_cannot_be(target, more, tmp_path):
    graph, *_ = write_tree(tmp_path / "tree.csv")
    words = ["embed", str(graph), "--epochs", "1", "--out", target.format(graph=graph), *more]
    done = CliRunner().invoke(app, words)
    assert done.exit_code in (2, 3), (done.output, done.exception)
    assert is_one_error(done.stderr)


def not_files(folder):
    os.mkfifo(folder / "pipe.csv")
    yield folder / "pipe.csv"
    for name in ("zero", "null"):
        (folder / f"{name}.csv").symlink_to(f"/dev/{name}")
        yield folder / f"{name}.csv"


def test_what_is_no_file_is_refused_at_once(tmp_path, run):
    graph, *_ = write_tree(tmp_path / "tree.csv")
    for path in not_files(tmp_path):
        for words in (
            ["embed", path],
            ["curvature", path],
            ["classify", graph, "--labels", path],
            ["link", graph, "--features", path],
            ["predict", run, "--pairs", path],
            ["predict", run, path],
            ["datasets", "--from", path],
        ):
            done = CliRunner().invoke(app, [str(word) for word in words])
            assert done.exit_code in (2, 3), (words, done.output, done.exception)
            assert done.stderr.count("\n") == 1
