"""Every option of every command that trains: the value typed is the value in the settings."""

import itertools
import json
from typing import Literal, get_args, get_origin

import pytest
import typer
from small_graphs import write_blocks
from typer.testing import CliRunner

from gyroformer.cli.app import app
from gyroformer.cli.job_flags import job_command, job_flags
from gyroformer.models import MODELS
from gyroformer.options.constructor import shown
from gyroformer.recipes import usual_recipe
from gyroformer.settings import make_job
from gyroformer.tasks import TASKS

#: text typed for options of which not every value fits every other option (--converged 0.1 and --thorough,
#: --rank-by depth without --hierarchy)
TYPED = {
    "heads": "1",
    "dim": "32",
    "converged": "none",
    "rank_by": "distance",
    "curvature": {"fmgnn": "[-0.5, 0.25]"},
}


def parsed(task, *words):
    """Return the job and the run options that a command line stands for, without running it."""
    found = []
    command, kind = job_command(task, lambda graph, job, options: found.append((job, options)))
    alone = typer.Typer()
    alone.command(cls=kind, name=task)(command)
    alone.command(name="other")(lambda: None)
    done = CliRunner().invoke(alone, [task, "g.csv", *words])
    assert done.exit_code == 0, (words, done.output, done.exception)
    return found[0]


def texts(one, model, task):
    """Return what can be typed for an option, 0 among it where it may be that."""
    if one.name == "recipe":
        return [usual_recipe(task, model=model, dataset="")]
    special = TYPED.get(one.name)
    if special is not None and (not isinstance(special, dict) or model in special):
        return [special if isinstance(special, str) else special[model]]
    found = []
    for hint in get_args(one.hint) if get_origin(one.hint) not in (None, Literal) else (one.hint,):
        if get_origin(hint) is Literal:
            found += [str(choice) for choice in get_args(hint)]
        elif hint in (int, float):
            numbers = (0, 1, 3, 0.25) if hint is float else (0, 1, 3)
            found += [str(number) for number in numbers if one.range.holds(number)] or [
                shown(one.range.at_least / 2)
            ]
        elif hint is str:
            found.append("a-word")
    return found


def value_at(settings, path):
    for key in path:
        settings = settings[key] if isinstance(settings, dict) else getattr(settings, key)
    return settings


CASES = [pytest.param(task, model, id=f"{task}-{model}") for task in TASKS for model in MODELS]


@pytest.mark.parametrize("task, model", CASES)
def test_the_value_typed_is_the_value_in_the_settings(task, model):
    flags = [flag for flag in job_flags(task, model) if not flag.hidden]
    names = [word for flag in flags for word in flag.words.split("/")]
    assert len(set(names)) == len(names), "two options have one flag"
    tried = {}
    for flag in flags:
        if flag.is_switch:
            yes, _, no = flag.words.partition("/")
            tried[flag.words] = [([yes], True)] + ([([no], False)] if no else [])
        else:
            typed = texts(flag.option, model, task)
            tried[flag.words] = [([flag.words, text], flag.value(text)) for text in typed]
        assert tried[flag.words], flag.name
    # the first text of all options at once, then the second, and so on
    for turn, base in itertools.product(range(max(map(len, tried.values()))), ([], ["--hierarchy"])):
        some = [flag for flag in flags if flag.option.help.startswith("of a hierarchy") == bool(base)]
        chosen = {flag.words: tried[flag.words][turn] for flag in some if turn < len(tried[flag.words])}
        if base and not chosen:
            continue
        if chosen.keys() & {"--near", "--far"}:  # they are of near negatives
            chosen["--negatives"] = (["--negatives", "near"], "near")
        words = [word for typed, _ in chosen.values() for word in typed]
        job, options = parsed(task, "--model", model, *base, *words)
        for flag in (flag for flag in some if flag.words in chosen):
            _, want = chosen[flag.words]
            found = value_at(options, flag.path[1:]) if flag.path[0] == "run" else value_at(job, flag.path)
            assert found == want, flag.name
            assert type(found) is type(want), flag.name


@pytest.mark.parametrize("task, model", CASES)
def test_the_default_that_help_shows_is_the_one_that_is_used(task, model):
    job, _ = parsed(task, "--model", model)
    for flag in job_flags(task, model, graph="g.csv"):
        if not flag.hidden and flag.path[0] != "run":
            assert flag.default == value_at(job, flag.path), flag.name


def test_help_shows_the_defaults_of_the_model_and_the_recipe():
    def said(*words):
        said = CliRunner().invoke(app, [*words, "--help"]).output
        return " ".join(said.replace("│", " ").split())

    assert "Number of layers (default: 2)" in said("link", "g.csv", "--model", "gcn")
    assert "Number of layers (default: 1)" in said("embed", "g.csv", "--model", "gcn")
    assert "Number of layers (default: 1)" in said("embed", "g.csv")
    assert "Number of heads or components (default: 8)" in said("link", "g.csv", "--model=gil")
    assert "the whole graph (default: 400)" in said("classify", "cora")
    assert "the whole graph (default: 10000)" in said("embed", "g.csv", "--recipe", "paper")
    assert "--identifiers" not in said("embed", "g.csv", "--model", "hgcn")


def test_zeros_and_noes_reach_the_run(tmp_path):
    edges, features, labels = write_blocks(tmp_path)
    words = ["--features", features, "--labels", labels, "--split", "random", "--epochs", 2, "--json"]
    zeros = ["--dropout", 0, "--weight-decay", 0, "--curvature-lr", 0, "--no-norm", "--no-mixing-loops"]
    done = CliRunner().invoke(
        app, [str(w) for w in ["classify", edges, *words, *zeros, "--out", tmp_path / "run"]]
    )
    assert done.exit_code == 0, done.output
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    usual = make_job("classify", graph={"source": str(edges), "features": str(features)})
    assert usual.training.weight_decay != 0 != usual.model.options["dropout"]
    assert config["job"]["model"]["options"]["dropout"] == config["config"]["dropout"] == 0
    assert config["job"]["training"]["weight_decay"] == config["job"]["training"]["curvature_lr"] == 0
    assert config["job"]["model"]["options"]["norm"] is config["job"]["features"]["loops"] is False


@pytest.mark.parametrize(
    "words, said",
    [
        (["--dim", "8", "--set", "dim=32"], "dim is given twice"),
        (["--set", "dim=8", "--set", "dim=8"], "--set gives dim twice"),
        (["--recipe", ""], "--recipe is empty"),
        (["--out", ""], "--out is empty"),
        (["--set", "heads=0"], "--set heads must be a whole number of at least 1"),
        (["--set", "classes=99"], "has no option 'classes'"),
        (["--set", "self=1"], "has no option 'self'"),
        (["--set", "activation=[1]"], "--set activation must be one of"),
        (["--set", "identifiers=1e3"], "--set identifiers must be a whole number"),
        (["--identifiers", "-1"], "--identifiers must be a whole number of at least 0"),
        (["--identifiers", "1000000000"], "at most 4,096"),
        (["--lr", "1e300"], "--lr must be"),
        (["--lr", "nan"], "--lr must be a finite number"),
        (["--dim", "100000000000"], "--dim must be"),
        (["--layers", "100000"], "--layers must be"),
        (["--threads", "100000"], "--threads must be"),
        (["--threads", "0"], "--threads must be"),
        (["--seed", "-1"], "--seed must be"),
        (["--device", "meta"], "device 'meta' cannot be used"),
        (["--device", "hpu"], "device 'hpu' cannot be used"),
        (["--model", "hgcn", "--identifiers", "4"], "the model 'hgcn' has no option 'identifiers'"),
    ],
)
def test_wrong_values_are_one_line_with_code_2_and_leave_nothing(tmp_path, words, said):
    (tmp_path / "g.csv").write_text("source,target\na,b\nb,c\n")
    out = [] if "--out" in words else ["--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, ["embed", str(tmp_path / "g.csv"), *words, *out])
    assert done.exit_code == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["g.csv"]
