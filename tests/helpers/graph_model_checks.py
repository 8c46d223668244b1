"""What is true of every graph model, as functions that take the way to build one."""

import torch
import torch.nn.functional as F
from torch_geometric.data import Batch, Data


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


def check_shapes_and_gradients(build, heads, dtype):
    torch.manual_seed(0)
    data = small_graph(dtype=dtype)
    points = build(3).to(dtype)
    assert points(data).shape == (12, heads, 16 // heads)
    assert points(data).dtype == dtype
    points.positions(data).squared_dist_rows(torch.arange(12)).sum().backward()
    scores = build(3, classes=4, layers=2).to(dtype)
    assert scores(data).shape == (12, 4)
    assert scores(data).dtype == dtype
    F.cross_entropy(scores(data), torch.arange(12) % 4).backward()
    for model in (points, scores):
        learned = [p for p in model.parameters() if p.requires_grad]
        assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in learned)
    assert scores.curvatures.shape == (2, heads)


def check_equivariance(build):
    torch.manual_seed(0)
    model = build(3, classes=4, layers=2).double().eval()
    data = small_graph(dtype=torch.float64)
    order = torch.randperm(12)
    # renumbered, in another order, each edge in one direction only, one of them twice and one a loop
    edges = order.argsort()[data.edge_index]
    edges = edges[:, edges[0] < edges[1]]
    edges = torch.cat((edges.flip(1), edges[:, :1], torch.zeros(2, 1).long()), 1)
    moved = Data(x=data.x[order], edge_index=edges, num_nodes=12)
    torch.testing.assert_close(model(moved), model(data)[order], rtol=1e-9, atol=1e-9)
    rows = torch.arange(12)
    before, after = (model.positions(d).squared_dist_rows(rows) for d in (data, moved))
    torch.testing.assert_close(after, before[order][:, order], rtol=1e-7, atol=1e-9)


def check_batch(build):
    torch.manual_seed(0)
    model = build(3, classes=4, layers=2).double().eval()
    graphs = [small_graph(n, seed=n, dtype=torch.float64) for n in (5, 1, 9)]
    together = model(Batch.from_data_list(graphs))
    alone = torch.cat([model(data) for data in graphs])
    torch.testing.assert_close(together, alone, rtol=1e-9, atol=1e-9)
    prepared = Batch.from_data_list([model.prepare(data) for data in graphs])
    torch.testing.assert_close(model(prepared), alone, rtol=1e-9, atol=1e-9)


def check_save_and_load(build, folder):
    torch.manual_seed(0)
    model = build(3, classes=4, layers=2, activation="tanh").eval()
    model.save_pretrained(folder)
    loaded = type(model).from_pretrained(folder)
    data = small_graph()
    assert torch.equal(loaded(data), model(data))
    assert torch.equal(loaded.positions(data).coordinates(), model.positions(data).coordinates())


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
    assert sum(losses[-20:]) < sum(losses[:20])
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
