import pytest
import torch
from sklearn.metrics import f1_score
from torch_geometric.data import Data

from gyroformer.data.split import Split
from gyroformer.errors import DataError
from gyroformer.tasks.classify import (
    NodeClassification,
    class_weights,
    classification_metrics,
    count_classes,
)


class Fixed(torch.nn.Module):
    def __init__(self, scores):
        super().__init__()
        self.table = torch.nn.Parameter(scores)

    def scores(self, data):
        return self.table


def task(y, **options):
    n = y.numel()
    parts = {"train": torch.arange(0, n, 3), "val": torch.arange(1, n, 3), "test": torch.arange(2, n, 3)}
    return NodeClassification(Data(y=y, num_nodes=n), Split(name="random", nodes=n, **parts), **options)


def test_figures_are_those_of_the_nodes_asked_for():
    y = torch.randint(0, 3, (60,), generator=torch.Generator().manual_seed(0))
    scores = torch.randn(60, 3, generator=torch.Generator().manual_seed(1))
    job, model = task(y), Fixed(scores)
    found = scores.argmax(1)
    right = (found == y).double()
    with torch.no_grad():
        assert job.evaluate(model)["val_f1"] == pytest.approx(100 * right[1::3].mean().item())
    test = job.test(model)
    assert test["test_f1"] == test["test_accuracy"] == pytest.approx(100 * right[2::3].mean().item())
    assert test["test_macro_f1"] == pytest.approx(100 * f1_score(y[2::3], found[2::3], average="macro"))


def test_only_training_nodes_are_learned_from():
    y = torch.arange(30) % 3
    model = Fixed(torch.zeros(30, 3))
    task(y).loss(model).backward()
    touched = model.table.grad.abs().sum(1) > 0
    assert torch.equal(touched.nonzero().flatten(), torch.arange(0, 30, 3))


def test_balanced_classes_weigh_the_same():
    y = torch.tensor([0, 0, 0, 1])
    weight = class_weights(y, 3)
    assert weight[0] * 3 == weight[1]
    assert weight[2] == 0
    torch.testing.assert_close((weight[y]).mean(), torch.tensor(1.0).double())


def test_a_better_f1_wins_and_the_loss_breaks_ties():
    rank = task(torch.arange(30) % 3).rank
    assert rank({"val_f1": 80.0, "val_loss": 9.0}) > rank({"val_f1": 79.0, "val_loss": 0.1})
    assert rank({"val_f1": 80.0, "val_loss": 0.5}) > rank({"val_f1": 80.0, "val_loss": 0.6})


def test_one_class_is_refused():
    with pytest.raises(DataError, match="same label"):
        count_classes(torch.zeros(5).long())


def test_micro_f1_of_sklearn_is_what_validation_reports():
    y = torch.arange(12) % 4
    scores = torch.randn(12, 4)
    figures = classification_metrics(scores, y, torch.arange(12))
    assert figures["f1"] == pytest.approx(100 * (scores.argmax(1) == y).double().mean().item())
