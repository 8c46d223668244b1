import dataclasses as dc

import numpy as np
import pytest
from chromium import Chromium
from evil_runs import NODES, small_run
from explorer_page import CURVATURES

from gyroformer.report.page import page
from gyroformer.report.record import read_run


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Return the folders of four finished runs by name."""
    root = tmp_path_factory.mktemp("runs")
    small_run(root / "curved")
    small_run(root / "flat", model="tokengt")
    small_run(root / "labelled", "classify", objective={"split": "random"})
    small_run(root / "linked", "link")
    return {path.name: path for path in root.iterdir()}


@pytest.fixture(scope="session")
def curved(runs):
    return read_run(runs["curved"], "curved")


@pytest.fixture(scope="session")
def flat(runs):
    return read_run(runs["flat"], "flat")


@pytest.fixture(scope="session")
def labelled(runs):
    return read_run(runs["labelled"], "labelled")


@pytest.fixture(scope="session")
def linked(runs):
    return read_run(runs["linked"], "linked")


@pytest.fixture(scope="session")
def browser():
    with Chromium(webgl=False) as found:
        yield found


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="session")
def three(curved):
    """Return a run with a head of each kind, in two dimensions: nothing is lost in the picture."""
    vectors = np.random.default_rng(1).normal(size=(NODES, 3, 2)) * 0.45
    results = {**curved.results, "curvatures": [list(CURVATURES)]}
    ids = [*curved.ids[:4], 'say "hi",\nyou', *curved.ids[5:]]
    return dc.replace(curved, ids=ids, embedding=vectors, curvature=np.array(CURVATURES), results=results)


@pytest.fixture(scope="session")
def written(three, folder):
    path = folder / "three.html"
    path.write_text(page([three]), encoding="utf-8")
    return path


@pytest.fixture
def shown(browser, written):
    return browser.open(written)
