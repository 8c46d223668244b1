import pytest

from gyroformer.ops.native import fused


@pytest.fixture(autouse=True)
def _torch_forms():
    """The CPU computes as other devices do, so that results can be compared closely."""
    with fused.torch_forms():
        yield
