"""The loss and the metrics of hierarchies against their definitions, node by node."""

import pytest
import torch
from torch_geometric.data import Data

from gyroformer.errors import DataError, UsageError
from gyroformer.jobs.plan import plan_model, plan_task
from gyroformer.ops.positions import StereographicPositions
from gyroformer.settings import make_job
from gyroformer.tasks.embed import Reconstruction
from gyroformer.tasks.embed_objective import EmbedObjective
from gyroformer.tasks.hierarchy import Hierarchy

#: each node to its parent: a tree of 7 nodes below node 0, and a node with two parents
PARENTS = torch.tensor([[1, 2, 3, 4, 5, 6, 7, 7], [0, 0, 1, 1, 2, 2, 3, 5]])
NODES = 8


class Placed(torch.nn.Module):
    def __init__(self, seed=0):
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        self.u = torch.nn.Parameter(0.6 * torch.randn(NODES, 2, 2, generator=random).double())
        self.k = torch.nn.Parameter(torch.tensor([[-1.0], [0.3]]).double())

    def positions(self, data):
        return StereographicPositions.from_tangent(self.u, self.k)


def graph(edges=PARENTS):
    return Data(edge_index=edges, num_nodes=NODES, ids=[f"n{i}" for i in range(NODES)])


def task(edges=PARENTS, **objective):
    options = EmbedObjective(hierarchy=True, **{"closure": True, **objective})
    made = Reconstruction.from_graph(graph(edges), options, lambda data, features: data, seed=0)
    assert isinstance(made, Hierarchy)
    return made


def ancestors():
    above = {0: set()}
    for _ in range(3):
        for child, parent in PARENTS.T.tolist():
            above.setdefault(child, set()).update({parent}, above.get(parent, set()))
    return above


def scores(model, kind, weight):
    """s(u, v) by the distances and radii of the geometry."""
    from gyroformer import geometry

    total, radius = 0.0, 0.0
    dots = 0.0
    for head in range(2):
        k, u = model.k[head, 0], model.u[:, head]
        x = geometry.expmap0(u, k=k)
        total = total + geometry.pairwise_dist(x, x, k=k).square()
        radius = radius + geometry.dist0(x, k=k).square()
        dots = dots + 8 * u @ u.mT
    radius = radius.sqrt()
    if kind == "depth":
        return weight * (radius[:, None] - radius) - total
    return -total if kind == "distance" else dots


@pytest.mark.parametrize("kind", ["depth", "distance"])
def test_the_loss_is_its_definition(kind):
    model, made = Placed(), task(rank_by=kind)
    s, above = scores(model, kind, 5.0), ancestors()
    want = 0.0
    for u, ups in above.items():
        others = 1 + sum(torch.exp(s[u, w]) for w in range(NODES) if w != u and w not in ups)
        want = want + sum(torch.log1p(others * torch.exp(-s[u, a])) for a in ups)
    got = made.loss(model)
    torch.testing.assert_close(got, want)
    inputs = list(model.parameters())
    torch.testing.assert_close(torch.autograd.grad(got, inputs), torch.autograd.grad(want, inputs))


@pytest.mark.parametrize("kind", ["depth", "distance", "dot"])
def test_the_metrics_are_their_definitions(kind):
    model, made = Placed(), task(rank_by=kind)
    if kind == "dot":
        with torch.no_grad():
            model.k.zero_()  # the inner product of a flat space
    s, above = scores(model, kind, 5.0).detach(), ancestors()
    precisions, ranks = [], []
    for u, ups in above.items():
        others = torch.tensor([w for w in range(NODES) if w != u and w not in ups])
        before = [int((s[u, others] >= s[u, a]).sum()) for a in sorted(ups, key=lambda a: -float(s[u, a]))]
        ranks += [1 + count for count in before]
        if ups:
            precisions.append(sum((i + 1) / (i + 1 + count) for i, count in enumerate(before)) / len(ups))
    found = made.evaluate(model)
    assert found["hierarchy_map"] == pytest.approx(100 * sum(precisions) / len(precisions))
    assert found["mean_rank"] == pytest.approx(sum(ranks) / len(ranks))
    assert 0 <= found["direction"] <= 100


def test_pairs_that_are_held_out_are_neither_learned_nor_taken_for_others():
    made = task(hold_out=0.5)
    held, train = made.order.held_out, made.order.train
    assert held.shape[1] == made.order.about["held_out"] > 0
    assert held.shape[1] + train.shape[1] == made.ancestors.indices.numel() == made.order.about["pairs"]
    direct = {tuple(pair) for pair in PARENTS.T.tolist()}
    assert not direct & {tuple(pair) for pair in held.T.tolist()}
    results = made.results(Placed().float(), {"map": 1.0})
    assert 0 <= results["test_map"] <= 100
    assert 0 <= results["test_auc"] <= 100


def test_closure_and_direction_are_said():
    assert any("--closure adds the" in note for note in task(closure=False).notes)
    assert any("from a node to its ancestor" in note for note in task().notes)
    turned = task(PARENTS.flip(0))
    assert any("from an ancestor to its descendant" in note for note in turned.notes)
    assert torch.equal(turned.ancestors.indices, task().ancestors.indices)
    assert task(ancestor="target").notes == ()


def test_a_cycle_is_shown_by_name():
    looped = torch.cat((PARENTS, torch.tensor([[0], [7]])), dim=1)
    with pytest.raises(DataError, match=r"'n0' → 'n7' → .*'n0'; correct the file.*--break-cycles"):
        task(looped, ancestor="target")
    broken = task(looped, ancestor="target", break_cycles=True)
    assert any("close a cycle are left out: 1 of 9" in note for note in broken.notes)


def test_what_the_edges_do_not_tell_is_said():
    chain = torch.tensor([[0, 1, 2], [1, 2, 3]])
    assert any("which is a guess" in note for note in task(chain).notes)
    assert not any("guess" in note for note in task().notes)
    for broken in (False, True):
        with pytest.raises(DataError, match=r"every pair is listed in both directions.*list each pair once"):
            task(torch.cat((chain, chain.flip(0)), 1), break_cycles=broken)


def test_options_of_a_hierarchy_have_no_effect_without_one():
    with pytest.raises(UsageError, match="--closure has no effect without --hierarchy"):
        EmbedObjective(closure=True)
    with pytest.raises(UsageError, match="--hold-out has no effect without --hierarchy"):
        EmbedObjective(hold_out=0.1)
    with pytest.raises(UsageError, match="--plain-distance has no effect with --hierarchy"):
        EmbedObjective(hierarchy=True, squared=False)


def test_nothing_to_hold_out_is_said():
    with pytest.raises(DataError, match="only 0 pairs follow from others"):
        task(PARENTS[:, :2], hold_out=0.5)


def test_a_recipe_that_asks_for_a_hierarchy_has_directed_edges(tmp_path):
    recipe = tmp_path / "found.toml"
    recipe.write_text("[objective]\nhierarchy = true\n")
    assert make_job("embed", recipe=str(recipe)).graph.directed
    assert make_job("embed", objective={"hierarchy": True}).recipe == "hierarchy"
    assert not make_job("embed").graph.directed


def planned(model="fpst", **options):
    job = make_job(
        "embed",
        graph={"source": "tree.csv"},
        model={"name": model, "options": {"dim": 2, **options}},
        objective={"hierarchy": True, "closure": True, "start": "tree"},
    )
    read = graph()
    return plan_model(job, read, plan_task(job, read))


@pytest.mark.parametrize("model", ["fpst", "points", "tokengt"])
def test_nodes_start_as_a_drawn_tree(model):
    plan = planned(model)
    layout = plan.task.order.layout
    radius = plan.model.positions(plan.data).coordinates().norm(dim=-1).flatten()
    assert (2 * radius).tolist() == pytest.approx(layout.radius.tolist(), rel=1e-5, abs=1e-6)
    assert plan.task.score.weight.item() == pytest.approx(1.25 * layout.radius.max())


def test_the_drawn_tree_is_as_large_as_the_space_is_curved():
    near, wide = planned("points", curvature=-1.0), planned("points", curvature=-0.25)
    at = [plan.model.positions(plan.data).coordinates() for plan in (near, wide)]
    torch.testing.assert_close(2 * at[0], at[1])
    assert wide.task.score.weight.item() == pytest.approx(2 * near.task.score.weight.item())


def test_a_model_that_starts_at_given_places_still_learns_in_every_part():
    plan = planned("fpst")
    for _ in range(2):  # the first step moves the maps that were 0, the second what lies before them
        plan.task.loss(plan.model).backward()
        with torch.no_grad():
            for parameter in plan.model.parameters():
                parameter -= 1e-3 * parameter.grad
    assert all(
        bool(parameter.grad.any()) for name, parameter in plan.model.named_parameters() if "norm" not in name
    )


def test_the_plane_is_the_recipe_of_curved_hierarchies_in_two_dimensions():
    def recipe(dim, model="fpst", **objective):
        values = {
            "model": {"name": model, "options": {"dim": dim}},
            "objective": {"hierarchy": True, **objective},
        }
        return make_job("embed", graph={"source": "tree.csv"}, **values).recipe

    assert recipe(2) == recipe(2, "points") == recipe(2, rank_by="depth") == "plane"
    assert recipe(3) == recipe(2, "tokengt") == recipe(2, "gcn") == "hierarchy"
    assert recipe(2, start="random") == recipe(2, rank_by="distance") == "hierarchy"


@pytest.mark.parametrize("options", [{"dim": 4, "heads": 1}, {"dim": 4, "heads": 2}])
def test_a_drawn_tree_needs_a_plane(options):
    with pytest.raises(UsageError, match="--dim 2 --heads 1"):
        planned(**options)


def test_a_network_that_averages_cannot_start_at_given_places():
    with pytest.raises(UsageError, match="use fpst, tokengt or points"):
        planned("hgcn")
