"""Graphs made up for tests: small, connected, with labels that the features tell."""

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
