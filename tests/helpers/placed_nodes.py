"""A model that is nothing but its points."""

import torch

from gyroformer.ops.positions import StereographicPositions


class Placed(torch.nn.Module):
    """Nodes at given tangent vectors of a product of two spaces."""

    def __init__(self, nodes, k=(-1.0, 0.5)):
        super().__init__()
        torch.manual_seed(0)
        self.u = torch.nn.Parameter(0.5 * torch.randn(nodes, len(k), 3).double())
        self.k = torch.nn.Parameter(torch.tensor(k).double().unsqueeze(-1))

    def positions(self, data):
        return StereographicPositions.from_tangent(self.u, self.k)
