import pytest

import gyroformer as gf
from gyroformer.data.registry import DATASETS
from gyroformer.errors import UsageError
from gyroformer.models import get_model
from gyroformer.recipes import read_recipe, recipe_names, usual_recipe
from gyroformer.settings import make_job
from gyroformer.tasks import TASKS

ALL = [(task, name) for task in TASKS for name in recipe_names(task)]


@pytest.mark.parametrize("task, name", ALL)
def test_every_recipe_is_whole(task, name):
    owner, _, model = name.rpartition("/")
    dataset, _, split = owner.partition("/")
    job = make_job(task, recipe=name, model={"name": model} if model in gf.MODELS else {})
    assert job.recipe == name
    assert read_recipe(task, name).get("model", {}).get("options", {}).items() <= job.model.options.items()
    if dataset:
        assert split in ("", *DATASETS[dataset].splits)
        assert model in gf.MODELS
    elif name not in ("default", "plain", "paper", "networks", "hierarchy", "plane", *gf.MODELS):
        assert name in DATASETS


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("model", gf.MODELS)
def test_every_model_has_a_recipe_for_every_task(task, model):
    job = make_job(task, dataset="web-edu", model={"name": model})
    assert list(job.model.options) == [one.name for one in get_model(model).choices()]


@pytest.mark.parametrize("dataset", [name for name, spec in DATASETS.items() if spec.splits])
def test_every_model_is_tested_on_the_same_nodes_of_a_data_set(dataset):
    jobs = [make_job("classify", dataset=dataset, model={"name": model}) for model in gf.MODELS]
    assert {job.objective.split or DATASETS[dataset].default_split for job in jobs} == {
        DATASETS[dataset].default_split
    }


def test_the_usual_recipe():
    assert usual_recipe("link", model="fpst", dataset="airport") == "airport/fpst"
    # a split without recipes of its own has the data set's
    assert usual_recipe("classify", model="fpst", dataset="airport", split="random") == "airport/fpst"
    assert usual_recipe("classify", model="fpst", dataset="cora") == "cora/fpst"
    assert usual_recipe("classify", model="mlp", dataset="airport", split="legacy") == "airport/legacy/mlp"
    assert usual_recipe("classify", model="mlp", dataset="airport", split="clean") == "airport/mlp"
    assert usual_recipe("classify", model="fpst", dataset="my.csv") == "default"
    assert usual_recipe("classify", model="fpst", dataset="my.csv", features=False) == "plain"
    assert usual_recipe("embed", model="fpst", dataset="my.csv", features=False) == "default"
    assert usual_recipe("link", model="gcn", dataset="cora") == "cora/gcn"
    assert usual_recipe("link", model="sgc", dataset="cora") == "networks"


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
    job = make_job("classify", recipe="cora", model={"options": {"heads": 4}}, training={"epochs": 3})
    assert job.model.options["heads"] == 4
    assert job.model.options["final_norm"] is True
    assert job.training.epochs == 3
    assert job.training.weight_decay == read_recipe("classify", "cora")["training"]["weight_decay"]


def test_an_unknown_recipe_is_named():
    with pytest.raises(UsageError, match="no recipe for classify is called 'corra'; did you mean 'cora'"):
        make_job("classify", recipe="corra")


def test_a_recipe_for_other_models_is_named():
    with pytest.raises(
        UsageError, match="the recipe 'paper' sets 'heads', which the model 'gcn' does not have"
    ):
        make_job("classify", recipe="paper", dataset="texas", model={"name": "gcn"})
