import pytest
from evil_runs import small_run


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Return the folders of four finished runs by name."""
    root = tmp_path_factory.mktemp("runs")
    small_run(root / "curved")
    small_run(root / "flat", model="tokengt")
    small_run(root / "labelled", "classify", objective={"split": "random"})
    small_run(root / "linked", "link")
    return {path.name: path for path in root.iterdir()}
