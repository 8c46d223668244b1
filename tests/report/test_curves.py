import dataclasses as dc

import pytest

from gyroformer.report.curves import (
    CURVE_ROWS,
    curvature_panel,
    head_names,
    is_thinned,
    loss_panel,
    main_metric,
    metric_panel,
    thinned,
    training_chart,
)
from gyroformer.report.record import read_run


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
    for panel in (loss_panel([long]), metric_panel([long], "map"), curvature_panel([long])):
        series = panel["series"][0]
        assert len(series["x"]) == len(series["y"]) == CURVE_ROWS
        assert series["x"][-1] == 3 * CURVE_ROWS


def test_one_figure_holds_curvature_metric_and_loss(curved):
    chart = training_chart([curved])
    assert [panel["title"] for panel in chart["panels"]] == ["curvature k", "mAP (%)", "loss"]
    bare = dc.replace(curved, rows=[{"epoch": 1, "loss": 1.0}])
    assert [panel["title"] for panel in training_chart([bare])["panels"]] == ["loss"]


def test_curves_hold_the_rows(curved):
    (series,) = loss_panel([curved])["series"]
    assert series["x"] == [1, 2, 3, 4, 5, 6]
    assert series["y"] == pytest.approx([row["loss"] for row in curved.rows], rel=1e-5)
    assert main_metric([curved]) == "map"
    assert metric_panel([curved], "map")["series"][0]["x"] == [2, 4, 6]


def test_a_steep_loss_is_logarithmic_and_one_below_zero_is_not(curved):
    def logarithmic(losses):
        rows = [{"epoch": i + 1, "loss": loss} for i, loss in enumerate(losses)]
        return loss_panel([dc.replace(curved, rows=rows)])["log"]

    assert logarithmic([1000.0, 1.0])
    assert not logarithmic([2.0, 1.0])
    assert not logarithmic([1000.0, -1.0])


def test_validation_loss_and_the_kept_state_are_marked(runs):
    run = read_run(runs["labelled"], "labelled")
    assert [series["name"] for series in loss_panel([run])["series"]] == ["training loss", "validation loss"]
    assert main_metric([run]) == "val_f1"
    best = dc.replace(run, results={**run.results, "best_epoch": 2})
    (series,) = metric_panel([best], "val_f1")["series"]
    assert series["ring"] == [2, series["y"][0]]


def test_every_head_has_a_curve_with_zero_and_both_signs_named(curved, flat):
    panel = curvature_panel([curved])
    assert [series["name"] for series in panel["series"]] == ["head 1", "head 2"]
    assert panel["series"][1]["y"] == pytest.approx([row["curvatures"][1] for row in curved.rows], rel=1e-5)
    assert panel["zero"]
    assert panel["signs"]
    both = curvature_panel([curved, flat])
    assert [series["name"] for series in both["series"]] == ["curved, head 1", "curved, head 2", "flat: flat"]
    assert len({series["dash"] for series in both["series"][:2]}) == 2
    assert [series["colour"] for series in both["series"]] == ["run-0", "run-0", "run-1"]
    bare = dc.replace(flat, rows=[{"epoch": 1, "loss": 1.0}])
    assert curvature_panel([bare]) is None


def test_layers_are_named(curved):
    two = dc.replace(curved, results={**curved.results, "curvatures": [[0.1, 0.2], [0.3, 0.4]]})
    assert head_names(two) == ["layer 1, head 1", "layer 1, head 2", "layer 2, head 1", "layer 2, head 2"]
