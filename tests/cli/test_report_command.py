import json

import pytest
from evil_runs import small_run
from typer.testing import CliRunner
from unpacked import page_block

from gyroformer.cli.app import app
from gyroformer.cli.report import size_text


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    root = tmp_path_factory.mktemp("seeds")
    for seed in (0, 1):
        small_run(root / f"seed-{seed}", seed=seed)
    return root


def call(*args):
    return CliRunner().invoke(app, ["report", *map(str, args)])


def test_json_names_the_page(seeds, tmp_path):
    target = tmp_path / "page.html"
    done = call(seeds / "seed-0", "--out", target, "--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer == {"report": str(target), "bytes": target.stat().st_size}


def test_the_page_goes_here_and_a_folder_stands_for_its_runs(seeds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call(seeds)
    assert done.exit_code == 0, done.output
    assert "report.html" in done.stdout
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "seed-0" in text
    assert "seed-1" in text
    assert "2 seeds: mAP" in text


def test_more_columns_come_from_a_table(seeds, tmp_path):
    table, target = tmp_path / "more.csv", tmp_path / "page.html"
    table.write_text("node,height\nnode-3,2.5\n")
    done = call(seeds / "seed-0", "--node-data", table, "--out", target)
    assert done.exit_code == 0, done.output
    columns = page_block(target.read_text(encoding="utf-8"))[0]["runs"][0]["columns"]
    assert columns[-1]["name"] == "height"
    table.write_text("node,height\nother,2.5\n")
    wrong = call(seeds / "seed-0", "--node-data", table, "--out", target)
    assert wrong.exit_code == 3
    assert "no id in it is a node of the run" in wrong.stderr


def test_a_small_file_is_not_called_empty(seeds, tmp_path):
    done = call(seeds / "seed-0", "--format", "tsv", "--out", tmp_path / "r.tsv")
    sizes = {line.split(" (")[0]: line.split(" (")[1] for line in done.stdout.splitlines()}
    assert set(sizes) == {str(path) for path in tmp_path.iterdir()}
    for path in tmp_path.iterdir():
        assert sizes[str(path)] == f"{max(1, round(path.stat().st_size / 1000))} kB)"
    assert [size_text(n) for n in (0, 1500, 999_499, 1_000_000)] == ["1 kB", "2 kB", "999 kB", "1.0 MB"]


def test_other_formats_are_files_of_their_own(seeds, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call(seeds / "seed-0", "--format", "gexf")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "report.gexf").exists()
    answer = json.loads(call(seeds / "seed-0", "--format", "tsv", "--json").stdout)
    assert answer["files"] == ["report.vectors.tsv", "report.metadata.tsv"]
    several = call(seeds, "--format", "png")
    assert several.exit_code == 2
    assert "takes one run, and 2 were named" in several.stderr


def test_the_page_is_opened_when_asked(seeds, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("typer.launch", opened.append)
    target = tmp_path / "my page.html"
    assert call(seeds / "seed-0", "--out", target).exit_code == 0
    assert opened == []
    done = call(seeds / "seed-0", "--out", target, "--open")
    assert opened == [target.resolve().as_uri()]
    assert "opened in a browser" in done.stdout
    assert call(seeds / "seed-0", "--format", "tsv", "--open").exit_code == 2


def test_errors_are_one_line(tmp_path):
    done = call(tmp_path / "none")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1


def test_the_fit_is_on_the_page_if_it_is_asked_for(seeds, tmp_path):
    target = tmp_path / "page.html"
    assert call(seeds / "seed-0", "--out", target).exit_code == 0
    assert "gyroformer report RUN --fit" in target.read_text(encoding="utf-8")
    assert call(seeds / "seed-0", "--fit", "--out", target).exit_code == 0
    assert "at least 48 are needed to tell curved from flat" in target.read_text(encoding="utf-8")
    wrong = call(seeds / "seed-0", "--fit", "--format", "tsv", "--out", tmp_path / "r.tsv")
    assert wrong.exit_code == 2
    assert "--fit is said on the page" in wrong.stderr
