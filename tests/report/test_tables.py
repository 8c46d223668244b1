import dataclasses as dc

from gyroformer.report.markup import data_script, nested_table
from gyroformer.report.names import curvature_line, duration, metrics_of, number, signed
from gyroformer.report.record import read_run
from gyroformer.report.tables import comparison_rows, differing_settings, headline, spread_line


def test_numbers_are_written_for_people():
    assert number(12345) == "12,345"
    assert number(-0.126) == "−0.13"
    assert number(None) == "–"
    assert number(True) == "yes"
    assert [signed(k) for k in (0.0, -0.42, 0.00069, -3.2e-5)] == ["0", "−0.420", "+0.00069", "−3.2e−05"]
    assert curvature_line([]) == "none: flat"
    assert curvature_line([[0.0, 0.0]]) == "0: flat"
    assert curvature_line([[-1.0, 0.5], [0.25, 0.0]]) == "−1.000 +0.500; +0.250 0"
    assert [duration(s) for s in (3.21, 125, 7260)] == ["3.2 s", "2 min 05 s", "2 h 01 min"]


def test_the_figure_that_counts_comes_first():
    found = metrics_of({"val_f1": 70.0, "seconds": 3.0, "hits": 2.0, "test_f1": 80.0, "epochs": 5})
    assert list(found) == ["test_f1", "val_f1", "hits"]


def test_the_better_is_bold_and_a_lower_loss_is_better(runs):
    run = read_run(runs["curved"], "a")
    a = dc.replace(run, results={**run.results, "map": 80.0, "val_loss": 0.5})
    b = dc.replace(run, name="b", results={**run.results, "map": 90.0, "val_loss": 0.7})
    rows = dict(comparison_rows([a, b]))
    assert rows["mAP"] == ["80.00", "<strong>90.00</strong>"]
    assert rows["validation loss"] == ["<strong>0.50</strong>", "0.70"]
    assert dict(comparison_rows([a, a]))["mAP"] == ["80.00", "80.00"]


def test_only_settings_that_differ_are_compared(runs):
    both = [read_run(runs[name], name) for name in ("curved", "flat")]
    differing = dict(differing_settings(both))
    assert differing["model.name"] == ["fpst", "tokengt"]
    assert set(differing) == {
        "model.name",
        *(f"model.options.{name}" for name in ("curvature", "learn_curvature", "share_curvature")),
    }
    assert differing_settings(both[:1] * 2) == []


def test_runs_that_differ_in_their_seed_have_a_mean_and_its_interval(runs):
    run = read_run(runs["curved"], "a")
    seeds = [
        dc.replace(run, name=str(i), job={**run.job, "seed": i}, results={**run.results, "map": value})
        for i, value in enumerate((80.0, 82.0, 84.0))
    ]
    assert "3 seeds: mAP <strong>82.00 ± 4.97</strong>" in spread_line(seeds)
    assert spread_line(seeds[:1]) == ""
    assert spread_line([seeds[0], read_run(runs["flat"], "flat")]) == ""


def test_text_from_outside_is_escaped(runs):
    run = read_run(runs["curved"], "a")
    evil = dc.replace(run, results={**run.results, "graph": "<img onerror=x>", "recipe": "<b>"})
    assert "<img" not in headline(evil)
    assert "&lt;b&gt;" in headline(evil)
    assert "<i>" not in nested_table({"<i>": {"<i>": ["<i>", None]}})
    assert "</script>" not in data_script({"a": "</script><!--"}).removesuffix("</script>")


def test_nested_settings_have_groups():
    table = nested_table({"seed": 0, "model": {"name": "fpst", "options": {"dim": 8}}, "empty": {}})
    assert table.index("seed") < table.index('class="group"')
    assert "options › dim" in table
    assert table.count('class="group"') == 1
