import pytest
import torch
from placed_nodes import Placed
from small_graphs import labelled_graph
from torch_geometric.data import Data

from gyroformer.errors import DataError, UsageError
from gyroformer.jobs.plan import plan_model, plan_task
from gyroformer.settings import make_job
from gyroformer.tasks.embed import STARTS_ALONG_TREE, TREE_STEP, Reconstruction
from gyroformer.tasks.embed_objective import EmbedObjective


def literal_loss(model, data, *, squared=True):
    """Return the paper's sum with its sign corrected, edge by edge."""
    n = data.num_nodes
    d = model.positions(data).squared_dist_rows(torch.arange(n))
    d = d if squared else d.clamp(min=1e-300).sqrt()
    adjacent = torch.zeros(n, n, dtype=torch.bool)
    adjacent[data.edge_index[0], data.edge_index[1]] = True
    loss = 0.0
    for u, v in data.edge_index.mT.tolist():
        others = [w for w in range(n) if not adjacent[u, w]]  # u itself is one of them
        loss = loss - torch.log(torch.exp(-d[u, v]) / torch.exp(-d[u, others]).sum())
    return loss


@pytest.mark.parametrize("squared", [True, False])
def test_the_loss_is_the_papers_with_its_sign_corrected(squared):
    data = labelled_graph(20)
    model = Placed(20)
    got = Reconstruction(data, squared=squared).loss(model)
    torch.testing.assert_close(got, literal_loss(model, data, squared=squared))
    want = torch.autograd.grad(literal_loss(model, data, squared=squared), list(model.parameters()))
    torch.testing.assert_close(torch.autograd.grad(got, list(model.parameters())), want)


def test_ranked_by_the_inner_product_the_neighbour_stands_in_the_sum():
    data, model = labelled_graph(20), Placed(20, k=(0.0, 0.0))
    task = Reconstruction(data, score="dot")
    x = 2 * model.u.flatten(1)  # a tangent vector is half as long as its geodesic
    s, adjacent = 2 * x @ x.mT, torch.zeros(20, 20, dtype=torch.bool)
    adjacent[data.edge_index[0], data.edge_index[1]] = True
    want = 0.0
    for u, v in data.edge_index.mT.tolist():
        others = 1 + sum(torch.exp(s[u, w]) for w in range(20) if w != u and not adjacent[u, w])
        want = want + torch.log1p(others * torch.exp(-s[u, v]))
    got = task.loss(model)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(torch.autograd.grad(got, model.u), torch.autograd.grad(want, model.u))


def test_ranked_by_the_inner_product_the_largest_comes_first():
    path = torch.tensor([[0, 1, 2], [1, 2, 3]])
    data, model = Data(edge_index=path, num_nodes=4), Placed(4, k=(0.0,))
    with torch.no_grad():
        model.u.zero_()
        model.u[:, 0, 0] = torch.tensor([1.0, 5.0, -1.0, -2.0])  # 0 and 1 point the same way, far apart
        assert Reconstruction(data, score="dot").evaluate(model)["map"] == pytest.approx(
            100 * (3 + 5 / 6) / 4
        )


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"rank_by": "depth"}, "--rank-by depth is for a hierarchy"),
        ({"rank_by": "dot", "squared": False}, "--plain-distance has no effect with --rank-by dot"),
    ],
)
def test_a_score_without_effect_is_refused(values, said):
    with pytest.raises(UsageError, match=said):
        EmbedObjective(**values)


def test_sampled_negatives_estimate_the_sum_over_all():
    data = labelled_graph(30)
    model = Placed(30)
    torch.manual_seed(0)
    with torch.no_grad():
        whole = Reconstruction(data).loss(model)
        task = Reconstruction(data, negatives=15)
        drawn = torch.stack([task.loss(model) for _ in range(400)])
    assert drawn.std() > 0
    # the logarithm of an unbiased sum is biased a little downwards
    assert abs(drawn.mean() - whole) < 0.05 * whole.abs()
    assert torch.equal(Reconstruction(data, negatives=30).loss(model), whole)


def test_mean_average_precision_is_read_from_the_distances():
    path = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    data = Data(edge_index=path, num_nodes=5)
    model = Placed(5, k=(0.0,))
    with torch.no_grad():
        model.u.zero_()
        model.u[:, 0, 0] = torch.arange(5.0)
        assert Reconstruction(data).evaluate(model) == {"map": 100.0}
        model.u[:, 0, 0] = torch.tensor([0.0, 3.0, 1.0, 4.0, 2.0])
        assert Reconstruction(data).evaluate(model)["map"] < 60


def test_a_drawn_part_of_the_nodes_is_the_same_each_time():
    data = labelled_graph(40)
    model = Placed(40)
    with torch.no_grad():
        found = {Reconstruction(data, map_nodes=10, seed=1).evaluate(model)["map"] for _ in range(2)}
        assert len(found) == 1
        assert found != {Reconstruction(data).evaluate(model)["map"]}


def test_what_cannot_be_reconstructed_is_refused():
    with pytest.raises(DataError, match="no edge"):
        Reconstruction(Data(edge_index=torch.zeros(2, 0).long(), num_nodes=3))
    with pytest.raises(UsageError, match="negatives must be from 1 to the number of nodes, 20; got 21"):
        Reconstruction(labelled_graph(20), negatives=21)


def planned(model, **objective):
    tree = torch.tensor([(node, (node - 1) // 2) for node in range(1, 31)]).T
    graph = Data(edge_index=tree, num_nodes=31)
    job = make_job("embed", graph={"source": "own.csv"}, model={"name": model}, objective=objective)
    return plan_model(job, graph, plan_task(job, graph))


@pytest.mark.parametrize("model", STARTS_ALONG_TREE)
def test_an_own_graph_starts_along_a_tree(model):
    plan = planned(model)
    with torch.no_grad():
        apart = plan.model.positions(plan.data).pair_squared_dist(*plan.data.edge_index)
        assert apart.sqrt().tolist() == pytest.approx([TREE_STEP] * 30, rel=1e-4)
        found = plan.task.evaluate(plan.model)["map"]
        disorder = planned(model, start="random")
        assert found > 80 > disorder.task.evaluate(disorder.model)["map"]


@pytest.mark.parametrize(
    ("source", "values", "start"),
    [
        ("own.csv", {}, "tree"),
        ("enron", {}, "tree"),  # a large data set
        ("web-edu", {}, "random"),  # kept results began in disorder
        ("own.csv", {"model": {"name": "hgcn"}}, "random"),  # nodes of its own, but averaged
        ("own.csv", {"objective": {"use_features": True}}, "random"),
        ("own.csv", {"graph": {"features": "x.csv"}}, "random"),
        ("own.csv", {"objective": {"rank_by": "dot"}}, "random"),
        ("own.csv", {"model": {"name": "fpst", "options": {"dim": 2}}}, "random"),
        ("own.csv", {"model": {"name": "fpst", "options": {"dim": 4}}}, "tree"),
        ("own.csv", {"objective": {"start": "random"}}, "random"),
        ("own.csv", {"recipe": "default"}, "random"),  # a recipe that is named says all
        ("own.csv", {"objective": {"hierarchy": True}}, "random"),
    ],
)
def test_where_nodes_start_by_default(source, values, start):
    graph = {"source": source, **values.get("graph", {})}
    assert make_job("embed", **{**values, "graph": graph}).objective.start == start


def test_a_network_that_averages_cannot_start_along_a_tree():
    with pytest.raises(UsageError, match="use fpst, tokengt or points"):
        planned("hgcn", start="tree")
