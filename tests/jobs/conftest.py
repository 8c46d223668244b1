"""Finished runs to be asked, made once."""

import pytest
from small_graphs import write_blocks
from small_runs import make_runs


@pytest.fixture(scope="session")
def block_files(tmp_path_factory):
    return write_blocks(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="session")
def runs(block_files, tmp_path_factory):
    return make_runs(tmp_path_factory.mktemp("runs"), block_files)
