"""Commands in several processes: one writes and speaks, all stop together, and what goes wrong is said."""

import json
import os
import signal
import time

import pytest
import several
from small_graphs import write_blocks

ENDLESS = ("--epochs", 100_000, "--eval-every", 5)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return write_blocks(tmp_path_factory.mktemp("graph"))[0]


def losses(folder):
    return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def begun(graph, folder, *words, count=2):
    """Start an endless run and return its processes once it trains."""
    words = ["embed", graph, "--out", folder / "run", "--dtype", "float64", *ENDLESS, *words]
    members = several.begin_commands([words] * count, folder)
    rows = folder / "run" / "metrics.jsonl"
    deadline = time.monotonic() + 200
    while not rows.exists() or len(rows.read_bytes().splitlines()) < 12:
        assert time.monotonic() < deadline, members[0].err.read_text()
        assert all(member.process.is_alive() for member in members), members[0].err.read_text()
        time.sleep(0.05)
    return members


def test_one_process_writes_and_speaks(graph, tmp_path):
    words = ["embed", graph, "--epochs", 12, "--out", tmp_path / "run", "--json", "--checkpoint-seconds", 0]
    codes, outs, errs = several.ended(several.begin_commands([words] * 2, tmp_path))
    assert codes == [0, 0], errs
    assert json.loads(outs[0])["epochs"] == 12
    assert outs[1] == ""
    assert errs[1] == ""
    assert (tmp_path / "run" / "report.html").exists()


def test_ctrl_c_stops_all_and_another_number_goes_on(graph, tmp_path):
    members = begun(graph, tmp_path)
    os.kill(members[1].process.pid, signal.SIGINT)  # one is enough: they agree
    codes, _, errs = several.ended(members)
    assert codes == [130, 130], errs
    done = int(errs[0].split("interrupted after epoch ")[1].split(";")[0])
    assert "torchrun --nproc-per-node 2 -m gyroformer embed" in errs[0]
    assert errs[1] == ""
    before = losses(tmp_path / "run")
    assert len(before) == done
    words = ["embed", graph, "--dtype", "float64", *ENDLESS[2:], "--epochs", done + 6]
    codes, outs, errs = several.ended(
        several.begin_commands([[*words, "--out", tmp_path / "run", "--resume", "--json"]] * 3, tmp_path)
    )
    assert codes == [0] * 3, errs
    assert "processes 2, now 3" in errs[0]
    found = losses(tmp_path / "run")
    assert found[:done] == before
    assert json.loads(outs[0])["epochs"] == len(found) == done + 6


@pytest.mark.parametrize("end", ["dead", "stuck"])
def test_a_process_that_is_lost_ends_the_run_with_a_checkpoint(graph, tmp_path, end):
    members = begun(graph, tmp_path, "--checkpoint-seconds", 3600, "--wait", 4)
    pid = members[1].process.pid
    os.kill(pid, signal.SIGKILL if end == "dead" else signal.SIGSTOP)
    code, _, err = members[0].end(60)
    if end == "stuck":
        os.kill(pid, signal.SIGKILL)
    assert code == 1
    assert ("has ended" if end == "dead" else "did not answer for 4 s") in err
    assert "Traceback" not in err
    assert "--resume" in err
    kept = max(int(path.stem.split("-")[1]) for path in (tmp_path / "run" / "checkpoints").glob("*.json"))
    before = losses(tmp_path / "run")[:kept]
    assert kept >= 10
    words = ["embed", graph, "--dtype", "float64", *ENDLESS[2:], "--epochs", kept + 2, "--json"]
    resumed = [[*words, "--out", tmp_path / "run", "--resume", "--checkpoint-seconds", 3600]]
    codes, outs, errs = several.ended(several.begin_commands(resumed, tmp_path))
    assert codes == [0], errs
    assert losses(tmp_path / "run")[:kept] == before
    assert json.loads(outs[0])["epochs"] == kept + 2


def different(graph, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(graph.read_text() + "n0,n1\nn0,n2\nn0,n3\nn0,n4\nn0,n20\nn0,n30\n")
    common = ["embed", "--epochs", "5", "--out", str(tmp_path / "run")]
    return {
        "training.lr = 0.5": [*common, str(graph), "--lr", "0.5"],
        "run.seeds = 2": [*common, str(graph), "--seeds", "2"],
        "graph.source": [*common, str(other)],
    }


@pytest.mark.parametrize("what", ["training.lr = 0.5", "run.seeds = 2", "graph.source"])
def test_a_process_with_another_option_is_named(graph, tmp_path, what):
    words = different(graph, tmp_path)[what]
    plain = ["embed", "--epochs", "5", "--out", str(tmp_path / "run"), str(graph)]
    codes, _, errs = several.ended(several.begin_commands([plain, words], tmp_path))
    assert codes == [2, 2], errs
    assert f"error: process 1 has {what}" in errs[0]
    assert "start all processes alike" in errs[0]
    assert errs[1] == ""
    assert not (tmp_path / "run").exists()


def with_version(version, words):
    """Run a command as another version would."""
    import gyroformer

    gyroformer.__version__ = version
    several.command(words)


def in_folder(folder, words):
    """Run a command in another folder."""
    os.chdir(folder)
    several.command(words)


def test_a_process_with_another_version_is_named(graph, tmp_path):
    words = ["embed", str(graph), "--out", str(tmp_path / "run")]
    calls = [(several.command, (words,)), (with_version, ("0.0.1", words))]
    codes, _, errs = several.ended(several.begin(calls, tmp_path))
    assert codes == [2, 2], errs
    assert "process 1 has gyroformer = '0.0.1', process 0 has" in errs[0]


def test_a_process_with_other_data_is_named(graph, tmp_path):
    for name, more in (("a", ""), ("b", "n0,n40\nn1,n41\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.csv").write_text(graph.read_text() + more)
    words = ["embed", "mine.csv", "--out", str(tmp_path / "run")]
    calls = [(in_folder, (str(tmp_path / name), words)) for name in "ab"]
    codes, _, errs = several.ended(several.begin(calls, tmp_path))
    assert codes == [2, 2], errs
    assert "process 1 has graph.edges = " in errs[0]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("words", [["no-such-file.csv"], ["GRAPH", "--lr", "-1"]])
def test_an_error_is_said_once(graph, tmp_path, words):
    words = ["embed", *(str(graph) if word == "GRAPH" else word for word in words), "--out", "run"]
    codes, _, errs = several.ended(several.begin_commands([words] * 2, tmp_path))
    assert codes[0] in (2, 3)
    assert codes[1] == codes[0]
    assert errs[0].count("error:") == 1
    assert errs[1] == ""


@pytest.mark.parametrize(
    "words, said",
    [
        (
            ["compare", "embed", "GRAPH", "--models", "fpst,gcn"],
            "compare runs in one process, and torchrun started 2",
        ),
        (["embed", "GRAPH", "--compile"], "--compile is for one process"),
    ],
)
def test_what_several_processes_cannot_do_is_refused(graph, tmp_path, words, said):
    words = [str(graph) if word == "GRAPH" else word for word in words]
    codes, _, errs = several.ended(several.begin_commands([words] * 2, tmp_path))
    assert codes == [2, 2], errs
    assert said in errs[0]
    assert errs[1] == ""
    assert not (tmp_path / "runs").exists()
