"""Laplacian identifiers against a dense solver, their order, signs, repeatability and cache."""

import functools
import os
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
import torch

from gyroformer.errors import DataError, UsageError
from gyroformer.graphs.spectral import eigen_solvers, laplacian, laplacian_cache
from gyroformer.graphs.spectral.laplacian import (
    _join_graph,
    _Part,
    canonical_signs,
    flip_signs,
    laplacian_identifiers,
)


def edge_index(graph):
    return np.array(list(graph.edges), dtype=np.int64).reshape(-1, 2).T


def identifiers(graph, dim, **options):
    graph = nx.convert_node_labels_to_integers(graph)
    return laplacian_identifiers(edge_index(graph), graph.number_of_nodes(), dim, **options)


@functools.cache
def dense_solution(graph):
    """Return I - D^(-1/2) A D^(-1/2), the row of an isolated node zero, and all its eigenpairs."""
    matrix = nx.normalized_laplacian_matrix(nx.convert_node_labels_to_integers(graph)).toarray()
    return matrix, *np.linalg.eigh(matrix)


def assert_right(graph, got, dim, tolerance):
    """The values are the smallest of all, the vectors orthonormal, and each eigenspace is the dense one."""
    matrix, values, basis = dense_solution(graph)
    vectors, found = got.vectors.numpy(), got.values.numpy()
    np.testing.assert_allclose(found, values[:dim], atol=tolerance)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(dim), atol=tolerance)
    np.testing.assert_allclose(matrix @ vectors, vectors * found, atol=tolerance)
    start = 0
    for stop in [*(np.flatnonzero(np.diff(values) > 1e-6) + 1), values.size]:
        if stop <= dim:  # a whole eigenspace: its projector does not depend on the basis
            space, want = vectors[:, start:stop], basis[:, start:stop]
            np.testing.assert_allclose(space @ space.T, want @ want.T, atol=max(tolerance, 1e-6))
        start = stop


GRAPHS = {
    "random": nx.gnm_random_graph(60, 150, seed=1),
    "scattered": nx.gnm_random_graph(60, 45, seed=2),
    "equal components": nx.disjoint_union_all([nx.cycle_graph(6)] * 5),
    "repeated inside": nx.disjoint_union(nx.complete_graph(8), nx.star_graph(9)),
    "isolated": nx.disjoint_union(nx.empty_graph(4), nx.path_graph(9)),
}


@pytest.mark.parametrize("dim", [1, 3, 7, 16])
@pytest.mark.parametrize("name", GRAPHS)
def test_small_graphs_equal_the_dense_solution(name, dim):
    dim = min(dim, GRAPHS[name].number_of_nodes())
    assert_right(GRAPHS[name], identifiers(GRAPHS[name], dim), dim, 1e-10)


@functools.cache
def hub_of_equal_parts():
    """Five copies of a dense random graph around one node: the smallest eigenvalue comes four times."""
    part = nx.random_regular_graph(8, 320, seed=0)
    graph = nx.disjoint_union_all([part] * 5)
    graph.add_edges_from((1600, 320 * copy) for copy in range(5))
    return graph


@functools.cache
def expander():
    return nx.barabasi_albert_graph(1600, 3, seed=0)


@functools.cache
def thick_ring():
    return nx.watts_strogatz_graph(1600, 8, 0.0, seed=0)


LARGE = {
    "lanczos": (hub_of_equal_parts, 2, "lanczos"),
    "lanczos, space cut": (hub_of_equal_parts, 4, "lanczos"),
    "expander": (expander, 12, "lanczos"),
    "tree": (lambda: nx.balanced_tree(12, 3), 16, "invert"),
    "grid": (lambda: nx.grid_2d_graph(40, 40), 12, "invert"),
    "thick ring": (thick_ring, 9, "multigrid"),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_graphs_take_their_method_and_equal_the_dense_solution(name):
    make, dim, method = LARGE[name]
    if method == "multigrid":
        pytest.importorskip("pyamg")
    graph = make()
    got = identifiers(graph, dim)
    assert got.methods == (method,)
    assert float(got.residuals.max()) < 1e-6
    assert_right(graph, got, dim, 1e-6)


def test_the_deep_dense_graph_is_right_without_pyamg(monkeypatch):
    monkeypatch.setattr(eigen_solvers, "has_multigrid", lambda: False)
    graph = thick_ring()
    got = identifiers(graph, 9)
    assert got.methods == ("lanczos",)
    assert_right(graph, got, 9, 1e-6)


@pytest.mark.parametrize("pyamg", [True, False])
def test_lanczos_that_does_not_converge_is_replaced(monkeypatch, pyamg):
    if pyamg:
        pytest.importorskip("pyamg")
    monkeypatch.setattr(eigen_solvers, "_RESTARTS", 1)
    monkeypatch.setattr(eigen_solvers, "has_multigrid", lambda: pyamg)
    graph = expander()
    got = identifiers(graph, 6)
    assert got.methods == ("multigrid" if pyamg else "lobpcg",)
    assert_right(graph, got, 6, 1e-5)


def test_a_missed_eigenvalue_is_found_by_the_check(monkeypatch):
    honest = eigen_solvers._largest
    calls = []

    def forgetful(apply, removed, count, **options):
        """Skip the largest pair at first, as a Lanczos run that missed one of a repeated value would."""
        calls.append(count)
        if len(calls) > 1:
            return honest(apply, removed, count, **options)
        values, vectors = honest(apply, removed, count + 1, **options)
        order = np.argsort(values)[:-1]
        return values[order], vectors[:, order]

    monkeypatch.setattr(eigen_solvers, "_largest", forgetful)
    graph = expander()
    assert_right(graph, identifiers(graph, 6), 6, 1e-6)
    assert len(calls) > 2


def test_residuals_that_are_too_large_are_said(monkeypatch, caplog):
    monkeypatch.setattr(eigen_solvers, "_RESTARTS", 1)
    monkeypatch.setattr(eigen_solvers, "_LOBPCG_STEPS", 1)
    monkeypatch.setattr(eigen_solvers, "has_multigrid", lambda: False)
    monkeypatch.setattr(laplacian, "has_multigrid", lambda: False)
    got = identifiers(expander(), 6)
    assert float(got.residuals.max()) > eigen_solvers.WANTED_RESIDUAL
    assert "residuals up to" in caplog.text
    assert "gyroformer[fast]" in caplog.text


def test_columns_are_sorted_by_value_then_by_component():
    graph = nx.disjoint_union_all(
        [nx.empty_graph(1), nx.cycle_graph(4), nx.cycle_graph(6), nx.cycle_graph(4)]
    )
    got = identifiers(graph, 8)
    owners = [set(np.flatnonzero(np.abs(column) > 1e-9)) for column in got.vectors.T.numpy()]
    first, large, second = set(range(1, 5)), set(range(5, 11)), set(range(11, 15))
    assert owners[:4] == [large, first, second, {0}]  # zeros: by size, then by first node
    assert all(owner <= large for owner in owners[4:6])  # the 6-cycle's 1/2, twice
    assert all(owner <= first for owner in owners[6:])  # the 4-cycles' 1, twice each: the first one's
    assert got.methods == ("dense", "dense", "dense", "null")


def test_rounding_does_not_decide_the_order_of_equal_components():
    def part(first, value):
        nodes = np.arange(first, first + 2)
        return _Part(nodes, np.array([value]), np.eye(2)[:, :1], np.zeros(1), "dense")

    parts = [part(0, 0.5 + 1e-13), part(2, 0.5), part(4, 0.4), part(6, 0.5 - 1e-12)]
    vectors, values, _ = _join_graph(parts, 8, 4)
    assert np.flatnonzero(vectors.T)[:4].tolist() == [4, 8 + 0, 16 + 2, 24 + 6]
    np.testing.assert_allclose(values, [0.4, 0.5, 0.5, 0.5])


def test_with_more_components_than_columns_nothing_is_solved():
    graph = nx.disjoint_union_all([nx.cycle_graph(n) for n in range(12, 2, -1)])
    got = identifiers(graph, 3)
    assert set(got.methods) == {"null"}
    np.testing.assert_allclose(got.values, 0)
    np.testing.assert_allclose(got.vectors.norm(dim=0), 1)


def test_scope_component_gives_each_component_its_own():
    parts = [nx.cycle_graph(9), nx.path_graph(5), nx.empty_graph(1)]
    got = identifiers(nx.disjoint_union_all(parts), 6, scope="component")
    assert got.values.shape == (3, 6)
    start = 0
    for row, part in enumerate(parts):
        stop = start + part.number_of_nodes()
        alone = identifiers(part, 6)
        torch.testing.assert_close(got.vectors[start:stop], alone.vectors)
        torch.testing.assert_close(got.values[row], alone.values, equal_nan=True)
        start = stop


def test_missing_columns_are_zero():
    got = identifiers(nx.path_graph(3), 5)
    np.testing.assert_array_equal(got.vectors[:, 3:], 0)
    np.testing.assert_array_equal(torch.isnan(got.values), [False] * 3 + [True] * 2)
    single = laplacian_identifiers(torch.empty(2, 0, dtype=torch.long), 1, 4)
    assert single.vectors.tolist() == [[1.0, 0, 0, 0]]
    assert single.values[0] == 0


def test_the_largest_entry_is_positive_and_ties_go_to_the_first_node():
    signs = canonical_signs(np.array([[0.1, -1.0, 1.0], [-2.0, 1.0 + 1e-9, -1.0]]))
    np.testing.assert_array_equal(np.sign(signs), [[-1, 1, 1], [1, -1, -1]])
    vectors = identifiers(nx.gnm_random_graph(50, 120, seed=0), 10).vectors
    largest = vectors.abs().argmax(dim=0)
    assert bool((vectors.gather(0, largest[None]) > 0).all())


@pytest.mark.parametrize("nodes", [80, 1700])
def test_renumbering_the_nodes_renumbers_the_rows(nodes):
    graph = nx.barabasi_albert_graph(nodes, 3, seed=4)
    edges, order = edge_index(graph), np.random.default_rng(0).permutation(nodes)
    want = laplacian_identifiers(edges, nodes, 6)
    got = laplacian_identifiers(order[edges], nodes, 6)
    np.testing.assert_allclose(got.vectors[order], want.vectors, atol=1e-5)


def test_direction_repetition_loops_and_order_of_edges_do_not_matter():
    edges = edge_index(nx.gnm_random_graph(40, 90, seed=5))
    messy = np.concatenate([edges[::-1, ::-1], edges, [[3], [3]]], axis=1)
    want, got = laplacian_identifiers(edges, 40, 8), laplacian_identifiers(messy, 40, 8)
    assert torch.equal(got.vectors, want.vectors)


DIGEST = """
import hashlib, networkx as nx, numpy as np
from gyroformer.graphs.spectral.laplacian import laplacian_identifiers
digest, methods = hashlib.sha256(), set()
for graph in (nx.gnm_random_graph(300, 1500, seed=0), nx.barabasi_albert_graph(1600, 3, seed=0),
              nx.convert_node_labels_to_integers(nx.grid_2d_graph(45, 45)),
              nx.watts_strogatz_graph(1600, 8, 0.001, seed=0)):
    found = laplacian_identifiers(np.array(list(graph.edges)).T, len(graph), 8)
    digest.update(found.vectors.numpy().tobytes())
    methods.add(found.methods[0])
result = digest.hexdigest()
"""


def test_bits_are_equal_again_and_in_a_fresh_process():
    pytest.importorskip("pyamg")
    names = {}
    exec(DIGEST, names)
    first = names["result"]
    assert names["methods"] == {"dense", "lanczos", "invert", "multigrid"}
    np.random.default_rng().random()
    exec(DIGEST, names)
    assert names["result"] == first
    run = [sys.executable, "-c", DIGEST + "print(result)"]
    fresh = subprocess.run(run, capture_output=True, text=True, check=True, env={**os.environ})
    assert fresh.stdout.strip() == first


def test_the_callers_random_numbers_are_left_alone():
    pytest.importorskip("pyamg")
    np.random.seed(7)  # noqa: NPY002
    want = np.random.random()  # noqa: NPY002
    np.random.seed(7)  # noqa: NPY002
    assert identifiers(thick_ring(), 4).methods == ("multigrid",)
    assert np.random.random() == want  # noqa: NPY002


def test_the_cache_is_used_and_depends_on_all_that_matters(tmp_path, monkeypatch):
    graph = nx.gnm_random_graph(40, 60, seed=5)
    first = identifiers(graph, 5, cache=tmp_path / "kept")
    monkeypatch.setattr(
        "gyroformer.graphs.spectral.laplacian._compute", lambda *_: pytest.fail("computed again")
    )
    again = identifiers(graph, 5, cache=tmp_path / "kept")
    assert torch.equal(again.vectors, first.vectors)
    assert torch.equal(again.residuals, first.residuals)
    assert again.methods == first.methods
    for change in ({"dim": 6}, {"scope": "component"}, {"graph": nx.gnm_random_graph(41, 60, seed=5)}):
        with pytest.raises(pytest.fail.Exception):
            identifiers(change.pop("graph", graph), change.pop("dim", 5), cache=tmp_path / "kept", **change)
    monkeypatch.setattr(laplacian_cache, "ALGORITHM_VERSION", 999)
    with pytest.raises(pytest.fail.Exception):
        identifiers(graph, 5, cache=tmp_path / "kept")
    assert [path.suffix for path in (tmp_path / "kept").iterdir()] == [".npz"]


@pytest.mark.parametrize("damage", ["empty", "truncated", "flipped", "foreign"])
def test_a_damaged_cache_is_computed_again_with_a_warning(tmp_path, caplog, damage):
    graph = nx.gnm_random_graph(40, 60, seed=5)
    want = identifiers(graph, 5, cache=tmp_path)
    (path,) = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 0xFF
    path.write_bytes(
        {"empty": b"", "truncated": content[:-200], "flipped": content, "foreign": b"not a zip"}[damage]
    )
    assert torch.equal(identifiers(graph, 5, cache=tmp_path).vectors, want.vectors)
    assert "is damaged" in caplog.text
    assert len(caplog.records) == 1
    caplog.clear()
    identifiers(graph, 5, cache=tmp_path)
    assert not caplog.records


def test_a_cache_that_cannot_be_written_is_said(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    identifiers(nx.path_graph(4), 2, cache=tmp_path / "file")
    assert "could not be kept" in caplog.text


def test_flipped_signs_change_whole_columns_only():
    vectors = identifiers(nx.gnm_random_graph(40, 90, seed=5), 16).vectors.float()
    flipped = flip_signs(vectors, torch.Generator().manual_seed(0))
    assert flipped.dtype == torch.float32
    torch.testing.assert_close(flipped.abs(), vectors.abs())
    ratio = (flipped * vectors).sum(dim=0).sign()
    torch.testing.assert_close(flipped, vectors * ratio)
    assert set(ratio.tolist()) == {-1.0, 1.0}
    assert torch.equal(flipped, flip_signs(vectors, torch.Generator().manual_seed(0)))


def test_clear_errors():
    with pytest.raises(UsageError, match="at least one column"):
        identifiers(nx.path_graph(3), 0)
    with pytest.raises(UsageError, match="scope"):
        identifiers(nx.path_graph(3), 2, scope="node")
    with pytest.raises(DataError, match="at least one node"):
        laplacian_identifiers(np.empty((2, 0), int), 0, 2)
