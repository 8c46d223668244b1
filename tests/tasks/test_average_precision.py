import math
import time

import pytest
import torch
from sklearn.metrics import average_precision_score

from gyroformer.data.load import load
from gyroformer.errors import DataError, DivergedError, UsageError
from gyroformer.ops.neighbours import Neighbours
from gyroformer.tasks import average_precision
from gyroformer.tasks.average_precision import mean_average_precision, precision_of


def literal(distances, neighbours, nodes):
    """The definition, one rank at a time."""
    found = []
    for u in nodes:
        near = neighbours.indices[neighbours.indptr[u] : neighbours.indptr[u + 1]].tolist()
        others = [w for w in range(len(distances)) if w != u and w not in near]
        ordered = sorted(distances[u][v] for v in near)
        ratios = [i / (i + sum(distances[u][w] <= d for w in others)) for i, d in enumerate(ordered, 1)]
        if near:
            found.append(sum(ratios) / len(near))
    return sum(found) / len(found)


def drawn(nodes=60, edges=150, seed=0):
    random = torch.Generator().manual_seed(seed)
    points = torch.randn(nodes, 3, generator=random, dtype=torch.float64)
    return Neighbours.of(torch.randint(0, nodes, (2, edges), generator=random), nodes), torch.cdist(
        points, points
    )


@pytest.mark.parametrize("block", [1, 7, 256])
@pytest.mark.parametrize("steps", [None, 5, 1])
@pytest.mark.parametrize("edges", [3, 150, 1000])
def test_it_is_the_definition_with_and_without_ties(edges, steps, block):
    neighbours, distances = drawn(edges=edges)
    if steps:
        distances = (distances * steps).round()  # many ties
    want = literal(distances.tolist(), neighbours, range(60))
    got = mean_average_precision(lambda rows: distances[rows], neighbours, block=block)
    assert got == pytest.approx(want, rel=1e-12)
    sample = torch.tensor([59, 3, 3, 17, int(neighbours.indices[0])])
    want = literal(distances.tolist(), neighbours, sample.tolist())
    assert mean_average_precision(lambda rows: distances[rows], neighbours, block=block, nodes=sample) == (
        pytest.approx(want, rel=1e-12)
    )


def test_without_ties_it_is_that_of_scikit_learn():
    neighbours, distances = drawn(edges=300)
    adjacent = neighbours.adjacent(torch.arange(60))
    scores = [
        average_precision_score(adjacent[u][torch.arange(60) != u], -distances[u][torch.arange(60) != u])
        for u in range(60)
    ]
    got = mean_average_precision(lambda rows: distances[rows], neighbours)
    assert got == pytest.approx(sum(scores) / 60, rel=1e-12)


def test_a_constant_distance_is_the_worst_and_hops_are_the_best():
    neighbours, _ = drawn()
    adjacent = neighbours.adjacent(torch.arange(60))
    assert mean_average_precision(lambda rows: (~adjacent[rows]).double(), neighbours) == 1
    worst = mean_average_precision(lambda rows: adjacent[rows].double(), neighbours)
    assert mean_average_precision(lambda rows: torch.ones(len(rows), 60), neighbours) == pytest.approx(worst)
    assert worst < 0.2


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_named_not_ranked(bad):
    neighbours, distances = drawn()
    distances[41, 13] = bad
    with pytest.raises(DivergedError, match=f"from node 41 to node 13 is {bad}"):
        mean_average_precision(lambda rows: distances[rows], neighbours, block=10)


def test_wrong_arguments_are_named():
    neighbours, distances = drawn()
    rows = distances.__getitem__
    with pytest.raises(DataError, match="none of the 4 nodes has a neighbour"):
        mean_average_precision(rows, Neighbours.of(torch.empty(2, 0, dtype=torch.int64), 4))
    with pytest.raises(UsageError, match=r"shape \(10, 60\), got \(10, 59\)"):
        mean_average_precision(lambda rows: distances[rows, :59], neighbours, block=10)
    with pytest.raises(UsageError, match="block must be at least 1"):
        mean_average_precision(rows, neighbours, block=0)
    with pytest.raises(UsageError, match="nodes must be from 0 to 59"):
        mean_average_precision(rows, neighbours, nodes=torch.tensor([60]))
    with pytest.raises(UsageError, match=r"int64, got torch\.float32"):
        mean_average_precision(rows, neighbours, nodes=torch.ones(3))


@pytest.mark.data
def test_web_edu_takes_less_than_a_second(data_folder):
    graph = load("web-edu", folder=data_folder)
    neighbours = Neighbours.of(graph.edge_index, graph.num_nodes)
    points = torch.randn(graph.num_nodes, 16, generator=torch.Generator().manual_seed(0))
    start = time.process_time()
    mean_average_precision(lambda rows: torch.cdist(points[rows], points), neighbours)
    assert time.process_time() - start < 1


def test_the_interval_of_drawn_nodes_holds_the_mean_over_all():
    neighbours, distances = drawn(nodes=400, edges=1500)
    whole = precision_of(lambda rows: distances[rows], neighbours)
    assert whole.half is None
    assert whole.interval_as("map_interval") == {}
    held = 0
    for seed in range(60):
        nodes = torch.randperm(400, generator=torch.Generator().manual_seed(seed))[:80]
        found = precision_of(lambda rows: distances[rows], neighbours, nodes=nodes)
        assert found.interval_as("map_interval") == {"map_interval": 100 * found.half}
        held += abs(found.mean - whole.mean) <= found.half
    assert 51 <= held < 60  # 57 of 60 on average
    everyone = precision_of(lambda rows: distances[rows], neighbours, nodes=torch.arange(400))
    assert everyone.half == 0


def test_a_block_has_fewer_rows_where_rows_are_long(monkeypatch):
    neighbours, distances = drawn()
    seen = []
    monkeypatch.setattr(average_precision, "BLOCK", 60 * 9)
    precision_of(lambda rows: seen.append(rows.numel()) or distances[rows], neighbours)
    assert max(seen) == 9
