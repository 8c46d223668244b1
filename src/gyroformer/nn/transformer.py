"""The Transformer on products of stereographic spaces, for any sequence."""

from collections.abc import Sequence

import torch
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.geometry import expmap0
from gyroformer.nn.block import StereographicBlock
from gyroformer.nn.curvature import HeadCurvature, head_width
from gyroformer.nn.encoder import Encoder

InitialCurvature = float | Sequence[float] | Sequence[Sequence[float]]


class StereographicTransformer(Encoder):
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
        head_width(dim, heads)
        blocks = [
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
        ]
        super().__init__(dim, heads, attention=attention, blocks=blocks, final_norm=final_norm)

    @property
    def curvatures(self) -> Tensor:
        """All curvatures, ``(layers, heads)``."""
        return torch.stack([space().squeeze(-1) for space in self._spaces()])

    @property
    def output_curvature(self) -> Tensor:
        """The curvatures of the space that the result lies in, ``(heads, 1)``."""
        return self._spaces()[-1]()

    def _spaces(self) -> list[HeadCurvature]:
        return [module for module in self.modules() if isinstance(module, HeadCurvature)]

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor | None = None,
        segment: Tensor | None = None,
        count: int | None = None,
    ) -> Tensor:
        """Return points ``(..., heads, d)`` of the last block's space; arguments as in ``tangent``."""
        return expmap0(self.tangent(tokens, mask, segment, count), k=self.output_curvature)


def _initial(curvature: InitialCurvature, layers: int, heads: int) -> list[list[float]]:
    """Return the initial curvatures as ``layers`` lists of ``heads`` numbers."""
    if layers < 1:
        raise UsageError(f"layers must be at least 1, got {layers}")
    try:
        values = torch.tensor(curvature, dtype=torch.float64).expand(layers, heads)
    except (RuntimeError, ValueError, TypeError):
        raise UsageError(
            f"curvature must be a number, {heads} numbers or {layers} lists of {heads}; got {curvature!r}"
        ) from None
    return values.tolist()
