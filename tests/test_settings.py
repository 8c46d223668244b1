import json

import pytest

from gyroformer.errors import UsageError
from gyroformer.options import as_plain
from gyroformer.settings import job_from_plain, make_job
from gyroformer.tasks import TASKS


@pytest.mark.parametrize("task", TASKS)
def test_a_job_survives_the_way_to_json_and_back(task):
    job = make_job(task, graph={"source": "g.csv"}, model={"options": {"dim": 8}}, seed=3)
    assert job_from_plain(json.loads(json.dumps(as_plain(job)))) == job


def test_settings_are_checked():
    with pytest.raises(
        UsageError, match=r"training\.epochs must be a whole number of at least 1 .*; got .many."
    ):
        make_job("embed", training={"epochs": "many"})
    with pytest.raises(
        UsageError, match=r"there is no option 'objective\.negative'; did you mean 'negatives'"
    ):
        make_job("embed", objective={"negative": 3})
    with pytest.raises(UsageError, match="task must be one of embed, classify, link"):
        job_from_plain({"task": "cluster"})
    assert make_job("embed", objective={"negatives": 12}).objective.negatives == 12
