"""Neighbours, features, geometry on a device that is not the CPU: nothing stays behind, results are equal.

``helpers/stand_in_device.py`` says what the device is, and what it cannot show.
"""

import pytest
import torch
from device_checks import close, on_both
from small_graphs import graph
from stand_in_device import StandIn, real, stand_in

import gyroformer
from gyroformer.geometry import ProductSpace, Stereographic
from gyroformer.graphs.adjacency import simple_adjacency
from gyroformer.graphs.features import Table, prepared_features
from gyroformer.graphs.non_edges import NonEdges
from gyroformer.jobs.plan import usable_device
from gyroformer.ops.nearest import nearest_nodes, nearest_pairs
from gyroformer.ops.positions import StereographicPositions
from gyroformer.options.features import FeatureOptions
from gyroformer.testing.samples import OPERATIONS, operation, sample_arguments


def test_nearest_nodes_and_pairs():
    data = graph(12)
    joined = simple_adjacency(data.edge_index, 12)
    points = torch.randn(12, 2, 3, generator=torch.Generator().manual_seed(0))

    def run(device):
        curvature = torch.tensor([[-1.0], [1.0]], device=device)
        positions = StereographicPositions.from_tangent(points.to(device), curvature)
        rows = torch.arange(5, device=device)
        return [
            *nearest_nodes(positions, rows, 3),
            *nearest_nodes(positions, rows[:0], 3),
            *nearest_pairs(positions, joined, 6),
        ]

    expected, found = on_both(run)
    assert all(isinstance(one, StandIn) for one in found)
    close(found, expected)


def test_non_edges_of_a_graph_stay_with_it():
    data = graph(12)

    def run(device):
        torch.manual_seed(0)
        return NonEdges.of(data.edge_index.to(device), 12).draw(9)

    expected, found = on_both(run)
    assert isinstance(found, StandIn)
    assert real(found).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "mixing, sparse",
    [("none", False), *((mixing, s) for mixing in ("power", "ppr", "joined") for s in (0, 1))],
)
def test_features_are_prepared_where_they_are(mixing, sparse):
    data, options = graph(12), FeatureOptions(mixing=mixing, hops=2, entries="raw", size="l2")

    def run(device):
        x = data.x.to(device)
        return prepared_features(Table(x.to_sparse() if sparse else x, data.edge_index.to(device)), options)

    expected, found = on_both(run)
    assert isinstance(found, StandIn)
    close(found, expected)


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_of_the_geometry(name):
    drawn = sample_arguments(
        name, k=-1.0, generator=torch.Generator().manual_seed(0), dtype=torch.float32, count=3
    )

    def run(device):
        arguments = [argument.to(device) for argument in drawn]
        # a number, a CPU tensor without dimensions, and a parameter
        curvatures = (-1.0, torch.tensor(-1.0), torch.tensor(-1.0, device=device, requires_grad=True))
        return [operation(name)(*arguments, k=k) for k in curvatures]

    expected, found = on_both(run)
    assert all(isinstance(one, StandIn) for one in found)
    close(found, expected)


@pytest.mark.parametrize("space", [Stereographic(-1.0), ProductSpace([-1.0, 1.0])], ids=["one", "product"])
def test_a_space_goes_where_the_points_are(space):
    drawn = torch.rand(3, 5, 2, 3, generator=torch.Generator().manual_seed(0)) / 4

    def run(device):
        x, y, u = drawn.to(device)
        t = torch.full((1,), 0.5, device=device)
        return [
            *(
                space.expmap0(u),
                space.logmap0(x),
                space.expmap(x, u),
                space.logmap(x, y),
                space.mobius_add(x, y),
            ),
            *(
                space.parallel_transport(x, y, u),
                space.geodesic(t, x, y),
                space.inner(x, u, u),
                space.norm(x, u),
            ),
            *(
                space.dist(x, y),
                space.dist0(x),
                space.pairwise_dist(x, y),
                space.midpoint(x),
                space.project(x),
            ),
        ]

    expected, found = on_both(run)
    assert all(isinstance(one, StandIn) for one in found)
    close(found, expected)


def test_the_device_can_be_asked_for():
    with stand_in() as device:
        assert usable_device(device) == device
    with pytest.raises(gyroformer.errors.UsageError, match="cannot be used here"):
        usable_device("cuda:7")
