"""The real files where they are, and small made ones where they are not."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real():
    """The folder of the real data sets; the test is skipped without one."""
    named = os.environ.get("GYROFORMER_DATA", "")
    if not named or not Path(named).is_dir():
        pytest.skip("GYROFORMER_DATA is not set: the real data sets are needed")
    return Path(named)
