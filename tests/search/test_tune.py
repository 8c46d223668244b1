"""The search for settings: the same space for all, killed and resumed, and never a look at the test."""

import json
import os
import time
from pathlib import Path

import pytest
from small_searches import search_of, study_of
from typer.testing import CliRunner

from gyroformer.cli.app import app
from gyroformer.cli.tune import _command
from gyroformer.errors import GyroformerError, UsageError
from gyroformer.jobs import run as jobs
from gyroformer.models import MODELS
from gyroformer.recipes import read_recipe
from gyroformer.runs import rows
from gyroformer.runs.read import load_graph
from gyroformer.search import life
from gyroformer.search import run as run_module
from gyroformer.search import study as study_module
from gyroformer.search.life import machine, running, sign, take_up_lost
from gyroformer.search.run import run_search
from gyroformer.search.search import Search
from gyroformer.search.space import DROPOUTS, ENTRIES, FEATURES, STARTS, starts_of
from gyroformer.search.study import best_of, ended
from gyroformer.settings import make_job
from gyroformer.tasks.classify import NodeClassification

pytest.importorskip("optuna")


@pytest.mark.parametrize("kind", ENTRIES)
@pytest.mark.parametrize("model", MODELS)
def test_every_model_may_choose_its_features_and_every_point_is_a_job(model, kind, files):
    search = search_of(files, model=model)
    space = search.space(kind)
    assert {ENTRIES[kind], *FEATURES} <= set(space)
    first, *starts = starts_of(space, search.job(), kind)
    usual = make_job("classify", model={"name": model}, has_features=True)
    assert first["features.mixing"] == usual.features.mixing
    assert first["training.weight_decay"] == usual.training.weight_decay
    # a network's own dropout is that of its paper, which its recipe does not say
    options = {**usual.model.options, "in_features": 1, "classes": 2}
    own = MODELS[model].options(**options)
    assert first["model.options.dropout"] == getattr(own, "used_dropout", own.dropout)
    assert first["features.entries"] == {"words": "row", "numbers": "quantile", "vectors": "zscore"}[kind]
    for start, given in zip(starts, STARTS[kind], strict=True):
        assert start["features.entries"] in ENTRIES[kind].values
        assert {name: start[name] for name in given if name.startswith("features.")}.items() <= given.items()
    if "layers" in search.job().model.options:  # what a start does not say is the recipe's
        assert {start["model.options.layers"] for start in starts} == {search.job().model.options["layers"]}
    if "identifiers" in search.job().model.options:  # with long words one start is of these alone
        without = [start.get("model.options.identifiers") == 0 for start in starts]
        assert sum(without) == (kind != "numbers")
    # nobody begins without dropout where others have some
    for start, given in zip(starts, STARTS[kind], strict=True):
        named = {name: start[name] for name in DROPOUTS if name in start}
        assert named.items() <= given.items()
    names = [choice.name for choice in space]
    assert len(set(names)) == len(names)
    for last in (False, True):
        point = {}
        for choice in space:
            if choice.applies(point):
                point[choice.path] = choice.values[-1 if last else 0]
        job = search.job(point)
        assert job.training.epochs == 3
        assert job.seed >= 1000


def test_what_is_held_leaves_the_space(files):
    search = search_of(files)
    held = Search(**vars(search) | {"fixed": search.fixed | {"features": {"mixing": "none"}}})
    assert "features.mixing" not in {choice.path for choice in held.space("words")}
    assert held.name(held.space("words")) != search.name(search.space("words"))
    embed = Search("embed", "web-edu", "q-gcn", 3)
    paths = {choice.path for choice in embed.space(None)}
    assert paths == {"model.options.time_dim", "training.curvature_lr"}
    link = Search("link", "cora", "gcn", 3, fixed={"objective": {"degrees": True}})
    assert [c.path for c in link.space(None)][-2:] == [
        "training.weight_decay",
        "objective.learn_decoder",
    ]


def test_what_hangs_on_a_held_setting_is_searched(files, tmp_path):
    search = search_of(files, 3)
    held = Search(**vars(search) | {"fixed": search.fixed | {"features": {"mixing": "joined"}}})
    found = run_search(held, str(tmp_path / "journal.log"))
    assert {"features.hops", "features.norm", "features.loops"} <= found.params.keys()
    assert found.job.features.mixing == "joined"


def test_another_graph_or_code_is_another_study(files, tmp_path, monkeypatch):
    search, storage = search_of(files, 2), str(tmp_path / "journal.log")
    first = run_search(search, storage)
    assert run_search(search, storage) == first
    monkeypatch.setattr(rows, "MODEL_GENERATIONS", {"gcn": 7})
    second = run_search(search, storage)
    labels = Path(search.fixed["graph"]["labels"])
    labels.write_text(labels.read_text().replace(",0", ",2"))
    third = run_search(search, storage)
    assert len({found.study for found in (first, second, third)}) == 3


def test_a_search_never_looks_at_the_test(files, tmp_path, monkeypatch):
    def looked(*args, **keywords):
        raise AssertionError("the test was looked at")

    monkeypatch.setattr(NodeClassification, "test", looked)
    monkeypatch.setattr(NodeClassification, "results", looked)
    told = []
    found = run_search(search_of(files, 5, seeds=2), str(tmp_path / "journal.log"), tell=told.append)
    assert [one.done for one in told] == [1, 2, 3, 4, 5]
    assert found.value == max(one.value for one in told if one.value is not None) == told[-1].best
    assert found.trials == 5


@pytest.mark.parametrize("workers", [1, 2])
def test_how_the_trials_get_on_is_said(workers, files, tmp_path, monkeypatch):
    monkeypatch.setattr(study_module, "LOOK", 0.0)
    heard = []
    search = search_of(files, 2, seeds=2, fixed={"training": {"epochs": 3}})
    run_search(search, str(tmp_path / "journal.log"), workers=workers, watch=heard.append)
    begun = [(one.number, one.run) for one in heard if one.epoch == 0]
    assert sorted(begun) == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert {one.runs for one in heard} == {2}
    epochs = [(one.epoch, one.epochs) for one in heard if one.epoch]
    # in this process after each epoch; from others not more often than once a second
    assert (
        set(epochs) == {(1, 3), (2, 3), (3, 3)} if workers == 1 else set(epochs) <= {(1, 3), (2, 3), (3, 3)}
    )


@pytest.mark.parametrize("first", [2, 5])  # fewer than the starts, and more
def test_a_study_that_was_stopped_ends_as_one_that_was_not(first, files, tmp_path):
    whole, parts = str(tmp_path / "whole.log"), str(tmp_path / "parts.log")
    at_once = run_search(search_of(files, 7), whole)
    run_search(search_of(files, first), parts)
    assert run_search(search_of(files, 7), parts) == at_once
    tried = [[trial.params for trial in study_of(files, storage).trials] for storage in (whole, parts)]
    assert tried[0] == tried[1]
    entries = [point["features.entries"] for point in tried[1][:5]]
    assert entries == ["quantile", *(start["features.entries"] for start in STARTS["numbers"])]


def test_another_seed_is_another_study(files):
    names = {search.name(search.space("numbers")) for search in (search_of(files), search_of(files, seed=7))}
    assert len(names) == 2


def test_settings_that_were_tried_are_not_trained_again(files, tmp_path, monkeypatch):
    trained, train = [], jobs.train_only

    def counted(job, *args, **options):
        trained.append(job.training.curvature_lr)
        return train(job, *args, **options)

    monkeypatch.setattr(jobs, "train_only", counted)
    search = Search("embed", str(files[0]), "hgcn", 8, fixed={"training": {"epochs": 2}})
    assert [len(choice.values) for choice in search.space(None)] == [3]
    told = []
    found = run_search(search, str(tmp_path / "journal.log"), tell=told.append)
    assert found.trials == 8
    assert len(trained) == len(set(trained)) <= 3
    again = next(one for one in told if one.said)
    first = told[int(again.said.removeprefix("the settings of trial "))]
    assert (first.value, first.said) == (again.value, "")


@pytest.mark.parametrize("model", MODELS)
def test_an_activation_is_searched_where_it_does_something(model, files):
    search = Search("embed", str(files[0]), model, 1, fixed={"training": {"epochs": 1}})
    if "activation" not in search.job().model.options:
        return
    graph = load_graph(search.job().graph)
    found = [
        jobs.train_only(search.job({"model.options.activation": name}), graph, listen=lambda progress: None)
        for name in ("relu", "tanh")
    ]
    searched = "model.options.activation" in {choice.path for choice in search.space(None)}
    assert (found[0].metrics != found[1].metrics) == searched


def test_a_trial_whose_worker_died_is_done_again(files, tmp_path, monkeypatch):
    storage = tmp_path / "journal.log"
    study = study_of(files, storage)
    dead, far, alive = study.ask(), study.ask(), study.ask()
    asked = dead.suggest_categorical("features.entries", ENTRIES["numbers"].values)
    dead.set_user_attr("host", machine())
    dead.set_user_attr("pid", 2**22 + 1)  # beyond every process
    far.set_user_attr("host", "another machine")
    far.set_user_attr("beat", time.time())
    sign(alive)
    take_up_lost(study)
    assert [trial.number for trial in running(study)] == [far.number, alive.number]
    assert ended(study) == []
    waiting = [trial for trial in study.get_trials() if trial.state.name == "WAITING"]
    assert asked in [trial.system_attrs.get("fixed_params", {}).get("features.entries") for trial in waiting]
    monkeypatch.setattr(life, "LOST_AFTER", 0.0)  # as if the other machine had been silent for long
    take_up_lost(study)
    assert [trial.number for trial in running(study)] == [alive.number]


def test_a_trial_that_another_has_under_way_is_waited_for(files, tmp_path):
    search, storage = search_of(files, 2), str(tmp_path / "journal.log")
    study = study_of(files, storage, trials=2)
    other = study.ask()
    sign(other)
    told = []

    def tell(one):
        told.append(one.state)
        if one.state == "waiting":
            study.tell(other, 99.5)

    for choice in search.space("numbers"):
        if choice.when is None:
            other.suggest_categorical(choice.name, choice.values)
    found = run_search(search, storage, tell=tell)
    assert "waiting" in told
    assert (found.trials, found.value, found.number) == (2, 99.5, other.number)


def test_workers_that_begin_together_do_not_try_the_same(files, tmp_path):
    storage = str(tmp_path / "journal.log")
    run_search(search_of(files, 6), storage)
    study, search = study_of(files, storage, trials=6), search_of(files, 8)
    study.sampler = study_module.sampler(search, 6)  # as another worker does that begins after six
    other = study.ask()
    sign(other)
    drawn = {}
    for choice in search.space("numbers"):
        if choice.applies(drawn):
            drawn[choice.path] = other.suggest_categorical(choice.name, choice.values)
    run_search(search, storage, tell=lambda one: one.state == "waiting" and study.tell(other, 1.0))
    assert study.trials[7].params != study.trials[6].params


def test_workers_that_are_killed_are_an_error(files, tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "_worker", _killed)
    with pytest.raises(GyroformerError, match="every worker was ended from outside"):
        run_search(search_of(files, 4), str(tmp_path / "journal.log"), workers=2, threads=1)


def _killed(*_):
    os.kill(os.getpid(), 9)


def test_several_workers_share_a_study(files, tmp_path):
    storage = str(tmp_path / "journal.log")
    found = run_search(search_of(files, 6), storage, workers=2, threads=1)
    assert found.trials == 6
    assert running(study_of(files, storage)) == []
    assert best_of(study_of(files, storage)).number == found.number


def tune(*words, code=0):
    done = CliRunner().invoke(app, ["tune", *map(str, words)])
    assert done.exit_code == code, done.output
    return done


def test_the_command_writes_a_recipe_that_a_job_takes(files, tmp_path):
    edges, given = files
    fix = [f"--fix={name}={value}" for name, value in given["graph"].items()]
    words = ["classify", edges, "--model", "gcn", "--trials", 4, "--recipe", "networks", *fix]
    words += ["--fix=epochs=3", "--fix=split=random", "--out", tmp_path / "tune"]
    done = tune(*words, "--json")
    best = json.loads(done.stdout)["best"]
    assert "4/4" in done.stderr
    assert best["params"]["features.entries"]
    text = Path(best["recipe"]).read_text(encoding="utf-8")
    assert text.startswith(f"# validation F1 {best['value']:.2f}")
    assert "the test was not looked at" in text
    job = make_job("classify", recipe=best["recipe"], model={"name": "gcn"})
    assert job.features.entries == best["params"]["features.entries"]
    assert job.training.epochs == 3
    assert "to use it: gyroformer classify" in tune(*words).stdout


@pytest.mark.parametrize(
    "words, said",
    [
        (["clasify", "cora"], "no task is called 'clasify'; did you mean 'classify'"),
        (["classify", "cora", "--model", "hgnc"], "no model is called 'hgnc'; did you mean 'hgnn'"),
        (["classify", "cora", "--fix", "epochs"], "--fix takes NAME=VALUE"),
        (["classify", "cora", "--fix", "epoch=3"], "has no option 'epoch'; did you mean 'epochs'"),
        (["classify", "cora", "--fix", "epochs=none"], "--epochs must be"),
        (["classify", "cora", "--fix", "epochs=3", "--fix", "epochs=4"], "--fix gives epochs twice"),
        (["classify", "cora", "--fix", "balanced=perhaps"], "--fix balanced must be yes or no"),
        (["classify", "cora", "--recipe", "nothing.toml"], "nothing.toml: is missing"),
    ],
)
def test_wrong_words_are_one_line_and_nothing_is_written(words, said, tmp_path):
    done = tune(*words, "--out", tmp_path / "tune", code=2)
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "tune").exists()


def test_a_model_that_leaves_nothing_to_search_is_named(files, tmp_path):
    done = tune("embed", files[0], "--model", "sgc", "--out", tmp_path / "tune", code=2)
    assert "embed with sgc leaves nothing to search on this graph: choose another model" in done.stderr
    assert not (tmp_path / "tune").exists()


def test_a_place_that_cannot_be_written_is_said_before_the_search(files, tmp_path):
    edges, given = files
    (tmp_path / "taken.toml").mkdir()
    words = ["classify", str(edges), "--model", "gcn", "--trials", "2", "--out", str(tmp_path / "tune")]
    words += ["--fix", f"labels={given['graph']['labels']}", "--write", str(tmp_path / "taken.toml")]
    done = tune(*words, code=2)
    assert "is a folder; name a file" in done.stderr
    assert not (tmp_path / "tune").exists()


def test_the_command_in_the_recipe_says_what_and_not_where():
    words = ["tune", "classify", "cora", "--workers", "2", "--write=x.toml", "--trials", "5", "--json"]
    assert _command(words) == "gyroformer tune classify cora --trials 5"


def test_a_recipe_that_is_no_toml_is_named(tmp_path):
    (tmp_path / "bad.toml").write_text("[features\n")
    with pytest.raises(UsageError, match=r"bad\.toml: is not a recipe in TOML"):
        read_recipe("classify", str(tmp_path / "bad.toml"))
