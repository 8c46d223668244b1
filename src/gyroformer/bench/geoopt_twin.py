"""The same model composed of geoopt's functions, in the manner of published code; a yardstick, not a layer.

Every step goes through points: a logarithm, a flat map, an exponential and a projection; attention divides the
lifted values by λ - 1 and halves the mean with a Möbius product.
"""

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from gyroformer.errors import MissingPartError
from gyroformer.nn.transformer import StereographicBlock, StereographicTransformer
from gyroformer.ops.feature_map import feature_map


def geoopt_math() -> Any:
    """Return geoopt's functions of the stereographic model."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import geoopt.manifolds.stereographic.math as functions
    except ImportError as error:
        raise MissingPartError("geoopt", "test", "the geoopt-composed twin") from error
    return functions


class GeooptTransformer(nn.Module):
    """A :class:`StereographicTransformer` evaluated with geoopt's functions; it shares that model's parameters."""

    def __init__(self, model: StereographicTransformer) -> None:
        super().__init__()
        self.model = model
        self.functions = geoopt_math()

    def forward(self, tokens: Tensor) -> Tensor:
        """Return points ``(N, heads, d)`` for tokens ``(N, dim)``."""
        g, heads = self.functions, self.model.heads
        x = tokens.unflatten(-1, (heads, -1))
        previous = None
        for block in self.model.blocks:
            assert isinstance(block, StereographicBlock)
            k = block.attention.space()
            # from the space of the last block to this one, through the shared tangent space
            tangent = x if previous is None else g.logmap0(x, k=previous)
            x = g.project(g.expmap0(tangent, k=k), k=k)
            x = self._add(self._attention(block, self._on_tangents(block.norm1, x, k), k), x, k)
            normed = self._on_tangents(block.norm2, x, k)
            up = self._on_tangents(block.ffn.up, normed, k)
            down = self._on_tangents(block.ffn.down, self._on_tangents(block.ffn.activation, up, k), k)
            x = self._add(down, x, k)
            previous = k
        return x

    def _on_tangents(self, f: Any, x: Tensor, k: Tensor) -> Tensor:
        g = self.functions
        heads = self.model.heads
        joined = f(g.logmap0(x, k=k).flatten(-2))
        return g.project(g.expmap0(joined.unflatten(-1, (heads, -1)), k=k), k=k)

    def _add(self, p: Tensor, x: Tensor, k: Tensor) -> Tensor:
        return self.functions.project(self.functions.mobius_add(p, x, k=k), k=k)

    def _attention(self, block: StereographicBlock, x: Tensor, k: Tensor) -> Tensor:
        g = self.functions
        flat = g.logmap0(x, k=k).flatten(-2)
        query, key, value = block.attention.qkv(flat).unflatten(-1, (3, self.model.heads, -1)).unbind(-3)
        value = g.project(g.expmap0(value, k=k), k=k)
        query, key = (g.parallel_transport0back(value, t, k=k) for t in (query, key))
        scale = g.lambda_x(value, k=k, keepdim=True)
        key = feature_map(key) * (scale - 1)
        lifted = scale / (scale - 1) * value
        query, key, lifted = (t.transpose(0, 1) for t in (feature_map(query), key, lifted))  # (H, N, d)
        mean = (query @ (key.mT @ lifted)) / (query @ key.sum(-2).unsqueeze(-1))
        half = torch.tensor(0.5, dtype=x.dtype)
        middle = g.mobius_scalar_mul(half, mean.transpose(0, 1), k=k)
        return self._on_tangents(block.attention.out, g.project(middle, k=k), k)
