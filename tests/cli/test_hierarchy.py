"""``embed --hierarchy`` from a file to its answers, as a user types it."""

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gyroformer.cli.app import app

PARENTS = {
    **{"dog": "canine", "wolf": "canine", "canine": "carnivore", "cat": "feline", "lion": "feline"},
    **{
        "feline": "carnivore",
        "carnivore": "mammal",
        "horse": "equine",
        "zebra": "equine",
        "equine": "mammal",
    },
}


def run(*args):
    return CliRunner().invoke(app, [*map(str, args)], catch_exceptions=False)


@pytest.fixture
def tree(tmp_path):
    path = tmp_path / "animals.csv"
    path.write_text("kind,of\n" + "\n".join(",".join(pair) for pair in PARENTS.items()) + "\n")
    return path


@pytest.mark.parametrize("model", ["fpst", "points", "hgcn"])
def test_a_tree_is_learned_whole_in_two_dimensions(tree, tmp_path, model):
    words = [
        tree,
        "--hierarchy",
        "--closure",
        "--model",
        model,
        "--dim",
        2,
        "--out",
        tmp_path / "run",
        "--json",
    ]
    done = run("embed", *words, "--epochs", 300, "--eval-every", 100)
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    if model != "hgcn":  # a convolution makes siblings alike, but the ranks are there
        assert found["hierarchy_map"] == 100
        assert found["mean_rank"] == 1
        assert found["direction"] == 100
    assert found["hierarchy"]["depth"] == 3
    assert found["hierarchy"]["roots"] == 1
    assert found["recipe"] == ("hierarchy" if model == "hgcn" else "plane")
    assert "edges are read from a node to its ancestor" in done.stderr
    asked = run("predict", tmp_path / "run", "--ancestors", 3, "--node", "dog", "--json")
    assert asked.exit_code == 0, asked.stderr
    rows = json.loads(asked.stdout)["ancestors"]
    assert [row["node"] for row in rows] == ["dog"] * 3
    if model != "hgcn":
        assert {row["ancestor"] for row in rows} == {"canine", "carnivore", "mammal"}
        assert all(row["given"] for row in rows)


def test_held_out_pairs_are_tested(tree, tmp_path):
    words = [
        tree,
        "--hierarchy",
        "--closure",
        "--hold-out",
        0.4,
        "--model",
        "points",
        "--out",
        tmp_path / "run",
    ]
    done = run("embed", *words, "--epochs", 50, "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["hierarchy"]["held_out"] > 0
    assert {"test_map", "test_auc"} <= set(found)


def test_a_cycle_is_refused_and_leaves_nothing(tree, tmp_path):
    with tree.open("a") as file:
        file.write("mammal,dog\n")
    done = run("embed", tree, "--hierarchy", "--ancestor", "target", "--out", tmp_path / "run")
    assert done.exit_code == 3
    assert "'dog' → 'canine' → 'carnivore' → 'mammal'" in done.stderr
    assert "--break-cycles" in done.stderr
    assert not (tmp_path / "run").exists()


def test_what_to_do_next_is_about_hierarchies(tree, tmp_path):
    with tree.open("a") as file:
        file.write("seal,carnivore\nseal,aquatic\n")  # a second root
    words = [tree, "--hierarchy", "--closure", "--rank-by", "distance", "--model", "points", "--epochs", 3]
    done = run("embed", *words, "--out", tmp_path / "run")
    assert done.exit_code == 0, done.stderr
    assert f"predict {tmp_path / 'run'} --ancestors 5 --node ID" in done.stdout
    compared = f"compare embed {tree} --hierarchy --closure --rank-by distance --models points,fpst --seeds 5"
    assert compared in done.stdout
    assert re.search(r"hierarchy +\d+ pairs of a node and an ancestor; 2 roots", done.stdout)


def test_the_comparison_that_is_named_next_can_be_typed(tree, tmp_path):
    """In the plane the recipe decides how nodes start: the width names it, and nothing of it is repeated."""
    words = [tree, "--hierarchy", "--closure", "--dim", 2, "--epochs", 3, "--out", tmp_path / "run"]
    said = run("embed", *words).stdout
    compared = f"compare embed {tree} --hierarchy --closure --dim 2 --models fpst,tokengt --seeds 5"
    assert compared in said
    shorter = [*shlex.split(compared)[:-1], "1", "--epochs", "2", "--out", str(tmp_path / "both"), "--json"]
    done = run(*shorter)
    assert done.exit_code == 0, done.stderr


def test_ancestors_belong_to_a_hierarchy(tree, tmp_path):
    assert run("embed", tree, "--epochs", 3, "--out", tmp_path / "run").exit_code == 0
    done = run("predict", tmp_path / "run", "--ancestors", 3)
    assert done.exit_code == 2
    assert "embed --hierarchy" in done.stderr


def test_the_page_of_the_documentation_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "hierarchies.md").read_text(encoding="utf-8")
    names, said = {}, []
    for kind, block in re.findall(r"^```(python|console)\n(.*?)^```", page, flags=re.M | re.S):
        if kind == "python":
            exec(compile(block, "hierarchies.md", "exec"), names)
            continue
        for line in block.splitlines():
            _, _, *args = shlex.split(line)
            done = run(*args)
            assert done.exit_code == 0, (line, done.stderr)
            said.append(done.stdout)
    assert all(word in said[1] for word in ("canine", "carnivore", "mammal"))
    embedder = names["embedder"]
    assert {name for name, _ in embedder.ancestors("wolf", n=3)} == {"canine", "carnivore", "mammal"}
    assert embedder.score() == 1
