import os
from pathlib import Path

import pytest
import torch

# two cores, two test processes: one thread each
torch.set_num_threads(1)


@pytest.fixture(params=[torch.float32, torch.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


@pytest.fixture(scope="session")
def data_folder():
    folder = os.environ.get("GYROFORMER_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("the real data sets are not here: set GYROFORMER_DATA to their folder")
    return Path(folder)
