"""Graphs made up for tests: small, some with labels that the features tell."""

import torch
from torch_geometric.data import Data


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
