"""What the curved and the flat Transformer share: a stack of blocks over tangent vectors, and its checks."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from gyroformer.errors import UsageError
from gyroformer.nn.functional import check_mask


class Encoder(nn.Module):
    """A stack of blocks with a method ``tangent``; subclasses choose the blocks.

    Args:
        dim: width of the tokens, all heads together.
        heads: number of heads.
        attention: the blocks' kind of attention.
        blocks: the blocks.
        final_norm: whether to normalise the last block's result.
    """

    def __init__(
        self, dim: int, heads: int, *, attention: str, blocks: Iterable[nn.Module], final_norm: bool
    ) -> None:
        super().__init__()
        self.dim, self.heads, self.kind = dim, heads, attention
        self.blocks = nn.ModuleList(blocks)
        self.final_norm = nn.LayerNorm(dim) if final_norm else nn.Identity()

    def tangent(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        segment: Tensor | None = None,
        count: int | None = None,
    ) -> Tensor:
        """Return the result as tangent vectors at the origin, ``(..., heads, d)``.

        Args:
            tokens: tangent vectors at the origin, ``(N, dim)`` or ``(B, N, dim)``.
            mask: ``(B, N)``, True for real tokens; padding leaves no trace and comes out as zero.
            segment: ``(N,)``, the sequence of each token, for many sequences in one row without padding
                (linear attention, ``tokens (N, dim)``).
            count: number of sequences in ``segment``.
        """
        self._check(tokens, mask, segment, count)
        u = tokens if tokens.dim() == 3 else tokens.unsqueeze(0)
        for block in self.blocks:
            u = block.tangent(u, mask, segment, count)  # type: ignore[operator]
        u = self.final_norm(u)
        if mask is not None:
            u = torch.where(mask.unsqueeze(-1), u, 0.0)
        return (u if tokens.dim() == 3 else u.squeeze(0)).unflatten(-1, (self.heads, -1))

    def _check(self, tokens: Tensor, mask: Tensor | None, segment: Tensor | None, count: int | None) -> None:
        if tokens.dim() not in (2, 3) or tokens.size(-1) != self.dim:
            raise UsageError(
                f"tokens must be (N, {self.dim}) or (B, N, {self.dim}); got {tuple(tokens.shape)}"
            )
        if tokens.size(-2) == 0:
            raise UsageError("there are no tokens: an empty graph or sequence cannot be encoded")
        if mask is not None and tokens.dim() != 3:
            raise UsageError(f"a mask needs tokens (B, N, {self.dim}); got {tuple(tokens.shape)}")
        check_mask(mask, (tokens.size(0), tokens.size(1)))
        if segment is not None and (tokens.dim() != 2 or self.kind != "linear" or count is None):
            raise UsageError(
                "a ragged row of sequences needs tokens (N, dim), linear attention and their count"
            )
