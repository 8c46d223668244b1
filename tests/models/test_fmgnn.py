import pytest
import torch
from small_graphs import graph

from gyroformer.errors import UsageError
from gyroformer.geometry import dist, expmap0, logmap0, weighted_midpoint
from gyroformer.models import FMGNN
from gyroformer.models.fmgnn import FusedLayer, Landmarks
from gyroformer.nn.sparse import propagation

K = torch.tensor([[0.0], [-1.0], [1.0]], dtype=torch.float64)


def wide_graph():
    data = graph()
    data.x = data.x.double()
    return data


def test_each_branch_takes_the_midpoint_of_its_own_space():
    torch.manual_seed(0)
    layer, data = FusedLayer(3, 4, curvature=(-1.0, 1.0), learn_curvature=True).double(), wide_graph()
    matrix = propagation(data, norm="row", loops=True, dtype=torch.float64)
    result = layer(0.3 * data.x, matrix)
    for branch, k in enumerate(K.flatten()):
        points = expmap0(0.3 * data.x @ layer.weight[branch], k=k)
        weights = matrix.to_dense()
        middle = [weighted_midpoint(points, weights[node], k=k) for node in range(12)]
        torch.testing.assert_close(
            result[:, branch], logmap0(torch.stack(middle), k=k).detach(), check_stride=False
        )


def test_the_flat_branch_is_the_ordinary_mean():
    torch.manual_seed(0)
    layer, data = FusedLayer(3, 4, curvature=(-1.0, 1.0), learn_curvature=True).double(), wide_graph()
    matrix = propagation(data, norm="row", loops=True, dtype=torch.float64)
    torch.testing.assert_close(layer(data.x, matrix)[:, 0], matrix @ (data.x @ layer.weight[0]))


def test_landmark_distances_are_those_of_the_three_spaces():
    torch.manual_seed(0)
    landmarks, u = Landmarks(5, 4).double(), 0.5 * torch.randn(7, 3, 4, dtype=torch.float64)
    found = landmarks(u, K).unflatten(-1, (3, 5))
    x, c = expmap0(u, k=K), expmap0(landmarks.tangent, k=K)
    for branch in range(3):
        expected = dist(x[:, None, branch], c[None, :, branch], k=K[branch])
        torch.testing.assert_close(found[:, branch], expected)


def test_the_exchange_lets_every_branch_hear_the_others():
    torch.manual_seed(0)
    model, data = FMGNN(3).double().eval(), wide_graph()
    torch.testing.assert_close(
        model.exchange.softmax(-1)[0, 0], torch.tensor([4.0, 1.0, 1.0], dtype=torch.float64) / 6
    )

    def heard(alone):
        with torch.no_grad():
            model.exchange.copy_(torch.eye(3).expand(2, 3, 3) * (1e3 if alone else 1.0))
        model.zero_grad()
        model.tangent(data)[:, 0].sum().backward()
        return model.layers[0].weight.grad.abs().sum((1, 2)) > 0

    assert heard(alone=False).tolist() == [True, True, True]
    assert heard(alone=True).tolist() == [True, False, False]


def test_the_curvatures_start_flat_negative_positive_and_the_flat_one_stays():
    model = FMGNN(3, layers=2, curvature=(-0.5, 0.4))
    torch.testing.assert_close(model.curvatures, torch.tensor([[0.0, -0.5, 0.4]]).expand(2, -1))
    assert sum(p.numel() for n, p in model.named_parameters() if n.endswith("curvature")) == 4


def test_wrong_use_is_named():
    with pytest.raises(UsageError, match="landmarks must be a whole number of at least 1"):
        FMGNN(3, classes=4, landmarks=0)
    for curvature in ((-1.0, 0.0, 1.0), (2.0, -3.0), (-1.0, 0.0), (-1.0,)):
        with pytest.raises(UsageError, match="curvature must be a negative and a positive number"):
            FMGNN(3, curvature=curvature)
