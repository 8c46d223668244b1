import logging

import pytest
from evil_runs import small_graph
from unpacked import page_block

from gyroformer.errors import DataError
from gyroformer.jobs import run as jobs_run
from gyroformer.jobs.run import run_job
from gyroformer.jobs.seeds import run_seeds
from gyroformer.runs.files import verify_run
from gyroformer.settings import make_job


@pytest.fixture
def job():
    options = {"identifiers": 4, "dim": 8}
    return make_job("embed", model={"name": "fpst", "options": options}, training={"epochs": 2})


def test_a_run_leaves_a_page_with_its_edges(job, tmp_path):
    run_job(job, data=small_graph(), out=tmp_path)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "counts" in page_block(text)[0]["graphs"][0]
    verify_run(tmp_path)


def test_many_runs_leave_none(job, tmp_path):
    run_seeds(job, 2, data=small_graph(), out=tmp_path)
    assert (tmp_path / "seed-1" / "results.json").exists()
    assert not list(tmp_path.rglob("report.html"))


def test_results_stand_without_the_page(job, tmp_path, monkeypatch, caplog):
    def full(folder):
        raise DataError("the disk is full")

    monkeypatch.setattr(jobs_run, "write_run_report", full)
    with caplog.at_level(logging.WARNING):
        done = run_job(job, data=small_graph(), out=tmp_path)
    assert done.results["epochs"] == 2
    assert (tmp_path / "results.json").exists()
    assert "the disk is full; to try again: gyroformer report" in caplog.text
