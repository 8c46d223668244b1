"""``gyroformer curvature`` on small files, and on the real ones when they are there."""

import json
import os
import re

import networkx as nx
import pytest
from rich.text import Text
from typer.testing import CliRunner
from unpacked import charts

from gyroformer.cli.app import app
from gyroformer.cli.curvature import ROWS, coarser, histogram_rows
from gyroformer.cli.curvature_fit import profile_rows
from gyroformer.graphs.analysis import curvature as module
from gyroformer.graphs.analysis.curvature import GraphCurvature
from gyroformer.graphs.analysis.space_fit import SpaceFit


def run(*args):
    return CliRunner().invoke(app, ["curvature", *map(str, args)])


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")

    def write(graph, name="graph.csv"):
        path = tmp_path / name
        path.write_text("".join(f"n{u},n{v}\n" for u, v in graph.edges))
        return path

    return write


def test_a_tree_is_told_from_a_cycle(write):
    tree = run(write(nx.balanced_tree(3, 3)))
    assert tree.exit_code == 0, tree.stderr
    assert "mostly tree-like: negative" in tree.stdout
    assert re.search(r"sectional curvature -0\.\d{4}  \(exact", tree.stdout)
    assert "█" in tree.stdout
    cycle = run(write(nx.cycle_graph(12)))
    assert "mostly cycle-like: positive (0% of the triples are negative)" in cycle.stdout
    path = run(write(nx.path_graph(12)))
    assert "sectional curvature 0.0000" in path.stdout


def test_json_is_one_object_with_the_promised_keys(write):
    done = run(write(nx.gnm_random_graph(40, 80, seed=0)), "--json")
    found = json.loads(done.stdout)
    assert {"mean", "std", "triples", "exact", "negative_share"} <= set(found)
    assert found["exact"] is True
    assert sum(found["histogram"]["counts"]) == found["triples"]
    assert len(found["histogram"]["edges"]) == len(found["histogram"]["counts"]) + 1


def test_several_components_are_stated(write):
    parts = [nx.cycle_graph(n) for n in range(14, 4, -1)]
    done = run(write(nx.disjoint_union_all([*parts, nx.path_graph(2)])))
    assert "several components: distances are within each" in done.stdout
    assert "and 2 smaller ones" in done.stdout
    assert "1 with a single node or edge, without a triple" in done.stdout


def test_a_sample_says_so_with_its_error(write):
    path = write(nx.barabasi_albert_graph(400, 3, seed=0))
    done = run(path, "--samples", 128, "--seed", 3)
    assert re.search(r"-\d\.\d{4}  ± 0\.\d{4} \(sampled: every triple, distances to 128 nodes", done.stdout)
    found = json.loads(run(path, "--samples", 128, "--seed", 3, "--json").stdout)
    assert (found["exact"], found["seed"]) == (False, 3)
    assert found["standard_error"] > 0
    assert found == json.loads(run(path, "--samples", 128, "--seed", 3, "--json").stdout)


def test_exact_overrides_the_limit(write, monkeypatch):
    monkeypatch.setattr(module, "EXACT_SECONDS", 0.0)
    path = write(nx.barabasi_albert_graph(2100, 2, seed=0))
    assert json.loads(run(path, "--json").stdout)["exact"] is False
    assert json.loads(run(path, "--json", "--exact").stdout)["exact"] is True


def test_the_plot_is_a_page_that_needs_no_network(write, tmp_path):
    page = tmp_path / "plot.html"
    done = run(write(nx.balanced_tree(3, 3), "a<b>.csv"), "--plot", page, "--json")
    assert done.exit_code == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    (chart,) = charts(text).values()
    assert sum(chart["counts"]) == json.loads(done.stdout)["triples"]
    assert "Content-Security-Policy" in text
    assert not re.search(r"<script[^>]*\ssrc=", text)
    assert "a<b>.csv" not in text
    assert "a&lt;b&gt;.csv" in text
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


@pytest.mark.parametrize(
    "args, code, message",
    [
        (["nowhere.csv"], 2, "nowhere.csv"),
        (["web-edv"], 2, "web-edu"),
        (["{graph}", "--samples", "3"], 2, "at least 128"),
        (["{graph}", "--samples", "300", "--exact"], 2, "exclude each other"),
        (["{graph}", "--plot", "{folder}/none/plot.html"], 2, "does not exist"),
        (["{graph}", "--plot", "{folder}"], 2, "is a folder; name a file"),
        (["{pair}"], 3, "no node with two neighbours"),
        (["{graph}", "--dim", "3"], 2, "--dim needs --fit"),
        (["{graph}", "--fit", "--exact"], 2, "--exact does not go with --fit"),
        (["{graph}", "--fit"], 3, "at least 48 are needed"),
        (["nowhere.csv", "--fit"], 2, "nowhere.csv"),
    ],
)
def test_errors_are_one_line(write, tmp_path, args, code, message):
    places = {
        "graph": write(nx.cycle_graph(5)),
        "pair": write(nx.path_graph(2), "pair.csv"),
        "folder": tmp_path,
    }
    done = run(*(arg.format(**places) for arg in args))
    assert done.exit_code == code
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert message in done.stderr


def test_a_fitted_space_is_printed_with_its_interval(write):
    path = write(nx.convert_node_labels_to_integers(nx.grid_2d_graph(11, 11)))
    done = run(path, "--fit", "--seeds", 1)
    assert done.exit_code == 0, done.stderr
    assert "flat is as good as curved, in 2 dimensions" in done.stdout
    assert re.search(r"curvature [+-]\d\.\d{4} per hop², 95 % interval", done.stdout)
    found = json.loads(run(path, "--fit", "--seeds", 1, "--json").stdout)
    assert found["verdict"] == "flat"
    assert found["p_flat"] >= 0.05
    assert (found["nodes"], found["fitted_nodes"], len(found["by_seed"])) == (121, 121, 1)
    assert [0.0, found["error_flat"]] in found["profile"]


@pytest.mark.parametrize(
    "low, high, said",
    [
        (-0.2, 0.1, "-0.2000 to +0.1000"),
        (None, -0.1, "below -0.1000"),
        (0.1, None, "above +0.1000"),
        (None, None, "unbounded"),
    ],
)
def test_an_end_that_hops_do_not_tell_is_not_a_number(low, high, said):
    found = SpaceFit(
        0.0, low, high, 0.5, (0.0,), ((-0.1, 0.4), (0.0, 0.2)), 0.2, 0.2, 2, (8,), 300, 4.0, True
    )
    assert found.interval.startswith(said)
    assert profile_rows(found, ascii_only=True)[1:] == [
        f"   -0.1000  0.4000 {30 * '#'}",
        "   +0.0000  0.2000",
    ]


def result(first, counts):
    edges = tuple(round((first + i) * 0.02, 10) for i in range(len(counts) + 1))
    return GraphCurvature(0.0, 0.0, sum(counts), True, 0.0, 0.0, tuple(counts), edges, (), 0)


@pytest.mark.parametrize("first, size", [(0, 1), (-3, 5), (-70, 120), (-61, 111), (-1, 1)])
def test_joined_bins_keep_the_counts_and_zero(first, size):
    counts = list(range(1, size + 1))
    edges, joined = coarser(result(first, counts).edges, tuple(counts))
    assert len(joined) <= ROWS
    assert len(edges) == len(joined) + 1
    assert sum(joined) == sum(counts)
    below = sum(count for i, count in enumerate(counts, start=first) if i < 0)
    assert sum(count for low, count in zip(edges, joined, strict=False) if low < -1e-9) == below


def test_rows_can_do_without_unicode():
    rows = histogram_rows(result(-3, [1, 0, 5, 1000000]), ascii_only=True)
    assert all(isinstance(row, Text) and row.plain.isascii() for row in rows)
    assert rows[3].plain.startswith(" 0.00 to +0.02 ###")
    assert rows[0].plain.endswith("<0.1%")
    assert rows[1].plain.rstrip() == "-0.04 to -0.02"


@pytest.mark.data
def test_a_data_set_by_its_name():
    if not os.environ.get("GYROFORMER_DATA"):
        pytest.skip("GYROFORMER_DATA is not set")
    found = json.loads(run("web-edu", "--json").stdout)
    assert found["mean"] == pytest.approx(-0.6267, abs=5e-4)
    assert found["triples"] == 110887
