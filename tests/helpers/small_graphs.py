"""Small graphs with a structure that can be learned, as Data and as files."""

import numpy as np
import torch
from torch_geometric.data import Data

from gyroformer.graphs.build import graph_from_edges


def blocks_edges(*, groups=4, size=12, inside=0.6, across=0.02, seed=0):
    """Return the edges of a graph of groups: many inside, few across."""
    stream = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), size)
    u, v = np.triu_indices(group.size, 1)
    joined = stream.random(u.size) < np.where(group[u] == group[v], inside, across)
    return u[joined], v[joined], group


def blocks_graph(*, features=0, ids=None, **options):
    """Return that graph with its groups as labels and, if asked for, noisy features that tell them."""
    u, v, group = blocks_edges(**options)
    x = None
    if features:
        noise = torch.randn(group.size, features, generator=torch.Generator().manual_seed(1))
        x = noise + 2 * torch.nn.functional.one_hot(torch.from_numpy(group) % features, features)
    return graph_from_edges(u, v, num_nodes=group.size, x=x, y=group, ids=ids)


def write_blocks(folder, *, prefix="n", **options):
    """Write edges.csv, features.csv and labels.csv of such a graph; nodes are called n0, n1, ...; return the paths."""
    data = blocks_graph(features=4, **options)
    names = [f"{prefix}{i}" for i in range(data.num_nodes)]
    once = data.edge_index[:, data.edge_index[0] < data.edge_index[1]].mT.tolist()
    paths = [folder / name for name in ("edges.csv", "features.csv", "labels.csv")]
    paths[0].write_text("source,target\n" + "".join(f"{names[u]},{names[v]}\n" for u, v in once))
    rows = [
        "id,a,b,c,d",
        *(f"{n},{','.join(map(str, row))}" for n, row in zip(names, data.x.tolist(), strict=True)),
    ]
    paths[1].write_text("\n".join(rows) + "\n")
    words = ["red", "green", "blue", "white"]
    rows = ["id,label", *(f"{n},{words[label]}" for n, label in zip(names, data.y.tolist(), strict=True))]
    paths[2].write_text("\n".join(rows) + "\n")
    return paths


def labelled_graph(nodes=40, classes=3, features=6, seed=0):
    """Return a graph of communities: neighbours are mostly of one class, features lean to the class."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(nodes) % classes
    same = y[:, None] == y[None, :]
    chance = torch.where(same, 0.3, 0.03)
    upper = torch.triu(torch.rand(nodes, nodes, generator=generator) < chance, diagonal=1)
    ring = torch.arange(nodes)
    upper[ring[:-1], ring[1:]] = True
    source, target = upper.nonzero().mT
    edge_index = torch.cat((torch.stack((source, target)), torch.stack((target, source))), 1)
    x = torch.randn(nodes, features, generator=generator)
    x[torch.arange(nodes), y] += 2.0
    return Data(x=x, y=y, edge_index=edge_index, num_nodes=nodes)


def write_tree(path, branching=3, height=4):
    """Write the edges of a tree to a CSV file; return the path and the number of nodes."""
    edges, last, level = [], 0, [0]
    for _ in range(height - 1):
        below = []
        for node in level:
            for _ in range(branching):
                last += 1
                edges.append((f"n{node}", f"n{last}"))
                below.append(last)
        level = below
    path.write_text("source,target\n" + "".join(f"{u},{v}\n" for u, v in edges))
    return path, last + 1


def graph(nodes=12, *, features=3, seed=0, share=0.4):
    """Return a random undirected graph with that share of all pairs as edges and normal features."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.combinations(torch.arange(nodes))
    pairs = pairs[torch.rand(len(pairs), generator=generator) < share].mT
    edge_index = torch.cat((pairs, pairs.flip(0)), 1)
    x = torch.randn(nodes, features, generator=generator) if features else None
    return Data(x=x, edge_index=edge_index, num_nodes=nodes)


def without_edges(nodes, *, features=3, same=False):
    """Return a graph without edges; with ``same`` all nodes have one node's features."""
    data = graph(nodes, features=features, share=0.0)
    if same:
        data.x = data.x[:1].expand(nodes, -1).clone()
    return data


def communities(groups, size, *, seed=0):
    """Return a graph of groups with many edges inside and few between, noisy features, and each node's group."""
    generator = torch.Generator().manual_seed(seed)
    label = torch.arange(groups * size) % groups
    pairs = torch.combinations(torch.arange(groups * size))
    chance = torch.where(label[pairs[:, 0]] == label[pairs[:, 1]], 0.6, 0.05)
    pairs = pairs[torch.rand(len(pairs), generator=generator) < chance].mT
    noise = torch.randn(groups * size, 2 * groups, generator=generator)
    x = noise + 2 * torch.eye(groups, 2 * groups)[label]
    return Data(x=x, edge_index=torch.cat((pairs, pairs.flip(0)), 1), num_nodes=groups * size, y=label)


def renumbered(data, order):
    """Return the graph with node ``order[i]`` as node i and its edges shuffled; what it carries goes along."""
    place = order.argsort()
    moved = Data(num_nodes=data.num_nodes)
    for key, value in data:
        if "index" in key:
            moved[key] = place[value][..., torch.randperm(value.size(-1))]
        elif key != "num_nodes":
            moved[key] = value[order] if data.is_node_attr(key) else value
    return moved
