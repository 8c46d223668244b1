"""What our layers are measured beside: flat Transformers as lean as they can be written, and torch's own.

They share no code with ours, so that nothing that slows ours down slows them down too.
"""

import torch.nn.functional as F
from torch import Tensor, nn


class LeanBlock(nn.Module):
    """A pre-norm block with linear attention of the feature map ELU + 1, and nothing but what it computes."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, u: Tensor) -> Tensor:
        """Return ``(N, dim)`` for ``(N, dim)``."""
        query, key, value = self.qkv(self.norm1(u)).unflatten(-1, (3, self.heads, -1)).permute(1, 2, 0, 3)
        query, key = F.elu(query) + 1, F.elu(key) + 1
        length = query @ key.sum(1).unsqueeze(-1)
        mixed = query @ (key.mT @ value) / length
        u = u + self.out(mixed.transpose(0, 1).flatten(1))
        return u + self.down(F.relu(self.up(self.norm2(u))))


class LeanTransformer(nn.Module):
    """A stack of lean blocks."""

    def __init__(self, dim: int, heads: int, layers: int) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(LeanBlock(dim, heads) for _ in range(layers)))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``(N, dim)`` for ``(N, dim)``."""
        found: Tensor = self.blocks(tokens)
        return found


class TorchTransformer(nn.Module):
    """torch's own encoder with softmax attention, of the same sizes: pre-norm, ReLU, no dropout."""

    def __init__(self, dim: int, heads: int, layers: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(dim, heads, dim, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return ``(N, dim)`` for ``(N, dim)``."""
        found: Tensor = self.encoder(tokens.unsqueeze(0)).squeeze(0)
        return found
