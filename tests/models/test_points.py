"""Free points: what defines them beside the contract of all models."""

import torch
from small_graphs import graph
from torch_geometric.data import Data

from gyroformer.jobs.plan import plan_model, plan_task
from gyroformer.models.points import Points
from gyroformer.settings import make_job
from gyroformer.train.loop import fit


def test_the_edges_do_not_matter():
    model, data, other = Points(3).eval(), graph(), graph(seed=5)
    assert torch.equal(model(data), model(other, x=data.x))


def test_without_features_there_is_nothing_but_points_and_curvatures():
    model = Points(0, num_nodes=12, dim=6, heads=3)
    assert {name: tuple(p.shape) for name, p in model.named_parameters()} == {
        "features.table.weight": (12, 6),
        "space.curvature": (3,),
    }
    tangent = model.features.table.weight.view(12, 3, 2)
    torch.testing.assert_close(model.positions(graph(features=0)).coordinates(), tangent)


def test_a_tree_is_found_to_be_hyperbolic_from_the_start():
    parents = torch.arange(1, 121).sub(1).div(3, rounding_mode="floor")
    edges = torch.stack((parents, torch.arange(1, 121)))
    data = Data(edge_index=torch.cat((edges, edges.flip(0)), 1), num_nodes=121)
    options = {"dim": 4, "heads": 1}
    job = make_job(
        "embed",
        has_features=False,
        model={"name": "points", "options": options},
        training={"epochs": 60, "eval_every": 60},
    )
    plan = plan_model(job, data, plan_task(job, data))
    course = [row["curvatures"][0] for row in fit(plan.model, plan.task, job.training).history]
    assert course[10] < 0
    assert course[-1] < -1
