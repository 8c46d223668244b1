import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve
from small_graphs import blocks_graph
from torch import nn

from gyroformer.data.link_split import draw_link_split
from gyroformer.graphs.non_edges import pair_numbers
from gyroformer.ops.positions import StereographicPositions
from gyroformer.tasks.decoders import LinkDecoder
from gyroformer.tasks.link import LinkPrediction
from gyroformer.tasks.ranking import alarms, hits_at, ranking_metrics
from gyroformer.tasks.task import Task


class Placed(nn.Module):
    """A model that says where the nodes are whatever the graph."""

    def __init__(self, h):
        super().__init__()
        self.h = nn.Parameter(h)

    def positions(self, data):
        return StereographicPositions.flat(self.h)


@pytest.fixture
def task():
    data = blocks_graph()
    split = draw_link_split(data)
    return LinkPrediction(split.training_graph(data), split)


def test_it_is_a_task(task):
    assert isinstance(task, Task)


def test_the_loss_is_the_formula(task):
    model = Placed(torch.randn(48, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64))
    torch.manual_seed(1)
    found = task.loss(model)
    torch.manual_seed(1)
    others = task.non_edges.draw(task.edges.size(1))

    def p(pairs):
        squared = (model.h[pairs[0]] - model.h[pairs[1]]).square().sum(-1)
        return 1 / ((squared - 2).exp() + 1)

    expected = -p(task.edges).log().mean() - (1 - p(others)).log().mean()
    torch.testing.assert_close(found, expected)


def test_every_step_draws_new_non_edges_of_the_training_graph(task):
    first, second = (task.non_edges.draw(500) for _ in range(2))
    assert not torch.equal(first, second)
    drawn = set(pair_numbers(torch.cat((first, second), 1)).tolist())
    assert not drawn & set(pair_numbers(task.edges).tolist())
    # held-out edges are among what can be drawn: to spare them would tell where they are
    everything = set(pair_numbers(task.non_edges.at(torch.arange(task.non_edges.count))).tolist())
    assert set(pair_numbers(task.split.test).tolist()) <= everything


def test_figures_are_those_of_all_pairs_compared():
    stream = np.random.default_rng(0)
    edges, others = stream.integers(0, 6, 40) + 1.0, stream.integers(0, 6, 30) + 0.0  # many ties
    compared = edges[:, None] - others[None]
    auc = ((compared > 0) + 0.5 * (compared == 0)).mean()
    assert ranking_metrics(edges, others)["auc"] == pytest.approx(100 * auc)
    thresholds = np.unique(np.concatenate((edges, others)))[::-1]
    recall = np.array([(edges >= t).mean() for t in thresholds])
    precision = np.array(
        [(edges >= t).sum() / ((edges >= t).sum() + (others >= t).sum()) for t in thresholds]
    )
    ap = (np.diff(recall, prepend=0.0) * precision).sum()
    assert ranking_metrics(edges, others)["ap"] == pytest.approx(100 * ap)


@pytest.mark.parametrize("levels", [3, 1000])
def test_figures_are_those_of_scikit_learn(levels):
    stream = np.random.default_rng(levels)
    edges, others = stream.integers(0, levels, 300) + levels / 5, stream.integers(0, levels, 200) + 0.0
    truth, scores = np.repeat([1, 0], [300, 200]), np.concatenate((edges, others))
    found = ranking_metrics(edges, others)
    assert found["auc"] == pytest.approx(100 * roc_auc_score(truth, scores), rel=1e-13)
    assert found["ap"] == pytest.approx(100 * average_precision_score(truth, scores), rel=1e-13)
    false, true, _ = roc_curve(truth, scores, drop_intermediate=False)
    counts = alarms(edges, others)
    assert (counts[0] == (200 * false).round()).all()
    assert (counts[1] == (300 * true).round()).all()


def test_equal_scores_win_nothing():
    same = np.zeros(200)
    assert ranking_metrics(same, same) == {"auc": 50.0, "ap": 50.0}
    assert hits_at(10, same, same) == 0.0


def test_hits_are_strictly_above_the_kth_best_non_edge():
    others = np.arange(20.0)
    edges = np.array([5.0, 10.0, 10.5, 19.0, 30.0])
    assert hits_at(10, edges, others) == 60.0  # the tenth best is 10
    assert hits_at(1, edges, others) == 20.0
    assert hits_at(20, edges, others) == 100.0
    assert hits_at(21, edges, others) is None


def test_what_is_not_finite_is_seen():
    found = ranking_metrics(np.array([np.nan, 1.0]), np.array([0.0]))
    assert np.isnan(found["auc"])


def test_a_perfect_placement_has_perfect_figures_and_hits_where_there_are_enough(task):
    joined = torch.cat((task.split.val, task.split.test), 1)
    at = torch.zeros(48, 48)
    at[joined[0], joined[1]] = at[joined[1], joined[0]] = 1.0

    class Known(nn.Module):
        def positions(self, data):
            return self

        def pair_squared_dist(self, u, v):
            return 1 - at[u, v]

    found = task.evaluate(Known())
    assert found["val_auc"] == found["val_ap"] == 100.0
    assert task.rank(found) == (100.0, -found["val_loss"])
    tested = task.test(Known())
    assert tested["test_auc"] == 100.0
    assert tested["test_hits@10"] == 100.0
    assert tested["test_hits@100"] is None  # fewer than 100 test pairs


def test_the_decoder_is_trained_with_the_model():
    data = blocks_graph()
    split = draw_link_split(data)
    task = LinkPrediction(split.training_graph(data), split, LinkDecoder(learn=True))
    task.loss(Placed(torch.randn(48, 3))).backward()
    assert {name for name, p in task.module.named_parameters() if p.grad is not None} == {
        "decoder.radius_change",
        "decoder.log_temperature_change",
    }
