import pytest
import torch

from gyroformer.errors import UsageError
from gyroformer.jobs.plan import usable_device


def test_devices():
    assert usable_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(UsageError, match="the device 'abacus' cannot be used here"):
        usable_device("abacus")
