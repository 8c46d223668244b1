"""The stand-in for a GPU is as strict as one: without this, the tests on it would show nothing."""

import copy

import numpy as np
import pytest
import torch
from stand_in_device import StandIn, real, stand_in
from torch import nn

from gyroformer.ops.native import fused


@pytest.fixture
def cuda():
    with stand_in() as name:
        yield name


def test_names_its_device(cuda):
    for made in (
        torch.zeros(3, device=cuda),
        torch.arange(3, device=torch.device(cuda)),
        torch.tensor([1.0, 2.0], device=cuda),
        torch.randn(2, device=f"{cuda}:0"),
        torch.ones(3).to(cuda),
        torch.ones(3).cuda(),
        torch.ones(3).to(device=cuda, dtype=torch.float64),
        torch.zeros_like(torch.ones(3), device=cuda),
        torch.ones(3).new_zeros(2, device=cuda),
    ):
        assert isinstance(made, StandIn)
        assert made.device == torch.device("cuda:0")
        assert made.is_cuda
    assert type(torch.zeros(3)) is torch.Tensor


def test_results_stay_on_the_device(cuda):
    x = torch.tensor([1.0, 2.0, 3.0], device=cuda)
    results = (x + 1, x.new_zeros(2), x.new_tensor([1.0]), torch.zeros_like(x), x.double(), x[1:], x[x > 1])
    results += (
        torch.where(x > 1, x, 0.0),
        nn.functional.one_hot(x.long()),
        x.long().bincount(),
        x.sort().values,
    )
    assert all(isinstance(result, StandIn) for result in results)
    assert type(x.cpu()) is torch.Tensor
    assert type(x.to("cpu")) is torch.Tensor
    assert type(x.to(torch.zeros(1))) is torch.Tensor
    assert isinstance(torch.zeros(1).to(x), StandIn)


def test_values_are_real(cuda):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=cuda)
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert (x @ x).tolist() == [[7.0, 10.0], [15.0, 22.0]]
    assert (x.sum().item(), float(x[0, 1]), int(x[1, 0]), bool((x > 0).all())) == (10.0, 2.0, 3, True)
    assert x.cpu().numpy().tolist() == x.tolist()
    assert torch.equal(real(x), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    x[0] = 5.0
    x[:, 1] = torch.tensor(7.0)
    assert x.tolist() == [[5.0, 7.0], [3.0, 7.0]]
    assert x[[1, 0]].tolist() == [[3.0, 7.0], [5.0, 7.0]]
    assert copy.deepcopy(x).add_(1).tolist() == [[6.0, 8.0], [4.0, 8.0]]
    assert x.tolist() == [[5.0, 7.0], [3.0, 7.0]]


REFUSED = {
    "sum": lambda x, y, i: x + y,
    "product": lambda x, y, i: y @ x,
    "cat": lambda x, y, i: torch.cat((x, y)),
    "stack of scalars": lambda x, y, i: torch.stack((x.sum(), y.sum())),
    "in place": lambda x, y, i: y.add_(x),
    "in place on a scalar": lambda x, y, i: torch.tensor(0.0).add_(x.sum()),
    "device index of a CPU tensor": lambda x, y, i: y[i.to("cuda")],
    "device mask of a CPU tensor": lambda x, y, i: y[x > 0],
    "CPU values put in": lambda x, y, i: x.index_put_((i,), y[i]),
    "index_select": lambda x, y, i: x.index_select(0, i),
    "gather": lambda x, y, i: x.gather(0, i),
    "index_add": lambda x, y, i: x.index_add(0, i, x[:2]),
    "index_add of CPU values": lambda x, y, i: x.index_add(0, i.to("cuda"), y[:2]),
    "embedding": lambda x, y, i: nn.functional.embedding(i, x[:, None]),
    "where": lambda x, y, i: torch.where(y > 0, x, x),
    "searchsorted": lambda x, y, i: torch.searchsorted(x, y),
    "cross-entropy": lambda x, y, i: nn.functional.cross_entropy(x[None].expand(2, -1), i),
    "module on the CPU": lambda x, y, i: nn.Linear(3, 3)(x),
    "sparse product": lambda x, y, i: torch.eye(3).to_sparse() @ x[:, None],
}


@pytest.mark.parametrize("what", REFUSED)
def test_meets_no_tensor_of_the_cpu(what, cuda):
    x, y, index = torch.ones(3, device=cuda), torch.ones(3), torch.tensor([0, 2])
    with pytest.raises(RuntimeError, match=r"same device|cannot be changed"):
        REFUSED[what](x, y, index)


def test_becomes_no_array_before_it_is_on_the_cpu(cuda):
    x = torch.ones(3, device=cuda)
    for make in (x.numpy, lambda: np.asarray(x), lambda: np.stack([x, x])):
        with pytest.raises(TypeError, match="cpu"):
            make()


def test_allows_what_a_gpu_allows(cuda):
    x, index = torch.tensor([1.0, 2.0, 3.0], device=cuda), torch.tensor([0, 2])
    assert x[index].tolist() == [1.0, 3.0]
    assert (x * torch.tensor(2.0)).tolist() == [2.0, 4.0, 6.0]
    x[index] = torch.tensor(0.0)
    assert x.tolist() == [0.0, 2.0, 0.0]
    x.copy_(torch.ones(3))
    assert torch.zeros(3).copy_(x).tolist() == x.tolist() == [1.0, 1.0, 1.0]


def test_is_not_for_the_kernels(cuda):
    qkv, k = torch.rand(4, 2, 24, device=cuda), torch.zeros(2, device=cuda)
    assert not fused.usable(qkv)
    assert not fused.usable(torch.zeros(1), k)
    with pytest.raises(RuntimeError, match="kernels"):
        torch.ops.gyroformer.gyro_sum(qkv, qkv, k)


def test_gradients_and_adam(cuda):
    torch.manual_seed(0)
    modules = [nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)) for _ in range(2)]
    modules[1].load_state_dict(modules[0].state_dict())
    modules[1].to(cuda)
    assert all(isinstance(p, StandIn) and isinstance(p, nn.Parameter) for p in modules[1].parameters())
    results = []
    for module, device in zip(modules, ("cpu", cuda), strict=True):
        optimizer, x = torch.optim.Adam(module.parameters()), torch.ones(2, 3, requires_grad=True)
        for _ in range(2):
            optimizer.zero_grad()
            module(x.to(device)).sum().backward()
            optimizer.step()
        results.append((x.grad, {name: real(t) for name, t in module.state_dict().items()}))
    assert torch.equal(results[0][0], results[1][0])
    for name, value in results[0][1].items():
        assert torch.equal(value, results[1][1][name])


def test_a_module_comes_and_goes(cuda):
    module = nn.Linear(2, 2)
    before = copy.deepcopy(module.state_dict())
    module.to(cuda).load_state_dict(before)
    assert isinstance(module.weight, StandIn)
    assert type(module.to("cpu").weight) is nn.Parameter
    assert torch.equal(module.weight, before["weight"])


def test_sparse_tensors(cuda):
    dense = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    indices, values = torch.tensor([[0, 1], [1, 0]]), torch.tensor([2.0, 3.0])
    made = torch.sparse_coo_tensor(
        indices, values, (2, 2), device=cuda, is_coalesced=True, check_invariants=False
    )
    for sparse in (made, dense.to_sparse().to(cuda)):
        assert sparse.layout == torch.sparse_coo
        assert sparse.indices().tolist() == [[0, 1], [1, 0]]
        x = torch.ones(2, 2, device=cuda, requires_grad=True)
        (sparse @ x).square().sum().backward()
        assert x.grad.tolist() == (2 * dense.mT @ dense @ torch.ones(2, 2)).tolist()
