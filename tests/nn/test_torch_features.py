"""The model under what people do to models: compile, autocast, export, two processes, long hard training."""

import copy
import os
import socket

import pytest
import torch
import torch.multiprocessing as mp

from gyroformer import nn
from gyroformer.bench import stress


def model_and_tokens(**options):
    torch.manual_seed(0)
    model = nn.StereographicTransformer(8, 2, 2, **({"curvature": [-0.7, 0.4]} | options))
    return model, torch.randn(40, 8)


@pytest.mark.parametrize("attention", ["linear", "softmax"])
def test_compiles_as_one_graph(attention):
    torch._dynamo.reset()
    model, tokens = model_and_tokens(attention=attention)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(tokens), model(tokens))
    exact = copy.deepcopy(model).double()
    runs = [(exact, exact, tokens.double()), (model, model, tokens), (compiled, model, tokens)]
    want, *found = [gradients(run, parameters, given) for run, parameters, given in runs]
    # compiled code may have torch forms where eager has kernels: each is held to the exact gradients
    for grads in found:
        for one, other in zip(grads, want, strict=True):
            assert (one - other).norm() < 1e-5 * other.norm()


def gradients(run, model, tokens):
    model.zero_grad()
    run(tokens).square().sum().backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


@pytest.mark.slow
def test_inductor_gives_the_same_training_step():
    torch._dynamo.reset()
    model, tokens = model_and_tokens()
    compiled = torch.compile(model.tangent, fullgraph=True)
    grads = [gradients(run, model, tokens) for run in (model.tangent, compiled)]
    torch.testing.assert_close(grads[1], grads[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("attention", ["linear", "softmax"])
def test_autocast(attention):
    model, tokens = model_and_tokens(attention=attention)
    want = model(tokens)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = model(tokens)
        got.float().square().sum().backward()
    assert (got - want).norm() / want.norm() < 0.05
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("attention", ["linear", "softmax"])
def test_bfloat16_model(attention):
    model, tokens = model_and_tokens(attention=attention)
    got = model.bfloat16()(tokens.bfloat16())
    assert got.dtype == torch.bfloat16
    assert torch.isfinite(got).all()


def test_export():
    model, tokens = model_and_tokens()
    exported = torch.export.export(model.eval(), (tokens,))
    torch.testing.assert_close(exported.module()(tokens), model(tokens))


def _train_one_step(rank, port, results):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    model, tokens = model_and_tokens()
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    parallel(tokens[rank * 20 : rank * 20 + 20]).square().sum().backward()
    if rank == 0:
        results["grads"] = [p.grad.tolist() for p in model.parameters()]
    torch.distributed.barrier()
    # torch 2.13 can deadlock when a gloo group is torn down: its destructor joins a thread that waits for the GIL
    os._exit(0)


def test_distributed_data_parallel_averages_the_gradients():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with mp.Manager() as manager:
        results = manager.dict()
        mp.spawn(_train_one_step, (port, results), nprocs=2)
        got = [torch.tensor(grad) for grad in results["grads"]]
    model, tokens = model_and_tokens()
    (sum(model(part).square().sum() for part in tokens.split(20)) / 2).backward()
    torch.testing.assert_close(got, [p.grad for p in model.parameters()], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("width, heads", [(2, 1), (2, 2), (16, 2), (64, 4)])
@pytest.mark.parametrize("attention", ["linear", "softmax"])
def test_hard_training_stays_finite(width, heads, attention):
    """A short form of ``python -m gyroformer.bench.stress``, started close to the limit the long one reaches."""
    run = stress.train(
        width,
        heads,
        attention=attention,
        curvature_rate=0.1,
        steps=60,
        start=[[-18.0] * heads, [18.0] * heads],
    )
    assert run.finite, run
    assert run.largest_curvature == stress.LIMIT
