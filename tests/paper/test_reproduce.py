"""The paper's tables by command: rows keyed by all that decides them, resumed, collected beside the printed numbers."""

import json
from pathlib import Path

import pytest
from small_graphs import write_tree
from typer.testing import CliRunner

from gyroformer.cli.app import app
from gyroformer.errors import CorruptFileError
from gyroformer.models import MODELS
from gyroformer.options import option
from gyroformer.options.training import TrainOptions
from gyroformer.paper import rows as rows_module
from gyroformer.paper import tables
from gyroformer.paper.rows import collected, key_of, read_rows, settings_sha256, write_rows
from gyroformer.paper.run import run_cells, run_folder
from gyroformer.paper.tables import TABLES, Cell, Table, printed


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Return a table of one small graph, in which every run is short."""
    path = str(write_tree(tmp_path / "tree.csv")[0])
    made = tables.make_job

    def short(task, **values):
        return made(task, **values, training={"epochs": 3})

    monkeypatch.setattr(tables, "make_job", short)
    monkeypatch.setattr(rows_module, "printed", lambda *cell: (50.0, 1.0))
    return Table("small", "embed", "map", (path,), splits={}, seeds=(2, 1))


def test_the_printed_numbers_are_all_there():
    for table in TABLES.values():
        for dataset in table.datasets:
            found = [printed(table.name, dataset, model) for model in MODELS]
            assert sum(cell is not None for cell in found) == 12
    assert printed("table1", "web-edu", "fpst") == (99.0, 0.08)
    assert printed("table2", "cora", "tokengt") == (81.42, 0.79)
    assert printed("table1", "web-edu", "gil") is None


def test_a_table_has_one_split_for_all_models():
    table = TABLES["table2"]
    for dataset in table.datasets:
        assert len({table.job(dataset, model).objective.split for model in MODELS}) == 1
    assert len(TABLES["table1"].cells()) == 4 * len(MODELS)
    seeds = {cell.model: cell.seeds for cell in TABLES["table1"].cells(["web-edu"])}
    assert (seeds["fpst"], seeds["tokengt"], seeds["gcn"]) == (5, 5, 3)


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


def test_a_run_that_fails_is_said_and_the_others_go_on(small, tmp_path):
    missing = Table("small", "embed", "map", (*small.datasets, str(tmp_path / "absent.csv")), {}, (1, 1))
    failed = run_cells(missing.cells(models=["gcn"]), file=tmp_path / "rows.csv", folder=tmp_path / "runs")
    assert len(failed) == 1
    assert "absent.csv" in failed[0]
    assert len(read_rows(tmp_path / "rows.csv")) == 1


def test_whatever_decides_a_run_is_in_its_key(small, monkeypatch):
    job = small.job(small.datasets[0], "fpst")
    changed = [
        job.but(seed=1),
        job.but(dtype="float64"),
        job.but(training=job.training.but(lr=0.5)),
        job.but(objective=job.objective.but(squared=False)),
        small.job(small.datasets[0], "gcn"),
    ]
    keys = {key_of(one) for one in (job, *changed)}
    assert len(keys) == 6
    assert settings_sha256(job) == settings_sha256(job.but(seed=9))
    before = key_of(job)
    monkeypatch.setattr(rows_module, "GENERATION", 99)
    assert key_of(job) != before
    folders = {run_folder(Path("runs"), small, one) for one in changed}
    assert len(folders) == 5


def test_an_option_younger_than_the_rows_does_not_orphan_them(small, monkeypatch):
    job = small.job(small.datasets[0], "gcn")
    before = settings_sha256(job)

    class Younger(TrainOptions):
        warmup: int = option("epochs of slow start", default=0, at_least=0, neutral=0)

    monkeypatch.setattr(rows_module, "TrainOptions", Younger)
    same, other = (job.but(training=job.training.part(Younger, warmup=n)) for n in (0, 5))
    assert settings_sha256(same) == before
    assert settings_sha256(other) != before


def test_a_damaged_file_of_rows_is_named(tmp_path):
    (tmp_path / "rows.csv").write_text("dataset,model\na,b\n")
    with pytest.raises(CorruptFileError, match=r"rows\.csv: is not a file of results"):
        read_rows(tmp_path / "rows.csv")
    assert read_rows(tmp_path / "none.csv") == {}


def call(*words, code=0):
    done = CliRunner().invoke(app, ["reproduce", *map(str, words)])
    assert done.exit_code == code, done.output
    return done


def test_the_command_collects_what_is_there(tmp_path):
    file = tmp_path / "table1.csv"
    row = dict.fromkeys(rows_module.COLUMNS, "0")
    rows = []
    for job, value in zip(
        Cell(TABLES["table1"], "web-edu", "fpst", 5).jobs(), (98, 99, 100, 99, 99), strict=True
    ):
        rows.append(row | dict(zip(rows_module.KEY, key_of(job), strict=True)) | {"value": str(value)})
    write_rows(file, rows)
    found = json.loads(call("table1", "--collect-only", "--results", file, "--json").stdout)
    assert found["metric"] == "map"
    [one] = found["rows"]
    assert (one["dataset"], one["model"], one["mean"], one["seeds"]) == ("web-edu", "fpst", 99.0, 5)
    assert one["low"] < 99.0 < one["high"]
    assert (one["paper"], one["paper_std"]) == (99.0, 0.08)
    said = call("table1", "--collect-only", "--results", file).stdout
    assert "99.00 ± 0.08" in said
    assert "no rows yet" in call("table2", "--collect-only", "--results", tmp_path / "none.csv").stdout


@pytest.mark.parametrize(
    "words, said",
    [
        (["table3"], "no table is called 'table3'; did you mean 'table"),
        (["table1", "--models", "fpts"], "table1 has no model 'fpts'; did you mean 'fpst'"),
        (["table1", "--datasets", "cora"], "table1 has no data set 'cora'"),
        (["table1", "--models", ""], "--models is empty"),
    ],
)
def test_wrong_words_are_one_line(words, said):
    done = call(*words, "--collect-only", code=2)
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
