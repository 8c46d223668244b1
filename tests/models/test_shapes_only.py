"""Models as shapes have the shapes of models."""

import pytest
import torch

from gyroformer.models import MODELS
from gyroformer.models.shapes import shapes_only


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("features", [0, 5])
def test_shapes_without_values_are_those_with(name, features):
    given = {"num_nodes": None if features else 9, "classes": 3, "dim": 16}
    with shapes_only():
        shapes = MODELS[name].make(features, **given).state_dict()
    values = MODELS[name].make(features, **given).state_dict()
    assert all(tensor.is_meta for tensor in shapes.values())
    assert {n: t.shape for n, t in shapes.items()} == {n: t.shape for n, t in values.items()}


def test_normal_numbers_are_drawn_again_afterwards():
    with shapes_only():
        pass
    assert float(torch.nn.init.normal_(torch.zeros(9)).abs().sum()) > 0
