import dataclasses as dc
import functools
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from typer.testing import CliRunner

from gyroformer.cli.app import app
from gyroformer.data.checksums import CHECKSUMS
from gyroformer.data.download import download
from gyroformer.data.registry import DATASETS
from gyroformer.data.spec import FileSpec

KARATE = "networks/karate/karate.edges"


def run(*args):
    return CliRunner().invoke(app, ["datasets", *args])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GYROFORMER_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("GYROFORMER_OFFLINE", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path / "data"


@pytest.fixture
def karate(folder, monkeypatch):
    """A ring of 78 edges' worth of karate: 34 nodes, 78 distinct edges, with its own sum."""
    pairs = [(one, (one + step) % 34) for step in (1, 2) for one in range(34)]
    pairs += [(one, one + 17) for one in range(10)]
    content = "".join(f"{one} {other}\n" for one, other in pairs).encode()
    monkeypatch.setitem(CHECKSUMS, KARATE, (hashlib.sha256(content).hexdigest(), len(content)))
    return content


def put(folder, content):
    (folder / KARATE).parent.mkdir(parents=True)
    (folder / KARATE).write_bytes(content)


def test_the_list_fits_80_columns_and_names_every_set(folder):
    done = run()
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[1 : 1 + len(DATASETS)]] == list(DATASETS)
    assert max(map(len, lines[: 1 + len(DATASETS)])) <= 80
    assert not any("…" in line for line in lines)
    assert not folder.exists()


def test_json_has_the_facts_and_the_state(folder):
    rows = json.loads(run("--json", "cora", "computers").stdout)["datasets"]
    assert [row["name"] for row in rows] == ["cora", "computers"]
    cora, computers = rows
    assert (cora["nodes"], cora["edges"], cora["listed_edges"], cora["homophily"]) == (
        2708,
        5278,
        10556,
        0.81,
    )
    assert (cora["state"], cora["splits"][0], cora["licence"]) == ("absent", "public", "MIT (repository)")
    assert (computers["state"], computers["fetchable"]) == ("by hand", False)
    assert "amazon/Computers/raw" in computers["by_hand"]


def test_check_verifies(folder, karate):
    put(folder, karate)
    done = run("karate", "--check")
    assert done.exit_code == 0
    assert "verified" in done.stdout
    found = json.loads(run("karate", "--check", "--json").stdout)["datasets"][0]["check"]
    assert found == {"ok": True, "measured": {"nodes": 34, "edges": 78}, "differences": [], "notes": []}
    # without names: what is there
    assert run("--check").exit_code == 0


def test_check_exits_with_3_and_the_difference(folder, karate):
    put(folder, karate + b"0 33\n0 34\n")
    done = run("--check", "--json")
    assert done.exit_code == 3
    differences = (
        "sha256 differs from the pinned one, nodes: expected 34, found 35, edges: expected 78, found 79"
    )
    assert done.stderr == f"error: not as published: karate: {KARATE}: {differences}\n"
    rows = {row["name"]: row for row in json.loads(done.stdout)["datasets"]}
    assert rows["karate"]["check"]["ok"] is False
    assert "check" not in rows["cora"]
    assert "DIFFERS" in run("--check").stdout


@pytest.mark.parametrize(
    "args, code, words",
    [
        (["karatee"], 2, "did you mean 'karate'"),
        (["karate", "--check"], 3, "run gyroformer datasets karate --fetch"),
        (["--check"], 3, "no data set found"),
        (["karate", "--fetch", "--offline"], 3, "network is switched off"),
        (["computers", "--fetch"], 3, "no pinned download"),
        (["nouns", "--fetch"], 3, "WordNet 3.0"),
    ],
)
def test_errors_are_one_line_with_their_code(folder, args, code, words):
    done = run(*args)
    assert done.exit_code == code
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not folder.exists()


def test_the_variable_switches_the_network_off(folder, monkeypatch):
    monkeypatch.setenv("GYROFORMER_OFFLINE", "1")
    done = run("cora", "--fetch")
    assert (done.exit_code, "network is switched off" in done.stderr) == (3, True)


@pytest.fixture
def source(karate, monkeypatch):
    """Let karate come from a server on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(karate)))
            self.end_headers()
            self.wfile.write(karate)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    files = (FileSpec(KARATE, (f"http://127.0.0.1:{server.server_port}/",)),)
    monkeypatch.setitem(DATASETS, "karate", dc.replace(DATASETS["karate"], files=files))
    monkeypatch.setattr("gyroformer.data.fetch.download", functools.partial(download, loopback_http=True))
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_fetch_then_check(folder, source):
    done = run("karate", "--fetch", "--check")
    assert done.exit_code == 0
    assert f"fetched: {KARATE}" in done.stderr
    assert "verified" in done.stdout
    assert json.loads(run("karate", "--fetch", "--json").stdout)["fetched"] == []


def test_files_come_out_of_an_archive(folder, karate, tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        info = tarfile.TarInfo(f"backup/{KARATE}")
        info.size = len(karate)
        tar.addfile(info, io.BytesIO(karate))
    done = run("--from", str(tmp_path / "a.tar"), "--json")
    assert json.loads(done.stdout)["taken"] == [KARATE]
    assert (folder / KARATE).read_bytes() == karate
    assert run("--from", str(tmp_path / "b.tar")).exit_code == 2


@pytest.mark.data
@pytest.mark.slow
def test_every_real_set_is_verified():
    if not os.environ.get("GYROFORMER_DATA"):
        pytest.skip("GYROFORMER_DATA is not set: the real data sets are needed")
    done = subprocess.run(
        [sys.executable, "-m", "gyroformer", "datasets", "--check", "--json"], capture_output=True, text=True
    )
    rows = json.loads(done.stdout)["datasets"]
    assert done.returncode == 0, done.stderr
    assert [row["name"] for row in rows if row["check"]["ok"]] == list(DATASETS)
