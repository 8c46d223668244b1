import dataclasses as dc

import pytest

from gyroformer.report.curves import (
    CURVE_ROWS,
    curvature_chart,
    head_names,
    is_thinned,
    loss_chart,
    main_metric,
    metric_chart,
    thinned,
)
from gyroformer.report.record import read_run


@pytest.fixture(scope="module")
def curved(runs):
    return read_run(runs["curved"], "curved")


@pytest.fixture(scope="module")
def flat(runs):
    return read_run(runs["flat"], "flat")


def test_thinning_keeps_both_ends():
    assert thinned(5, 10) == [0, 1, 2, 3, 4]
    places = thinned(100_001, 2_000)
    assert (len(places), places[0], places[-1]) == (2_000, 0, 100_000)
    assert len(set(places)) == 2_000


def test_long_runs_are_thinned_and_it_is_known(curved):
    row = curved.rows[-1]
    long = dc.replace(curved, rows=[{**row, "epoch": i + 1} for i in range(3 * CURVE_ROWS)])
    assert is_thinned([long])
    assert not is_thinned([curved])
    for chart in (loss_chart([long]), metric_chart([long], "map"), curvature_chart([long])):
        trace = chart["data"][0]
        assert len(trace["x"]) == len(trace["y"]) == CURVE_ROWS
        assert trace["x"][-1] == 3 * CURVE_ROWS


def test_curves_hold_the_rows(curved):
    (trace,) = loss_chart([curved])["data"]
    assert trace["x"] == [1, 2, 3, 4, 5, 6]
    assert trace["y"] == pytest.approx([row["loss"] for row in curved.rows], rel=1e-5)
    assert main_metric([curved]) == "map"
    assert metric_chart([curved], "map")["data"][0]["x"] == [2, 4, 6]


def test_a_steep_loss_is_logarithmic_and_one_below_zero_is_not(curved):
    def axis(losses):
        rows = [{"epoch": i + 1, "loss": loss} for i, loss in enumerate(losses)]
        return loss_chart([dc.replace(curved, rows=rows)])["layout"]["yaxis"].get("type")

    assert axis([1000.0, 1.0]) == "log"
    assert axis([2.0, 1.0]) is None
    assert axis([1000.0, -1.0]) is None


def test_validation_loss_and_the_kept_state_are_marked(runs):
    run = read_run(runs["labelled"], "labelled")
    assert [trace["name"] for trace in loss_chart([run])["data"]] == ["training", "validation"]
    assert main_metric([run]) == "val_f1"
    best = dc.replace(run, results={**run.results, "best_epoch": 2})
    ring = metric_chart([best], "val_f1")["data"][-1]
    assert ring["x"] == [2]
    assert ring["name"] == "kept"


def test_every_head_has_a_curve_with_zero_and_both_signs_named(curved, flat):
    chart = curvature_chart([curved])
    assert [trace["name"] for trace in chart["data"]] == ["head 1", "head 2"]
    assert chart["data"][1]["y"] == pytest.approx([row["curvatures"][1] for row in curved.rows], rel=1e-5)
    assert chart["layout"]["shapes"][0]["y0"] == chart["layout"]["shapes"][0]["y1"] == 0
    assert [a["text"][:-2] for a in chart["layout"]["annotations"]] == ["spherical", "hyperbolic"]
    both = curvature_chart([curved, flat])
    assert [trace["name"] for trace in both["data"]] == ["curved, head 1", "curved, head 2", "flat: flat"]
    assert len({trace["line"]["dash"] for trace in both["data"][:2]}) == 2
    bare = dc.replace(flat, rows=[{"epoch": 1, "loss": 1.0}])
    assert curvature_chart([bare]) is None


def test_layers_are_named(curved):
    two = dc.replace(curved, results={**curved.results, "curvatures": [[0.1, 0.2], [0.3, 0.4]]})
    assert head_names(two) == ["layer 1, head 1", "layer 1, head 2", "layer 2, head 1", "layer 2, head 2"]
