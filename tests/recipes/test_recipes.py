import pytest

import gyroformer as gf
from gyroformer.data.registry import DATASETS
from gyroformer.errors import UsageError
from gyroformer.jobs.settings import JOBS, make_job
from gyroformer.models import get_model
from gyroformer.recipes import read_recipe, recipe_names, usual_recipe

ALL = [(task, name) for task in JOBS for name in recipe_names(task)]


@pytest.mark.parametrize("task, name", ALL)
def test_every_recipe_is_whole(task, name):
    job = make_job(task, recipe=name)
    assert job.recipe == name
    assert set(job.model.options) <= set(get_model(job.model.name).options())
    if name not in ("default", "plain", "paper", "networks"):
        assert name in DATASETS


@pytest.mark.parametrize("task", JOBS)
@pytest.mark.parametrize("model", gf.MODELS)
def test_every_model_has_a_recipe_for_every_task(task, model):
    job = make_job(task, dataset="web-edu", model={"name": model})
    assert set(job.model.options) <= set(get_model(model).options())


def test_the_usual_recipe():
    assert usual_recipe("classify", model="fpst", dataset="cora") == "cora"
    assert usual_recipe("classify", model="tokengt", dataset="cora") == "cora"
    assert usual_recipe("classify", model="fpst", dataset="my.csv") == "default"
    assert usual_recipe("classify", model="fpst", dataset="my.csv", features=False) == "plain"
    assert usual_recipe("embed", model="fpst", dataset="my.csv", features=False) == "default"
    assert usual_recipe("link", model="gcn", dataset="cora") == "networks"


@pytest.mark.parametrize(
    "graph, name",
    [
        ({"source": "my.csv"}, "plain"),
        ({"source": "my.edges.gz"}, "plain"),
        ({"source": "my.csv", "features": "x.csv"}, "default"),
        ({"source": "my.npz"}, "default"),
        ({"source": "web-edu"}, "plain"),
        ({"source": "squirrel"}, "default"),
    ],
)
def test_a_graph_without_features_has_a_recipe_of_its_own(graph, name):
    assert make_job("classify", graph=graph).recipe == name


def test_values_win_over_the_recipe():
    job = make_job("classify", dataset="cora", model={"options": {"heads": 4}}, training={"epochs": 3})
    assert job.model.options["heads"] == 4
    assert job.model.options["final_norm"] is True
    assert job.training.epochs == 3
    assert job.training.weight_decay == read_recipe("classify", "cora")["training"]["weight_decay"]


def test_an_unknown_recipe_is_named():
    with pytest.raises(UsageError, match="no recipe for classify is called 'corra'; did you mean 'cora'"):
        make_job("classify", recipe="corra")
