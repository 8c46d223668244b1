"""What every entry of ``gf.MODELS`` promises. A model's own property is tested in its own file."""

import json

import pytest
import torch
import torch.nn.functional as F
from small_graphs import communities, graph, renumbered, without_edges
from torch_geometric.data import Batch

import gyroformer as gf
from gyroformer.errors import DataError, UsageError
from gyroformer.models import get_model
from gyroformer.ops.positions import StereographicPositions
from gyroformer.options.constructor import options_taken
from gyroformer.options.models import DECIDED_BY_GRAPH

#: further members of a family that must keep the same promises, by a name of their own: model and options
VARIANTS = {
    **{name: (name, {}) for name in gf.MODELS},
    # curved where the default is flat; few identifiers, for the graphs are small
    "fpst": ("fpst", {"identifiers": 4, "curvature": [-0.5, 0.4]}),
    "tokengt": ("tokengt", {"identifiers": 4}),
    "points curved": ("points", {"curvature": [-0.5, 0.4]}),
    "hgcn in the ball": ("hgcn", {"manifold": "poincare", "attention": True}),
    "hgcn at the centre": ("hgcn", {"aggregation": "centre", "attention": True}),
    "hgnn learned": ("hgnn", {"learn_curvature": True}),
    "hat learned": ("hat", {"learn_curvature": True}),
    "kappa-gcn curved": ("kappa-gcn", {"curvature": [-0.5, 0.4]}),
    "q-gcn with 8 times": ("q-gcn", {"time_dim": 8}),
    "hyp-attention to all": (
        "hyp-attention",
        {"scope": "all", "weights": "sigmoid", "learn_curvature": True},
    ),
    "hypformer with heads": ("hypformer", {"heads": 2, "learn_curvature": True}),
}
#: what takes away a model's other sources of vectors, where features are not the only one
NOTHING_ELSE = {"fpst": {"identifiers": 0}, "tokengt": {"identifiers": 0}}
#: models whose space has no curvature to speak of: ``curvatures`` is empty
FLAT = {"mlp", "gcn", "gat", "sage", "sgc"}
#: models without an activation, and without layers
LINEAR = {"sgc", "points", "points curved"}
WITHOUT_LAYERS = {"points", "points curved"}
CLASSES = 4

pytestmark = pytest.mark.parametrize("name", VARIANTS)


def model_of(name, in_features=3, **options):
    torch.manual_seed(0)
    model, own = VARIANTS[name]
    if name in WITHOUT_LAYERS:
        options.pop("layers", None)
    return get_model(model).make(in_features, **own | options)


def finite(tensor):
    return bool(torch.isfinite(tensor).all())


def assert_finite_gradients(model):
    bad = [
        n for n, p in model.named_parameters() if p.requires_grad and (p.grad is None or not finite(p.grad))
    ]
    assert not bad, f"without a finite gradient: {bad}"


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_points_and_scores_with_features(name, layers):
    points = model_of(name, layers=layers)(graph())
    assert points.dim() == 3
    assert points.size(0) == 12
    assert finite(points)
    scores = model_of(name, layers=layers, classes=CLASSES)(graph())
    assert scores.shape == (12, CLASSES)
    assert finite(scores)


def test_the_width_is_that_of_the_free_coordinates_classes_or_not(name):
    model = model_of(name)
    heads, width = model.positions(graph()).coordinates().shape[1:]
    assert model.options.width == heads * width
    assert model_of(name, classes=CLASSES).options.width == heads * width


def test_points_and_scores_without_features(name):
    data = graph(features=0)
    points = model_of(name, 0, num_nodes=12)(data)
    assert points.shape == model_of(name)(graph()).shape
    assert model_of(name, 0, num_nodes=12, classes=CLASSES)(data).shape == (12, CLASSES)
    with pytest.raises(DataError, match="learned vectors for 5 nodes, the graph has 12"):
        model_of(name, 0, num_nodes=5)(data)


def test_features_given_apart_replace_those_of_the_graph(name):
    model, data, other = model_of(name, classes=CLASSES).eval(), graph(), graph(seed=1)
    x = data.x
    assert torch.equal(model(data, x=other.x), model(data, x=other.x.clone()))
    assert not torch.equal(model(data, x=other.x), model(data))
    assert torch.equal(model(data), model(data, x=x))


@pytest.mark.parametrize("bad", [None, torch.ones(12, 2), torch.full((12, 3), torch.nan)])
def test_wrong_features_are_named(name, bad):
    data = graph()
    data.x = bad
    with pytest.raises(DataError, match="node features must be"):
        model_of(name)(data)


def test_curvatures_are_signed_and_of_the_last_layer_for_positions(name):
    model = model_of(name, layers=2)
    curvatures = model.curvatures
    assert curvatures.dim() == 2
    assert finite(curvatures)
    if name in FLAT:
        assert curvatures.shape == (0, 0)
    positions = model.positions(graph())
    if isinstance(positions, StereographicPositions) and curvatures.numel():
        torch.testing.assert_close(positions.k.flatten(), curvatures[-1].to(positions.k))


def test_renumbering_the_nodes_renumbers_the_result(name):
    order = torch.randperm(12, generator=torch.Generator().manual_seed(3))
    for classes in (None, CLASSES):
        model = model_of(name, classes=classes).double().eval()
        data = graph()
        data.x = data.x.double()
        model.prepare(data)
        torch.testing.assert_close(model(renumbered(data, order)), model(data)[order])


@pytest.mark.parametrize("classes", [None, CLASSES])
@pytest.mark.parametrize("in_features", [3, 0])
def test_every_parameter_has_a_finite_gradient(name, classes, in_features):
    model = model_of(name, in_features, num_nodes=None if in_features else 12, classes=classes, layers=2)
    data = graph(features=in_features)
    if classes:
        F.cross_entropy(model(data), torch.arange(12) % CLASSES).backward()
    else:
        model.positions(data).squared_dist_rows(torch.arange(12)).tril().sin().sum().backward()
    assert_finite_gradients(model)


def test_prepared_or_not_the_result_is_the_same(name):
    model = model_of(name, classes=CLASSES, layers=2).eval()
    assert torch.equal(model(model.prepare(graph())), model(graph()))


def test_another_graph_is_not_taken_for_the_prepared_one(name):
    model = model_of(name, classes=CLASSES, layers=2).eval()
    expected = model(graph(9, seed=2))
    model(model.prepare(graph()))
    assert torch.equal(model(model.prepare(graph(9, seed=2))), expected)


def test_directions_and_repetitions_of_edges_do_not_matter(name):
    model = model_of(name, classes=CLASSES, layers=2).eval()
    data = graph()
    once = graph()
    keep = data.edge_index[0] < data.edge_index[1]
    once.edge_index = torch.cat((data.edge_index[:, keep], data.edge_index[:, keep][:, :3]), 1)
    torch.testing.assert_close(model(model.prepare(once)), model(model.prepare(data)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("classes", [None, CLASSES])
def test_a_batch_equals_its_graphs_alone(name, classes):
    model = model_of(name, classes=classes, layers=2).double().eval()
    graphs = [graph(n, seed=n) for n in (5, 1, 9)]
    for data in graphs:
        data.x = data.x.double()
        model.prepare(data)
    alone = torch.cat([model(data) for data in graphs])
    torch.testing.assert_close(model(Batch.from_data_list(graphs)), alone)


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_isolated_nodes_and_a_single_node(name, nodes):
    for classes in (None, CLASSES):
        model = model_of(name, classes=classes, layers=2)
        result = model(without_edges(nodes))
        assert result.size(0) == nodes
        assert finite(result)
        result.square().sum().backward()
        assert all(finite(p.grad) for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("classes", [None, CLASSES])
def test_saved_and_loaded_it_gives_the_same_bits(name, classes, dtype, tmp_path):
    model = model_of(name, classes=classes, layers=2, dropout=0.1).to(dtype).eval()
    model.save_pretrained(tmp_path / "model")
    loaded = type(model).from_pretrained(tmp_path / "model")
    data = graph()
    data.x = data.x.to(dtype)
    assert torch.equal(loaded(data), model(data))
    assert not loaded.training
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == ["config.json", "model.safetensors"]


def test_the_configuration_makes_the_model_again(name):
    model = model_of(name, classes=CLASSES, dim=8, layers=2)
    again = type(model)(**json.loads(json.dumps(model.config)))
    assert options_taken(type(model)) is get_model(VARIANTS[name][0]).options
    assert again.config == model.config
    shapes = {key: value.shape for key, value in model.state_dict().items()}
    assert {key: value.shape for key, value in again.state_dict().items()} == shapes
    assert {one.name for one in get_model(VARIANTS[name][0]).choices()} | DECIDED_BY_GRAPH == set(
        model.config
    )


@pytest.mark.parametrize("classes", [None, CLASSES])
def test_double_precision_agrees_with_single(name, classes):
    model = model_of(name, classes=classes, layers=2).eval()
    data, wide = graph(), graph()
    wide.x = wide.x.double()
    single = model(data)
    double = model.double()(wide)
    assert double.dtype == torch.float64
    torch.testing.assert_close(single.double(), double, rtol=1e-3, atol=1e-4)


def test_distances_are_symmetric_zero_at_home_and_the_same_for_pairs_and_rows(name):
    positions = model_of(name).double().eval().positions(double_graph())
    assert len(positions) == 12
    nodes = torch.arange(12)
    rows = positions.squared_dist_rows(nodes)
    torch.testing.assert_close(rows, rows.mT)
    assert rows.min() >= 0
    assert rows.max() > 1e-4
    torch.testing.assert_close(rows.diagonal(), torch.zeros_like(rows[0]), rtol=0, atol=1e-12)
    source, target = torch.cartesian_prod(nodes, nodes).mT
    torch.testing.assert_close(
        positions.pair_squared_dist(source, target), rows.flatten(), atol=1e-12, rtol=1e-9
    )
    torch.testing.assert_close(positions.squared_dist_rows(nodes[3:5]), rows[3:5])


def double_graph():
    data = graph()
    data.x = data.x.double()
    return data


def test_nodes_at_one_place_have_distance_zero_and_a_finite_gradient(name):
    model = model_of(name)
    positions = model.positions(without_edges(3, same=True))
    rows = positions.squared_dist_rows(torch.arange(3))
    pairs = positions.pair_squared_dist(torch.tensor([0, 1]), torch.tensor([1, 1]))
    torch.testing.assert_close(pairs[1], torch.zeros(()), rtol=0, atol=1e-6)
    (rows.sum() + pairs.sum()).backward()
    assert all(finite(p.grad) for p in model.parameters() if p.grad is not None)


def test_without_classes_the_result_is_points_of_the_space_of_positions(name):
    model, data = model_of(name).double().eval(), double_graph()
    positions = model.positions(data)
    points, k = model(data), positions.k
    if isinstance(positions, StereographicPositions):
        torch.testing.assert_close(points, gf.geometry.expmap0(positions.coordinates(), k=k))
        squared = gf.geometry.dist(points[:, None], points[None], k=k).square().sum(-1)
        torch.testing.assert_close(
            squared, positions.squared_dist_rows(torch.arange(12)), rtol=1e-6, atol=1e-9
        )
    torch.testing.assert_close(points, positions.points())
    torch.testing.assert_close(points, model.points(data))


def test_without_classes_no_activation_confines_the_points(name):
    activation = {} if VARIANTS[name][0] in LINEAR else {"activation": "relu"}
    coordinates = model_of(name, layers=2, **activation).eval().positions(graph()).coordinates()
    assert (coordinates < -1e-6).float().mean() > 0.1


def test_scores_need_classes(name):
    with pytest.raises(UsageError, match="built without classes"):
        model_of(name).scores(graph())


def test_the_graph_is_left_alone(name):
    data = graph()
    before = data.to_dict()
    model = model_of(name)
    model.prepare(data)
    model(data)
    assert set(data.keys()) == set(before)
    assert all(data[key] is value for key, value in before.items())


def test_a_model_without_values_has_the_shapes(name):
    with torch.device("meta"):
        empty = model_of(name, classes=CLASSES)
    shapes = {key: value.shape for key, value in model_of(name, classes=CLASSES).state_dict().items()}
    assert {key: value.shape for key, value in empty.state_dict().items()} == shapes


def test_unknown_options_and_values_are_named(name):
    with pytest.raises(
        UsageError, match=f"{VARIANTS[name][0]}' has no option 'dropuot'; did you mean 'dropout'"
    ):
        get_model(VARIANTS[name][0]).make(3, dropuot=0.2)
    if name not in LINEAR:
        with pytest.raises(UsageError, match=r"activation must be one of .* did you mean 'relu'"):
            model_of(name, activation="rulu")
    with pytest.raises(UsageError, match="classes must be a whole number of at least 2"):
        model_of(name, classes=1)
    if name not in WITHOUT_LAYERS:
        with pytest.raises(UsageError, match="layers must be a whole number of at least 1"):
            model_of(name, layers=0)
    with pytest.raises(UsageError, match="num_nodes"):
        get_model(VARIANTS[name][0]).make(0, **NOTHING_ELSE.get(name, {}))


def test_500_steps_at_a_high_rate_stay_finite_and_learn(name):
    data = communities(CLASSES, 6)
    model = model_of(name, 2 * CLASSES, classes=CLASSES, dim=8, layers=1, dropout=0.0)
    model.prepare(data)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    least, right = torch.inf, 0.0
    for _ in range(500):
        optimizer.zero_grad()
        scores = model(data)
        loss = F.cross_entropy(scores, data.y)
        if loss.item() < least:
            least, right = loss.item(), float((scores.argmax(1) == data.y).float().mean())
        loss.backward()
        optimizer.step()
    assert all(finite(p) for p in model.parameters())
    # of the best state, which is what training keeps: at this rate one start in six of hyp-attention ends in disorder,
    # by its kernel and in torch's form alike
    assert right > 0.8
