import os
from pathlib import Path

# before torch is imported: some virtual machines report AMX tiles and then refuse the instruction, and torch's own
# bfloat16 product ends the process there
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import pytest
import torch

# two cores, two test processes: one thread each
torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def kernels():
    """Load the kernels before any test takes compiler or home folder away: what is found first is kept."""
    from gyroformer.geometry.kernels import KERNELS
    from gyroformer.ops.native import build

    return KERNELS.library(), build.library()


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
