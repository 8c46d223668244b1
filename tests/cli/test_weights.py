"""Weights and directions, from the outside: they count, or the command says that they do not."""

import json

import pytest
from small_graphs import blocks_edges, write_blocks
from typer.testing import CliRunner

from gyroformer.cli.app import app
from gyroformer.models import MODELS

FAST = ["--epochs", "2"]
#: models for which the number of neighbours counts, not their weights, in classification
BY_ATTENTION = {"gat", "hat", "gil", "hyp-attention", "mlp", "points"}


def run(*args):
    return CliRunner().invoke(app, [*map(str, args)], catch_exceptions=False)


@pytest.fixture
def files(tmp_path):
    """Return two files of one graph that differ in their weights alone, and the files of features and labels."""
    u, v, _ = blocks_edges(size=8)
    for name, factor in (("light.csv", 1), ("heavy.csv", 50)):
        rows = [f"n{a},n{b},{factor if a % 2 else 1}" for a, b in zip(u.tolist(), v.tolist(), strict=True)]
        (tmp_path / name).write_text("source,target,weight\n" + "\n".join(rows) + "\n")
    _, features, labels = write_blocks(tmp_path, size=8)
    return tmp_path / "light.csv", tmp_path / "heavy.csv", features, labels


def loss(folder):
    return [json.loads(line)["loss"] for line in (folder / "metrics.jsonl").read_text().splitlines()]


def losses(tmp_path, task, files, *options):
    found = []
    for index, path in enumerate(files[:2]):
        out = tmp_path / f"{task}-{index}-{len(list(tmp_path.iterdir()))}"
        done = run(task, path, *FAST, *options, "--out", out, "--json")
        assert done.exit_code == 0, done.stderr
        found.append(loss(out))
    return found


@pytest.mark.parametrize("task", ["embed", "link"])
@pytest.mark.parametrize("model", ["fpst", "gcn"])
def test_weights_change_what_is_learned(files, tmp_path, task, model):
    light, heavy = losses(tmp_path, task, files, "--model", model)
    assert light != heavy


@pytest.mark.parametrize("model", sorted(MODELS.keys() - BY_ATTENTION))
def test_weights_count_in_every_model_that_averages(files, tmp_path, model):
    options = ["--model", model, "--features", files[2], "--labels", files[3], "--mixing", "none"]
    if MODELS[model].tokens:
        options += ["--identifiers", "4"]
    light, heavy = losses(tmp_path, "classify", files, *options)
    assert light != heavy


def test_mixing_counts_weights(files, tmp_path):
    options = ["--model", "mlp", "--features", files[2], "--labels", files[3], "--mixing", "power"]
    light, heavy = losses(tmp_path, "classify", files, *options)
    assert light != heavy


def test_no_weights_on_request(files, tmp_path):
    light, heavy = losses(tmp_path, "embed", files, "--weight", "none")
    assert light == heavy


@pytest.mark.parametrize("model", sorted(BY_ATTENTION))
def test_weights_without_effect_are_said_and_refused_when_asked_for(files, tmp_path, model):
    options = ["--model", model, "--features", files[2], "--labels", files[3], "--mixing", "none"]
    done = run("classify", files[1], *FAST, *options, "--out", tmp_path / "a")
    assert (done.exit_code, "weights of edges have no effect" in done.stderr) == (0, True)
    done = run("classify", files[1], *FAST, *options, "--weight", "weight", "--out", tmp_path / "b")
    assert (done.exit_code, "weights of edges have no effect" in done.stderr) == (2, True)
    assert not (tmp_path / "b").exists()


def test_weights_below_0_are_refused(tmp_path):
    (tmp_path / "g.csv").write_text("source,target,weight\na,b,1\nb,c,-2\nc,d,0\nd,a,1\n")
    done = run("embed", tmp_path / "g.csv", *FAST, "--out", tmp_path / "run")
    assert done.exit_code == 3
    assert "the edge from 'b' to 'c' has the weight -2" in done.stderr
    assert "--weight none" in done.stderr
    assert not (tmp_path / "run").exists()


def test_directions_count_for_directed_tokens_only(files, tmp_path):
    # along a tree the network adds nothing at first, and so few epochs would not see its tokens
    seen = ["--identifiers", "4", "--start", "random"]
    once = losses(tmp_path, "embed", files, "--directed", *seen)
    both = losses(tmp_path, "embed", files, *seen)
    assert once != both
    done = run("embed", files[0], *FAST, "--directed", "--model", "gcn", "--out", tmp_path / "refused")
    assert (done.exit_code, "--directed has no effect with the model gcn" in done.stderr) == (2, True)
    assert not (tmp_path / "refused").exists()


def test_a_run_with_weights_is_asked_again(files, tmp_path):
    assert run("link", files[1], *FAST, "--out", tmp_path / "run").exit_code == 0
    done = run("predict", tmp_path / "run", "--json")
    assert (done.exit_code, "differ" in done.stderr) == (0, False)
