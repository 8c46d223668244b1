"""A person's file, from the outside: what a command understands of it, says of it, and lets them decide."""

import json

import pandas as pd
import pytest
from small_graphs import blocks_edges
from typer.testing import CliRunner

from gyroformer.cli.app import app

FAST = ["--epochs", "2", "--identifiers", "2"]


def run(*args):
    return CliRunner().invoke(app, [*map(str, args)], catch_exceptions=False)


def edges(names="text"):
    u, v, _ = blocks_edges(groups=2, size=10)
    word = (lambda i: f"lib{i}") if names == "text" else int
    return [(word(a), word(b)) for a, b in zip(u.tolist(), v.tolist(), strict=True)]


def write(path, rows, header=None, sep=","):
    lines = ([sep.join(header)] if header else []) + [sep.join(map(str, row)) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    "header", [("package", "depends_on"), ("who", "whom"), ("Autor", "zitiert"), ("source", "target")]
)
def test_a_header_of_any_words_is_none_of_the_nodes(tmp_path, header):
    path = write(tmp_path / "deps.csv", edges(), header)
    done = run("embed", path, *FAST, "--out", tmp_path / "run", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["nodes"] == 20
    words = f"header: {', '.join(header)}; 20 nodes, {len(edges())} undirected edges of {len(edges())} listed"
    assert f"{words}, weights none" in done.stderr


def test_an_edge_is_not_taken_for_a_header(tmp_path):
    rows = edges()
    plain = run("curvature", write(tmp_path / "a.csv", rows), "--json")
    assert json.loads(plain.stdout)["edges"] == len(rows)
    # two nodes of their own, in a file where that is usual
    pairs = [(f"a{i}", f"b{i}") for i in range(4)]
    apart = run("curvature", write(tmp_path / "b.csv", [*pairs, *rows]), "--json")
    assert json.loads(apart.stdout)["edges"] == len(rows) + 4


def test_the_user_decides_about_the_header(tmp_path):
    path = write(tmp_path / "deps.csv", edges(), ("package", "depends_on"))
    assert json.loads(run("curvature", path, "--no-header", "--json").stdout)["nodes"] == 22
    bare = write(tmp_path / "bare.csv", edges())
    assert json.loads(run("curvature", bare, "--header", "--json").stdout)["edges"] == len(edges()) - 1


def test_the_user_names_columns(tmp_path):
    rows = [("2024", a, 0.5, b) for a, b in edges()]
    path = write(tmp_path / "log.csv", rows, ("year", "caller", "seconds", "callee"))
    done = run(
        *("embed", path, *FAST, "--source", "caller", "--target", "callee", "--weight", "seconds"),
        *("--out", tmp_path / "run", "--json"),
    )
    assert done.exit_code == 0, done.stderr
    assert "header: caller, callee, seconds (not used: year); 20 nodes" in done.stderr
    assert "weights 0.5 to 0.5" in done.stderr
    numbers = run("curvature", path, "--source", "2", "--target", "4", "--header", "--json")
    assert json.loads(numbers.stdout)["edges"] == len(edges())


def test_a_column_that_is_not_there(tmp_path):
    path = write(tmp_path / "deps.csv", edges(), ("package", "depends_on"))
    done = run("curvature", path, "--source", "pakage", "--target", "depends_on")
    assert done.exit_code == 2
    assert "has no column 'pakage' for --source; did you mean 'package'?" in done.stderr
    assert "Traceback" not in done.stderr


def test_options_of_edge_lists_are_refused_where_they_mean_nothing(tmp_path, monkeypatch):
    mtx = tmp_path / "a.mtx"
    mtx.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n")
    assert "header: for edge lists" in run("curvature", mtx, "--header").stderr
    found = run("embed", "web-edu", "--source", "a", "--out", tmp_path / "run")
    assert (found.exit_code, "takes no 'source'" in found.stderr) == (2, True)
    assert not (tmp_path / "run").exists()


def json_lines(path, rows):
    path.write_text("".join(json.dumps({"who": a, "to": b, "w": 1.5}) + "\n" for a, b in rows))


def parquet(path, rows):
    pd.DataFrame(rows, columns=["package", "depends_on"]).to_parquet(path)


def gexf(path, rows):
    import networkx as nx

    nx.write_gexf(nx.Graph(rows), path)


@pytest.mark.parametrize(
    "write_as, name", [(json_lines, "g.jsonl"), (parquet, "g.parquet"), (gexf, "g.gexf")]
)
def test_other_kinds_of_files(tmp_path, write_as, name):
    write_as(tmp_path / name, edges())
    done = run("curvature", tmp_path / name, "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["nodes"], found["edges"]) == (20, len(edges()))


def test_predict_reads_another_graph_as_it_is_told(tmp_path):
    rows = edges()
    write(tmp_path / "g.csv", rows)
    assert run("embed", tmp_path / "g.csv", *FAST, "--out", tmp_path / "run").exit_code == 0
    other = write(tmp_path / "other.csv", [(1, a, b) for a, b in rows], ("n", "x", "y"))
    asked = ("--nearest", "1", "--node", "lib0", "--json")
    done = run("predict", tmp_path / "run", other, "--source", "x", "--target", "y", *asked)
    assert done.exit_code == 0, done.stderr
    alone = run("predict", tmp_path / "run", "--header", *asked)
    assert (alone.exit_code, "belongs to a graph that is given" in alone.stderr) == (2, True)


def test_columns_that_are_not_used_are_named(tmp_path):
    (tmp_path / "calls.csv").write_text(
        "who,whom,times,since\nann,bob,3,2001\nbob,cid,9,2004\ncid,dan,1,2002\n"
    )
    done = run("embed", tmp_path / "calls.csv", "--epochs", 1, "--out", tmp_path / "run", "--threads", 1)
    assert done.exit_code == 0, done.stderr
    assert "header: who, whom (not used: times, since)" in done.stderr
    words = ("--weight", "times", "--epochs", 1, "--out", tmp_path / "other", "--threads", 1)
    assert "header: who, whom, times (not used: since)" in run("embed", tmp_path / "calls.csv", *words).stderr


def test_the_folder_of_a_run_in_the_place_of_its_graph(tmp_path):
    (tmp_path / "g.csv").write_text("a,b\nb,c\nc,d\n")
    run("embed", tmp_path / "g.csv", "--epochs", 1, "--out", tmp_path / "run", "--threads", 1)
    done = run("embed", tmp_path / "run", "--resume")
    assert done.exit_code == 2
    assert f"--resume --out {tmp_path / 'run'}" in done.stderr
