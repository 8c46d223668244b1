"""Checks that several models share beside the contract of all, as functions that take the way to build one."""

import torch
import torch.nn.functional as F
from torch_geometric.data import Data


def small_graph(nodes=12, *, features=3, seed=0, share=0.3, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.combinations(torch.arange(nodes))
    pairs = pairs[torch.rand(len(pairs), generator=generator) < share].mT
    x = torch.randn(nodes, features, generator=generator).to(dtype)
    return Data(x=x, edge_index=torch.cat((pairs, pairs.flip(0)), 1), num_nodes=nodes)


def dense_adjacency(data, *, norm="sym"):
    """The normalised adjacency with loops, written without the package."""
    a = torch.eye(data.num_nodes, dtype=data.x.dtype)
    a[data.edge_index[0], data.edge_index[1]] = 1
    degree = a.sum(1)
    return a / degree[:, None] if norm == "row" else a / (degree[:, None] * degree).sqrt()


def check_training(build, *, steps=500, rate=5e-2):
    """Train scores and places in turn at a high rate in float32; return the model."""
    torch.manual_seed(0)
    data = small_graph(20, share=0.15)
    model = build(3, classes=4, layers=2)
    model.prepare(data)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    target = torch.arange(20) % 4
    near = data.edge_index
    far = torch.randint(0, 20, near.shape, generator=torch.Generator().manual_seed(1))
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        if step % 2:
            loss = F.cross_entropy(model.scores(data), target)
        else:
            places = model.positions(data)
            apart = F.relu(9 - places.pair_squared_dist(*far)).mean()
            loss = places.pair_squared_dist(*near).mean() + apart
        loss.backward()
        assert torch.isfinite(loss)
        assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())
        optimizer.step()
        losses.append(loss.item())
    # the two kinds of loss in turn; at this learning rate they jump, and the better steps tell
    assert sum(min(losses[kind + steps // 2 :: 2]) for kind in (0, 1)) < losses[0] + losses[1]
    return model


def check_curvature_gradient(model, data, classes=4):
    """Compare the derivative in every curvature parameter with finite differences."""

    def loss():
        rows = model.positions(data).squared_dist_rows(torch.arange(data.num_nodes))
        target = torch.arange(data.num_nodes) % classes
        return F.cross_entropy(model(data), target) + 0.1 * rows.mean()

    loss().backward()
    step = 1e-4
    for layer in model.layers:
        curvature = layer.space.curvature
        for head in range(curvature.numel()):
            with torch.no_grad():
                centre = curvature[head].clone()
                values = []
                for shift in (-2, -1, 1, 2):
                    curvature[head] = centre + shift * step
                    values.append(loss())
                curvature[head] = centre
            a, b, c, d = values
            expected = (a - 8 * b + 8 * c - d) / (12 * step)
            assert abs(expected) > 1e-6
            torch.testing.assert_close(curvature.grad[head], expected, rtol=1e-6, atol=1e-9)
