import pytest
import torch
from small_graphs import labelled_graph

from gyroformer.errors import UsageError
from gyroformer.graphs.reading.convert import to_graph
from gyroformer.jobs.memory import (
    KEPT_PER_NODE,
    MANY_TOKENS,
    available_memory,
    check_memory,
    estimate,
    note_on_tokens,
)
from gyroformer.jobs.plan import plan_task
from gyroformer.ops.native.build import library
from gyroformer.processes.group import World, set_world, together
from gyroformer.settings import make_job


def plan(**options):
    job = make_job("classify", model={"options": options})
    return job, plan_task(job, to_graph(labelled_graph()))


def test_what_grows_the_job_grows_the_estimate():
    small = estimate(*plan(dim=8, layers=1))
    assert estimate(*plan(dim=16, layers=1))["layers"] == pytest.approx(2 * small["layers"])
    assert estimate(*plan(dim=8, layers=3))["layers"] > 1.3 * small["layers"]
    assert estimate(*plan(dim=8, edge_tokens="undirected"))["layers"] > small["layers"]
    assert small["total"] == pytest.approx(sum(size for name, size in small.items() if name != "total"))


def test_a_job_that_does_not_fit_is_refused_with_the_number():
    with pytest.raises(UsageError, match=r"needs about 0\.\d GB and 0\.1 GB are free; .*--ignore-memory"):
        check_memory(*plan(), available=1e8)
    assert check_memory(*plan(), available=1e12)["total"] < 1e12


def test_the_advice_names_only_what_is_not_set_already():
    def advice(**options):
        job, task = plan(identifiers=0, **options)
        task.data.num_nodes = 10**7  # so that the layers are the largest part
        with pytest.raises(UsageError) as refused:
            check_memory(job, task, available=1e8)
        return str(refused.value).partition(": try ")[2]

    whole = advice(edge_tokens="undirected", layers=3, dim=64)
    assert whole == (
        "--edge-tokens none, or a --dim below 64, or fewer --layers than 3, or --ignore-memory to start all the same"
    )
    assert "--edge-tokens" not in advice(edge_tokens="none", layers=3)
    least = advice(edge_tokens="none", layers=1, dim=2, heads=1)
    assert least == "a machine with more memory, or --ignore-memory to start all the same"


@pytest.mark.skipif(library() is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("option", [{"activation": "gelu"}, {"dropout": 0.1}, {"dim": 128}, {"norm": False}])
def test_an_operator_keeps_less_than_torch(option):
    plain = {"dim": 64, "dropout": 0.0}
    by_operator, by_torch = (estimate(*plan(**plain | more))["layers"] for more in ({}, option))
    wider = option.get("dim", 64) / 64
    assert by_torch > 2 * wider * by_operator


def test_free_points_have_no_layers():
    graph = to_graph(labelled_graph())
    jobs = [make_job("embed", model={"name": name, "options": {"dim": 8}}) for name in ("points", "gcn")]
    points, network = (estimate(job, plan_task(job, graph))["layers"] for job in jobs)
    assert points == 4 * 8 * KEPT_PER_NODE * graph.num_nodes < network


def test_eigenvectors_count_and_can_be_left_out():
    job, task = plan(dim=2, heads=1, identifiers=16)
    task.data.num_nodes = 10**7
    with pytest.raises(UsageError, match=r"most of it is for eigenvectors .*: try --identifiers 0, or"):
        check_memory(job, task, available=1e8)
    assert estimate(*plan(identifiers=0))["eigenvectors"] == 0


def test_many_edge_tokens_are_said():
    job, task = plan(edge_tokens="undirected")
    assert note_on_tokens(job, task.data) == ()
    task.data.num_nodes = 1000
    task.data.edge_index = torch.zeros((2, 2 * MANY_TOKENS), dtype=torch.int64)
    (said,) = note_on_tokens(job, task.data)
    assert said.startswith("1,000,000 edges are tokens beside 1,000 nodes")
    assert "--edge-tokens none" in said
    assert note_on_tokens(plan(edge_tokens="none")[0], task.data) == ()


def test_the_machine_has_memory():
    assert 1e8 < available_memory() < 1e14


def test_processes_share_tokens_and_memory(monkeypatch):
    alone, free = estimate(*plan(dim=8, edge_tokens="undirected")), available_memory()
    set_world(World(0, 4, 1.0, None))
    try:
        with together():
            assert estimate(*plan(dim=8, edge_tokens="undirected"))["layers"] < 0.7 * alone["layers"]
    finally:
        set_world(None)
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_WORLD_SIZE"):
        monkeypatch.setenv(name, "4")
    assert available_memory() < 0.5 * free
