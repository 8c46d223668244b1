"""Runs that were begun before an option was there go on as they were."""

import json

import pytest

from gyroformer.errors import UsageError
from gyroformer.options import as_plain
from gyroformer.runs.folder import CONFIG, RunFolder
from gyroformer.runs.younger import with_younger, without_younger
from gyroformer.settings import make_job

JOB = as_plain(make_job("embed", graph={"source": "web-edu"}, model={"name": "points"}))


def older(job):
    """A job of a version that had none of the options with a neutral value."""
    return without_younger(job)


def test_younger_options_come_back_at_their_neutral_value():
    before = older(JOB)
    assert "start" not in before["objective"]
    assert with_younger(before) == JOB
    assert "start" in JOB["objective"]  # the job itself stays as it is


def test_a_run_that_is_older_than_an_option_is_resumed(tmp_path):
    with RunFolder(tmp_path) as run:
        run.begin(JOB, resume=False)
    about = json.loads((tmp_path / CONFIG).read_text())
    (tmp_path / CONFIG).write_text(json.dumps(about | {"job": older(JOB)}))
    with RunFolder(tmp_path) as run:
        run.begin(JOB, resume=True)
    changed = {**JOB, "objective": {**JOB["objective"], "rank_by": "dot"}}
    with RunFolder(tmp_path) as run, pytest.raises(UsageError, match="rank_by = 'auto', now it is 'dot'"):
        run.begin(changed, resume=True)


@pytest.mark.parametrize(
    "job", [{}, {"task": []}, {"task": "embed"}, {"task": "embed", "model": {"name": {}}}]
)
def test_what_is_no_job_is_taken_as_it_is(job):
    assert with_younger(job) == without_younger(job) == job
