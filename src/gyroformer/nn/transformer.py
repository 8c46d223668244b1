"""The Transformer on products of stereographic spaces, for any sequence."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gyroformer.errors import UsageError
from gyroformer.geometry import expmap0
from gyroformer.nn.block import StereographicBlock
from gyroformer.nn.curvature import head_width
from gyroformer.nn.functional import check_mask

InitialCurvature = float | Sequence[float] | Sequence[Sequence[float]]


class StereographicTransformer(nn.Module):
    r"""A stack of product-stereographic blocks, each with its own curvatures; a drop-in for an encoder.

    Tokens are tangent vectors at the origin. Between blocks of different curvature a point keeps its tangent
    vector, :math:`\exp_0^{\kappa'} \circ \log_0^{\kappa}`, so nothing is to be computed there.

    Example:
        >>> encoder = StereographicTransformer(16, heads=2, layers=1)
        >>> encoder(torch.randn(100, 16)).shape
        torch.Size([100, 2, 8])

    Args:
        dim: width of the tokens, all heads together.
        heads: number of heads; they must divide ``dim``.
        layers: number of blocks.
        ffn_dim: inner width of the feed-forward parts; ``dim`` when absent.
        attention: ``"linear"`` (time and memory linear in the number of tokens) or ``"softmax"``.
        norm: whether to normalise before each part.
        final_norm: whether to normalise the last block's result in the tangent space.
        dropout: share of values dropped.
        dropout_kind: ``"tangent"`` drops coordinates of tangent vectors, ``"weight"`` entries of the weights.
        activation: one of relu, elu, tanh, sigmoid, gelu.
        curvature: initial value: one for all, one for each head, or one list of these for each layer.
        learn_curvature: whether training changes the curvatures.
        share_curvature: one curvature for all heads of a layer.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        layers: int,
        *,
        ffn_dim: int | None = None,
        attention: str = "linear",
        norm: bool = True,
        final_norm: bool = False,
        dropout: float = 0.0,
        dropout_kind: str = "tangent",
        activation: str = "relu",
        curvature: InitialCurvature = 0.0,
        learn_curvature: bool = True,
        share_curvature: bool = False,
    ) -> None:
        super().__init__()
        if layers < 1:
            raise UsageError(f"layers must be at least 1, got {layers}")
        head_width(dim, heads)
        self.dim = dim
        self.blocks = nn.ModuleList(
            StereographicBlock(
                dim,
                heads,
                ffn_dim=ffn_dim,
                attention=attention,
                norm=norm,
                dropout=dropout,
                dropout_kind=dropout_kind,
                activation=activation,
                curvature=initial,
                learn_curvature=learn_curvature,
                share_curvature=share_curvature,
            )
            for initial in _initial(curvature, layers, heads)
        )
        self.final_norm = nn.LayerNorm(dim) if final_norm else nn.Identity()

    @property
    def heads(self) -> int:
        """Number of heads."""
        return self._last().heads

    @property
    def curvatures(self) -> Tensor:
        """All curvatures, ``(layers, heads)``."""
        return torch.stack([self._block(i).curvature for i in range(len(self.blocks))])

    @property
    def output_curvature(self) -> Tensor:
        """The curvatures of the space that the result lies in, ``(heads, 1)``."""
        return self._last().attention.space()

    def tangent(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        segment: Tensor | None = None,
        count: int | None = None,
    ) -> Tensor:
        """Return the result as tangent vectors at the origin, ``(..., heads, d)``; arguments as in ``forward``."""
        self._check(tokens, mask, segment)
        u = tokens if tokens.dim() == 3 else tokens.unsqueeze(0)
        for i in range(len(self.blocks)):
            u = self._block(i).tangent(u, mask, segment, count)
        u = self.final_norm(u)
        if mask is not None:
            u = torch.where(mask.unsqueeze(-1), u, 0.0)
        return (u if tokens.dim() == 3 else u.squeeze(0)).unflatten(-1, (self.heads, -1))

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        segment: Tensor | None = None,
        count: int | None = None,
    ) -> Tensor:
        """Return points ``(..., heads, d)`` of the last block's space.

        Args:
            tokens: tangent vectors at the origin, ``(N, dim)`` or ``(B, N, dim)``.
            mask: ``(B, N)``, True for real tokens; padding leaves no trace and comes out at the origin.
            segment: ``(N,)``, the sequence of each token, for many sequences in one row without padding
                (linear attention, ``tokens (N, dim)``).
            count: number of sequences in ``segment``.
        """
        return expmap0(self.tangent(tokens, mask, segment, count), k=self.output_curvature)

    def _check(self, tokens: Tensor, mask: Tensor | None, segment: Tensor | None) -> None:
        if tokens.dim() not in (2, 3) or tokens.size(-1) != self.dim:
            raise UsageError(
                f"tokens must be (N, {self.dim}) or (B, N, {self.dim}); got {tuple(tokens.shape)}"
            )
        if tokens.size(-2) == 0:
            raise UsageError("there are no tokens: an empty graph or sequence cannot be encoded")
        if mask is not None and tokens.dim() != 3:
            raise UsageError(f"a mask needs tokens (B, N, {self.dim}); got {tuple(tokens.shape)}")
        check_mask(mask, (tokens.size(0), tokens.size(1)))
        if segment is not None and (tokens.dim() != 2 or self._last().attention.kind != "linear"):
            raise UsageError("a ragged row of sequences needs tokens (N, dim) and linear attention")

    def _block(self, index: int) -> StereographicBlock:
        block = self.blocks[index]
        assert isinstance(block, StereographicBlock)
        return block

    def _last(self) -> StereographicBlock:
        return self._block(len(self.blocks) - 1)


def _initial(curvature: InitialCurvature, layers: int, heads: int) -> list[list[float]]:
    """Return the initial curvatures as ``layers`` lists of ``heads`` numbers."""
    try:
        values = torch.tensor(curvature, dtype=torch.float64).expand(layers, heads)
    except (RuntimeError, ValueError, TypeError):
        raise UsageError(
            f"curvature must be a number, {heads} numbers or {layers} lists of {heads}; got {curvature!r}"
        ) from None
    return values.tolist()
