import ast
import sys

import pytest

from gyroformer.demo.stdlib_graph import imported_modules, stdlib_graph
from gyroformer.errors import DataError


@pytest.fixture
def library(tmp_path):
    """A made-up standard library of two packages, with tests, a stranger and an island."""
    files = {
        "alpha.py": "import beta, sys\nfrom gamma.inner import thing\nimport numpy",
        "beta.py": "def later():\n    import alpha.missing\n",
        "gamma/__init__.py": "from . import inner\nfrom .inner import thing",
        "gamma/inner.py": "from .. import nothing\nfrom . import deep\nfrom .deep.leaf import x",
        "gamma/deep/__init__.py": "",
        "gamma/deep/leaf.py": "from ...gamma import inner",
        "gamma/tests/bad.py": "this is not python",
        "island.py": "import alone",
        "alone.py": "",
        "site-packages/stranger.py": "import alpha",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


TOP = ["alpha", "beta", "gamma", "sys", "island", "alone"]


def test_every_kind_of_import_becomes_an_edge(library):
    graph = stdlib_graph(library, top_level=TOP)
    linked = {(graph.names[a], graph.names[b]) for a, b in graph.edges}
    assert linked == {
        ("alpha", "beta"),
        ("alpha", "sys"),
        ("alpha", "gamma.inner"),
        ("gamma", "gamma.inner"),
        ("gamma.deep", "gamma.inner"),
        ("gamma.deep.leaf", "gamma.inner"),
    }


def test_order_is_alphabetical_and_edges_come_once(library):
    graph = stdlib_graph(library, top_level=reversed(TOP))
    assert graph == stdlib_graph(library, top_level=TOP)
    assert list(graph.names) == sorted(graph.names)
    assert list(graph.edges) == sorted(set(graph.edges))
    assert all(a < b for a, b in graph.edges)


def test_a_broken_source_is_named(library):
    (library / "beta.py").write_text("x = 1\ndef f(:\n")
    with pytest.raises(DataError, match=r"beta\.py:2: not Python"):
        stdlib_graph(library, top_level=TOP)


def test_a_folder_without_sources_is_refused(tmp_path):
    with pytest.raises(DataError, match="holds no source"):
        stdlib_graph(tmp_path)


@pytest.mark.parametrize(
    "source, name, is_package, wanted",
    [
        ("import a.b as c, d", "x", False, ["a.b", "d"]),
        ("from . import y", "p.q", False, ["p.y"]),
        ("from . import y", "p.q", True, ["p.q.y"]),
        ("from ..z import y", "p.q.r", False, ["p.z.y"]),
        ("from a import *", "x", False, ["a.*"]),
    ],
)
def test_relative_names(source, name, is_package, wanted):
    assert list(imported_modules(ast.parse(source), name, is_package=is_package)) == wanted


@pytest.fixture(scope="module")
def real():
    return stdlib_graph()


def test_the_real_library_is_one_large_component(real):
    assert len(real.names) > 400  # distributions leave parts out; a full 3.11 has 809
    assert {"os", "sys", "json.decoder", "asyncio.events"} <= set(real.names)
    assert not any(name.split(".")[0] not in sys.stdlib_module_names for name in real.names)
    neighbours = {i: set() for i in range(len(real.names))}
    for a, b in real.edges:
        neighbours[a].add(b)
        neighbours[b].add(a)
    seen, queue = {0}, [0]
    while queue:
        fresh = neighbours[queue.pop()] - seen
        seen |= fresh
        queue += fresh
    assert len(seen) == len(real.names)


def test_known_imports_of_the_real_library(real):
    linked = {(real.names[a], real.names[b]) for a, b in real.edges}
    assert ("json", "json.decoder") in linked
    assert ("contextlib", "types") in linked
    assert ("json.decoder", "sys") not in linked
