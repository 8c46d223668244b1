"""The paper's tables by command: rows keyed by all that decides them, resumed, collected beside the printed numbers."""

import dataclasses as dc
import json
from pathlib import Path

import pytest
from paper_rows import call, rows_with
from small_graphs import write_tree

from gyroformer.data.load import load
from gyroformer.data.splits import make_split
from gyroformer.errors import UsageError
from gyroformer.jobs.pool import Planned, run_all, run_folder
from gyroformer.models import MODELS
from gyroformer.options import option
from gyroformer.options.training import TrainOptions
from gyroformer.paper import summary, table
from gyroformer.paper.printed import printed, published
from gyroformer.paper.run import run_cells
from gyroformer.paper.summary import collected, differences, is_ours
from gyroformer.paper.table import Column, Table, Variant
from gyroformer.paper.tables import TABLES
from gyroformer.runs import rows as rows_module
from gyroformer.runs import younger
from gyroformer.runs.rows import add_row, key_of, read_rows, settings_sha256, write_rows


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Return a table of one small graph, in which every run is short."""
    path = str(write_tree(tmp_path / "tree.csv")[0])
    made = table.make_job

    def short(task, **values):
        return made(task, **values, training={"epochs": 3})

    monkeypatch.setattr(table, "make_job", short)
    monkeypatch.setattr(summary, "printed", lambda *cell: (50.0, 1.0))
    rows = tuple(Variant(name, name) for name in ("fpst", "gcn"))
    return Table("small", "embed", (Column(path),), rows, seeds=(2, 1), title="a small table")


def job_of(table, model, seed=0):
    return table.cells(models=[model])[0].job(seed)


def test_the_printed_numbers_are_all_there():
    for name in ("table1", "table2"):
        for column in TABLES[name].columns:
            found = [printed(name, column.dataset, model) for model in MODELS]
            assert sum(cell is not None for cell in found) == 12
    assert [one.value for one in published("table2", "cora")] == [86.9, 85.10]
    assert published("table2", "wisconsin") == published("links", "cora") == []
    assert printed("table1", "web-edu", "fpst") == (99.0, 0.08)
    assert printed("table2", "cora", "tokengt") == (81.42, 0.79)
    assert printed("table1", "web-edu", "gil") is None


def test_a_table_has_one_split_for_all_models():
    table = TABLES["table2"]
    for dataset in table.datasets:
        assert len({cell.job().objective.split for cell in table.cells([dataset])}) == 1
    # on the paper's own split, whose test is not one, only what the paper prints is run
    own = {cell.variant.name for cell in table.cells(["airport (legacy)"])}
    assert own == {model for model in MODELS if printed("table2", "airport", model)}
    with pytest.raises(UsageError, match=r"none of gil on airport \(legacy\)"):
        table.cells(["airport (legacy)"], ["gil"])
    assert "points" not in table.models
    assert len(TABLES["table1"].cells()) == 4 * (len(MODELS) + 3)
    seeds = {cell.variant.name: cell.seeds for cell in TABLES["table1"].cells(["web-edu"])}
    assert (seeds["fpst"], seeds["tokengt"], seeds["gcn"]) == (5, 5, 3)


def test_the_tests_have_as_many_nodes_as_is_said(data_folder):
    """What their sample alone leaves open is reckoned from it."""
    for column in TABLES["table2"].columns:
        drawn = {} if column.split == "public" else {"seed": 0}
        split = make_split(load(column.dataset), column.split, **drawn)
        assert split.test.numel() == column.test_nodes, column.name


@pytest.mark.parametrize("name", TABLES)
def test_every_cell_is_a_job_of_its_own(name):
    # a recipe may hold what an ablation takes away: then the two are one run
    cells = [cell for cell in TABLES[name].cells(seeds=1) if (name, cell.task) != ("ablations", "classify")]
    keys = [key_of(cell.job()) for cell in cells]
    assert len(set(keys)) == len(keys)


def test_the_usual_run_of_the_ablations_is_that_of_the_first_table():
    usual = TABLES["ablations"].cells(["web-edu"], ["curvature learned at 0.05"])[0]
    assert key_of(usual.job()) == key_of(TABLES["table1"].cells(["web-edu"], ["fpst"])[0].job())
    swapped = TABLES["ablations"].cells(["cora"], ["MLP with the features of FPS-T"])[0].job()
    fpst = TABLES["table2"].cells(["cora"], ["fpst"])[0].job()
    assert (swapped.model.name, swapped.features) == ("mlp", fpst.features)


def test_runs_are_done_once_and_rows_are_kept(small, tmp_path):
    file, folder, said = tmp_path / "rows.csv", tmp_path / "runs", []
    cells = small.cells(models=["fpst", "gcn"])
    assert run_cells(cells, file=file, folder=folder, workers=2, tell=said.append) == []
    assert [state.done for state in said] == [1, 2, 3]
    assert said[-1].total == 3
    rows = read_rows(file)
    assert set(rows) == {key_of(job) for cell in cells for job in cell.jobs()}
    assert all(float(row["value"]) > 0 and row["width"] == "16" for row in rows.values())
    said.clear()
    run_cells(cells, file=file, folder=folder, tell=said.append)
    assert said == []
    file.unlink()  # the runs themselves are finished: their rows come back without training
    run_cells(cells, file=file, folder=folder, workers=2)
    same = {key: row["value"] for key, row in read_rows(file).items()}
    assert same == {key: row["value"] for key, row in rows.items()}
    found = {row["model"]: row for row in collected(cells, rows)}
    assert (found["fpst"]["seeds"], found["gcn"]["seeds"], found["gcn"]["low"]) == (2, 1, None)
    values = [float(row["value"]) for key, row in rows.items() if key[1] == "fpst"]
    assert found["fpst"]["mean"] == pytest.approx(sum(values) / 2)
    assert found["fpst"]["low"] <= found["fpst"]["mean"] <= found["fpst"]["high"]
    assert (found["fpst"]["paper"], found["fpst"]["paper_std"]) == (50.0, 1.0)


def test_rows_that_another_command_adds_meanwhile_stay(small, tmp_path):
    file = tmp_path / "rows.csv"
    [other] = rows_with(TABLES["table1"].cells(["web-edu"], ["mlp"], 1)[0], (50,))

    def meanwhile(state):
        if state.done == 1:
            add_row(file, other)

    run_cells(small.cells(models=["fpst"]), file=file, folder=tmp_path / "runs", tell=meanwhile)
    assert sorted(row["model"] for row in read_rows(file).values()) == ["fpst", "fpst", "mlp"]


def test_a_row_that_another_command_has_written_otherwise_stays_and_is_said(small, tmp_path, monkeypatch):
    cell, file = small.cells(models=["gcn"])[0], tmp_path / "rows.csv"
    [other] = rows_with(cell, (12,))
    monkeypatch.setattr("gyroformer.jobs.pool.read_rows", lambda path: {})  # as it was before that command
    add_row(file, other)
    [said] = run_cells([cell], file=file, folder=tmp_path / "runs")
    assert "rows.csv has 12 by another command; its row was left as it is" in said
    assert [row["value"] for row in read_rows(file).values()] == ["12"]


def test_a_run_that_fails_is_said_and_the_others_go_on(small, tmp_path):
    absent = Column(str(tmp_path / "absent.csv"))
    missing = Table("small", "embed", (*small.columns, absent), small.variants, (1, 1), "one is missing")
    failed = run_cells(missing.cells(models=["gcn"]), file=tmp_path / "rows.csv", folder=tmp_path / "runs")
    assert len(failed) == 1
    assert "absent.csv" in failed[0]
    assert len(read_rows(tmp_path / "rows.csv")) == 1


def test_whatever_decides_a_run_is_in_its_key(small, monkeypatch):
    job = job_of(small, "fpst")
    changed = [
        job.but(seed=1),
        job.but(dtype="float64"),
        job.but(training=job.training.but(lr=0.5)),
        job.but(objective=job.objective.but(squared=False)),
        job_of(small, "gcn"),
    ]
    keys = {key_of(one) for one in (job, *changed)}
    assert len(keys) == 6
    assert settings_sha256(job) == settings_sha256(job.but(seed=9))
    before = key_of(job)
    folder = run_folder(Path("runs"), job)
    monkeypatch.setattr(rows_module, "MODEL_GENERATIONS", {"fpst": 98})
    assert key_of(job) != before
    assert run_folder(Path("runs"), job) != folder
    monkeypatch.setattr(rows_module, "GENERATION", 99)
    assert key_of(job) != before
    folders = {run_folder(Path("runs"), one) for one in changed}
    assert len(folders) == 5


def test_an_option_younger_than_the_rows_does_not_orphan_them(small, monkeypatch):
    job = job_of(small, "gcn")
    before = settings_sha256(job)

    class Younger(TrainOptions):
        warmup: int = option("epochs of slow start", default=0, at_least=0, neutral=0)

    monkeypatch.setattr(younger, "TrainOptions", Younger)
    same, other = (job.but(training=job.training.part(Younger, warmup=n)) for n in (0, 5))
    assert settings_sha256(same) == before
    assert settings_sha256(other) != before


def test_a_run_that_another_command_has_done_meanwhile_has_not_failed(small, tmp_path, monkeypatch):
    cells = small.cells()[:1]
    row = rows_with(cells[0], [1.0])[0]
    seen = []

    def once_more(path):
        seen.append(path)
        return {} if len(seen) == 1 else {key_of(cells[0].job()): row}

    broken = dc.replace(cells[0].job(), graph=cells[0].job().graph.but(source=str(tmp_path / "absent.csv")))
    monkeypatch.setattr("gyroformer.jobs.pool.read_rows", once_more)
    monkeypatch.setattr("gyroformer.jobs.pool.key_of", lambda job: key_of(cells[0].job()))
    planned = Planned(broken, "fpst", "a run")
    assert run_all([planned], file=tmp_path / "rows.csv", folder=tmp_path / "runs") == []
    assert len(seen) == 2


def test_the_command_collects_what_is_there(tmp_path):
    ours, twin = (TABLES["table1"].cells(["web-edu"], [name])[0] for name in ("fpst", "tokengt"))
    rows = [*rows_with(ours, (98, 99, 100, 99, 99)), *rows_with(twin, (88, 89, 89.5, 88.5))]
    write_rows(tmp_path / "table1.csv", rows)
    words = ["--collect-only", "--results", tmp_path]
    found = json.loads(call("table1", *words, "--json").stdout)
    one, other = found["rows"]
    assert (one["dataset"], one["model"], one["mean"], one["seeds"]) == ("web-edu", "fpst", 99.0, 5)
    assert one["low"] < 99.0 < one["high"]
    assert (one["paper"], one["paper_std"]) == (99.0, 0.08)
    assert other["seeds"] == 4
    [pair] = found["differences"]
    assert (pair["model"], pair["pairs"], pair["mean"]) == ("tokengt", 4, 10.25)
    assert pair["t"] == pair["holm"] < 1e-3
    said = call("table1", *words).stdout
    assert "99.00 ± 0.08" in said
    assert "+10.25" in said
    assert "no rows yet" in call("table2", *words).stdout


def test_a_published_figure_stands_beside_its_own_metric(tmp_path):
    for name in ("table2", "links"):
        write_rows(tmp_path / f"{name}.csv", rows_with(TABLES[name].cells(["cora"], ["gcn"])[0], (80,)))
    words = ["--collect-only", "--json", "--results", tmp_path]
    shown = {
        name: json.loads(call(name, *words).stdout)["rows"][0]["published"] for name in ("table2", "links")
    }
    assert shown == {"table2": 86.9, "links": None}


def test_drawn_splits_widen_the_interval_and_the_family_is_the_table():
    columns = [TABLES["table2"].cells([name], ["fpst", "gcn", "mlp"]) for name in ("texas", "cora")]
    cells = [cell for column in columns for cell in column]
    rows = {}
    for cell in cells:
        shift = {"fpst": 1.0, "gcn": 0.0, "mlp": 0.5}[cell.variant.name]
        values = [80 + shift * (1 + 0.3 * (seed % 3)) for seed in range(10)]
        rows |= {tuple(row[name] for name in rows_module.KEY): row for row in rows_with(cell, values)}
    found = differences(cells, rows)
    assert [(row["dataset"], row["model"]) for row in found] == [
        ("texas", "mlp"),
        ("texas", "gcn"),
        ("cora", "mlp"),
        ("cora", "gcn"),
    ]
    texas, cora = found[1], found[3]
    assert texas["mean"] == pytest.approx(cora["mean"])
    assert texas["corrected"]
    assert texas["half"] > 2 * cora["half"]
    assert all(row["holm"] >= row["t"] for row in found)
    assert all(cell["test_half"] > 2 for cell in collected(cells, rows))


def test_a_part_of_a_table_has_the_p_values_of_the_whole(tmp_path):
    rows = []
    for name, shift in (("fpst", 1.0), ("gcn", 0.0), ("mlp", 0.5)):
        for cell in TABLES["table2"].cells(["citeseer", "cora"], [name]):
            rows += rows_with(cell, [80 + shift * (1 + 0.3 * (seed % 3)) for seed in range(10)])
    write_rows(tmp_path / "table2.csv", rows)
    words = ["table2", "--collect-only", "--json", "--results", tmp_path]
    whole = json.loads(call(*words).stdout)["differences"]
    part = json.loads(call(*words, "--datasets", "cora", "--models", "gcn").stdout)["differences"]
    assert part == [row for row in whole if (row["dataset"], row["model"]) == ("cora", "gcn")]
    assert part[0]["holm"] > part[0]["t"]


@pytest.mark.parametrize(
    "words, said",
    [
        (["costs", "--seeds", "2"], "leave --seeds out"),
        (["costs", "--workers", "1"], "leave --workers out"),
        (["costs", "--out", "runs"], "leave --out out"),
        (["costs", "--again"], "leave one of them out"),
        (["table1", "--again"], "--again is for costs"),
        (["table3"], "nothing to reproduce is called 'table3'; did you mean 'table"),
        (
            ["table2", "--models", "hyp-attention", "--datasets", "pubmed"],
            "table2 has none of hyp-attention on pubmed",
        ),
        (["table1", "--models", "fpts"], "table1 has no row 'fpts'; did you mean 'fpst'"),
        (["costs", "--models", "fpts"], "table1 has no row 'fpts'; did you mean 'fpst'"),
        (["figures", "--seeds", "2"], "the figures have data sets, models and seeds of their own"),
        (["table1", "--datasets", "cora"], "table1 has no data set 'cora'"),
        (["table1", "--models", ""], "--models is empty"),
    ],
)
def test_wrong_words_are_one_line(words, said):
    done = call(*words, "--collect-only", code=2)
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("what", ["table1", "costs", "figures"])
def test_rows_of_a_folder_that_is_not_there_are_an_error(what, tmp_path):
    done = call(what, "--collect-only", "--results", tmp_path / "nowhere", code=3)
    assert "nowhere: is no folder" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "nowhere").exists()


def test_a_file_in_place_of_the_folder_of_runs_is_said_before_any_run(tmp_path, monkeypatch):
    monkeypatch.setattr("gyroformer.paper.run.run_all", None)
    (tmp_path / "plain.txt").touch()
    done = call("table1", "--results", tmp_path, "--out", tmp_path / "plain.txt", code=3)
    assert "plain.txt: cannot be created" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_what_to_do_without_rows_is_said_by_what_was_asked(tmp_path, monkeypatch):
    monkeypatch.setattr("gyroformer.paper.run.run_all", lambda *runs, **options: ["a run: did not work"])
    words = ["table1", "--results", tmp_path, "--out", tmp_path / "runs"]
    said = call(*words, code=1)
    assert "no run has finished" in said.stdout
    assert "--collect-only" not in said.output
    assert "without --collect-only" in call(*words, "--collect-only").stdout


@pytest.mark.parametrize(
    ("dataset", "rows"),
    [
        ("web-edu", ["curvature learned at 0.05"]),
        ("cora", ["curvature learned at 0.01"]),
    ],
)
def test_an_ablation_is_compared_with_the_recipe_of_its_data_set(dataset, rows):
    cells = TABLES["ablations"].cells(datasets=[dataset])
    assert [cell.variant.name for cell in cells if is_ours(cell)] == rows


def test_in_other_tables_fpst_is_the_row_that_is_called_so():
    for name in ("table1", "table2", "hierarchies", "links"):
        for dataset in TABLES[name].datasets:
            cells = TABLES[name].cells(datasets=[dataset])
            assert [cell.variant.name for cell in cells if is_ours(cell)] == ["fpst"]
