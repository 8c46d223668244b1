import dataclasses as dc

import numpy as np

from gyroformer.report.record import read_run
from gyroformer.report.story import graph_name, repeated, story


def with_results(run, **values):
    return dc.replace(run, results={**run.results, **values})


def test_a_run_is_told_in_words(runs):
    run = read_run(runs["curved"], "curved")
    said = story(run)
    assert "placed the 40 nodes of <strong>a graph from Python</strong>" in said
    assert f"{run.results['map']:.2f} %" in said
    assert "mean average precision" in said
    assert "6 epochs" in said
    assert "seed 0" in said
    assert "learned to tell the classes" in story(read_run(runs["labelled"], "labelled"))
    assert "held-out edges" in story(read_run(runs["linked"], "linked"))
    assert "Its space is flat" in story(read_run(runs["flat"], "flat"))


def test_curvatures_are_called_by_what_is_seen_of_them(runs):
    run = with_results(read_run(runs["curved"], "curved"), curvatures=[[-2.0, 0.9]])
    wide = np.random.default_rng(0).normal(size=run.embedding.shape) * 0.4
    said = story(dc.replace(run, embedding=wide, curvature=np.array([-2.0, 0.9])))
    assert "head 1 (k = −2.000) became <strong>hyperbolic</strong>" in said
    assert "head 2 (k = +0.900) became <strong>spherical</strong>" in said
    near = story(dc.replace(run, embedding=wide * 1e-3, curvature=np.array([-2.0, 0.9])))
    assert "stayed <strong>nearly flat</strong>" in near


def test_the_flat_twin_is_named_where_there_is_one(runs):
    run, twin = (read_run(runs[name], name) for name in ("curved", "flat"))
    pair = with_results(run, map=80.0), with_results(twin, map=70.0)
    assert "10.00 points ahead of its flat twin (70.00 %)" in story(pair[0], pair)
    assert "behind" in story(with_results(run, map=60.0), pair)
    assert "equally well" in story(with_results(run, map=70.0), pair)
    assert "its flat twin" not in story(pair[1], pair)
    assert "twin" not in story(pair[0], [pair[0], with_results(twin, graph="another")])


def test_the_command_is_repeated_only_if_there_was_one(runs):
    run = read_run(runs["curved"], "curved")
    assert repeated(run) == ""  # made by the tests
    argv = ["/usr/bin/gyroformer", "embed", "my graph.csv", "--epochs", "3"]
    made = dc.replace(run, manifest={**run.manifest, "argv": argv})
    assert repeated(made) == "gyroformer embed 'my graph.csv' --epochs 3"
    assert "my graph.csv" in story(made)
    assert repeated(dc.replace(run, manifest={"argv": ["/usr/bin/other", "embed"]})) == ""


def test_names_from_outside_are_escaped(runs):
    run = with_results(read_run(runs["curved"], "curved"), graph="<img src=x>.csv", model="<b>", task="<i>")
    assert graph_name(run) == "<img src=x>.csv"
    assert not any(tag in story(run) for tag in ("<img", "<b>", "<i>"))
