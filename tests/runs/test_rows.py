"""Files of rows: what is not as it was written is said, and no row is lost."""

import pytest
from paper_rows import call, row_of_fpst, rows_with

from gyroformer.errors import CorruptFileError
from gyroformer.paper.summary import collected
from gyroformer.paper.tables import TABLES
from gyroformer.runs.rows import add_row, key_of, read_files, read_rows, row_of, write_rows


def test_a_damaged_file_of_rows_is_named(tmp_path):
    (tmp_path / "rows.csv").write_text("dataset,model\na,b\n")
    with pytest.raises(CorruptFileError, match=r"rows\.csv: is not a file of results"):
        read_rows(tmp_path / "rows.csv")
    assert read_rows(tmp_path / "none.csv") == {}


@pytest.mark.parametrize(
    "damage, said",
    [
        (lambda text: text.replace("98", "abc"), "line 2: value must be a number from 0 to 100, got 'abc'"),
        (lambda text: text.replace("98", "nan"), "line 2: value must be a number from 0 to 100, got 'nan'"),
        (lambda text: text.replace("98", "100.5"), "value must be a number from 0 to 100, got '100.5'"),
        (
            lambda text: text.replace(",98,0,", ",98,abc,"),
            "validation must be a number from 0 to 100 or empty, got",
        ),
        (
            lambda text: text.replace(",98,0,", ",98,nan,"),
            "validation must be a number from 0 to 100 or empty, got",
        ),
        (
            lambda text: text.replace(",map,98", ",mape,98"),
            "line 2: metric must be one of hierarchy_map, map, ",
        ),
        (
            lambda text: text.replace(",map,98", ",test_f1,98"),
            "seed 0 has the metric 'test_f1', expected 'map'",
        ),
        (lambda text: text[:-8], "line 3 does not have as many entries"),
        (lambda text: text.rstrip() + ",1\n", "line 3 does not have as many entries"),
        (lambda text: text.replace("value", "worth"), "it has no column 'value'"),
    ],
)
def test_a_row_that_is_damaged_is_said_before_anything_is_run(damage, said, tmp_path, monkeypatch):
    monkeypatch.setattr("gyroformer.paper.run.run_all", None)
    cell = TABLES["table1"].cells(["web-edu"], ["fpst"])[0]
    write_rows(tmp_path / "table1.csv", rows_with(cell, (98, 99)))
    text = (tmp_path / "table1.csv").read_text()
    (tmp_path / "table1.csv").write_text("\ufeff" + text.replace("\n", "\r\n"), encoding="utf-8")
    assert len(read_rows(tmp_path / "table1.csv")) == 2  # as spreadsheets write it
    (tmp_path / "table1.csv").write_text(damage(text))
    for more in ([], ["--collect-only"]):
        done = call("table1", "--results", tmp_path, "--out", tmp_path / "runs", *more, code=3)
        assert said in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_rows_of_one_run_that_differ_are_named_with_both_lines(tmp_path):
    file = tmp_path / "rows.csv"
    rows = [row_of_fpst(98), row_of_fpst(97, seed="1"), row_of_fpst(97.5)]
    write_rows(file, rows)
    with pytest.raises(
        CorruptFileError, match=r"rows\.csv: lines 2 and 3 .* '98' and '97\.5'; remove one of the two"
    ):
        read_rows(file)
    before = file.read_text()
    with pytest.raises(CorruptFileError):
        add_row(file, row_of_fpst(99, seed="2"))
    assert file.read_text() == before
    write_rows(file, [row_of_fpst(98, validation="1"), row_of_fpst(98, validation="2")])
    with pytest.raises(CorruptFileError, match="have the validation '1' and '2'"):
        read_rows(file)


def test_rows_of_one_run_that_found_the_same_are_one(tmp_path):
    file = tmp_path / "rows.csv"
    write_rows(file, [row_of_fpst("98.0", seconds="1"), row_of_fpst("98", seconds="2")])
    assert [row["seconds"] for row in read_rows(file).values()] == ["1"]


def test_a_run_that_two_files_have_must_have_found_the_same(tmp_path):
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    write_rows(one, [row_of_fpst(98)])
    write_rows(other, [row_of_fpst(98), row_of_fpst(97, seed="1")])
    assert len(read_files([one, other])) == 2
    write_rows(other, [row_of_fpst(97)])
    with pytest.raises(
        CorruptFileError, match=r"other\.csv: has the value '97' .*one\.csv has '98'; remove one"
    ):
        read_files([one, other])


def test_a_row_that_is_there_stays(tmp_path):
    file = tmp_path / "rows.csv"
    assert add_row(file, row_of_fpst(98))["value"] == "98"
    assert add_row(file, row_of_fpst(97))["value"] == "98"
    assert [row["value"] for row in read_rows(file).values()] == ["98"]


@pytest.mark.parametrize(
    "model, width", [("gcn", 16), ("sgc", 16), ("fpst", 16), ("q-gcn", 15), ("gil", 32), ("fmgnn", 48)]
)
def test_the_width_is_the_models_and_not_the_number_of_classes(model, width):
    cell = TABLES["table2"].cells(["cora"], [model], 1)[0]
    results = {"test_f1": 80.0, "val_f1": 79.0, "curvatures": [], "epochs": 1, "best_epoch": 1}
    results |= {"parameters": 5, "seconds": 1.0}
    manifest = {"threads": 1, "versions": {"torch": "2", "gyroformer": "0"}}
    row = row_of(cell.job(), results, manifest, variant=model, commit="")
    assert row["width"] == str(width)
    # rows of old have the number of classes there
    rows = {key_of(cell.job()): row | {"width": "7"}}
    assert collected([cell], rows)[0]["width"] == width
