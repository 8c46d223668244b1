import sys

import pytest
from torch.nn import functional

import gyroformer
from gyroformer.nn.dropout import dropout
from gyroformer.ops.native import fused

#: the modules of all models, which are otherwise imported at first use: then with the dropout of the CPU
BUILT = [spec.build for spec in gyroformer.MODELS.values()]


@pytest.fixture(autouse=True)
def _torch_forms():
    """The CPU computes as other devices do, so that results can be compared closely."""
    with fused.torch_forms():
        yield


@pytest.fixture(autouse=True)
def _torch_dropout(monkeypatch):
    """The CPU drops what other devices drop: it has a dropout of its own, with other draws."""
    for name, module in list(sys.modules.items()):
        ours = name.startswith("gyroformer.") and name != dropout.__module__
        if ours and getattr(module, "dropout", None) is dropout:
            monkeypatch.setattr(module, "dropout", functional.dropout)
