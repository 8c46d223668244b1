"""Linear maps and activations of points."""

from collections.abc import Sequence

from torch import Tensor

from gyroformer.nn.curvature import head_width
from gyroformer.nn.tangent import PointLayer, TangentLinear, activation_named


class StereographicLinear(PointLayer):
    r"""The stereographic linear layer, :math:`\exp_0(W \log_0 x + b)`; it mixes the heads.

    Args:
        in_features: width of the input, all heads together.
        out_features: width of the output.
        heads: number of heads.
        bias: whether to add a bias in the tangent space.
        weight_dropout: share of weights set to zero in each training step.
        curvature: initial value, one for all heads or one for each.
        learn_curvature: whether training changes the curvatures.
        share_curvature: one curvature for all heads.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        heads: int = 1,
        bias: bool = True,
        weight_dropout: float = 0.0,
        curvature: float | Sequence[float] = 0.0,
        learn_curvature: bool = True,
        share_curvature: bool = False,
    ) -> None:
        super().__init__(
            heads, curvature=curvature, learn_curvature=learn_curvature, share_curvature=share_curvature
        )
        head_width(in_features, heads, "in_features")
        head_width(out_features, heads, "out_features")
        self.linear = TangentLinear(in_features, out_features, bias=bias, weight_dropout=weight_dropout)

    def tangent(self, u: Tensor) -> Tensor:
        """Return the linear map of tangent vectors."""
        return self.linear(u)


class StereographicActivation(PointLayer):
    r"""An activation of points, :math:`\exp_0(f(\log_0 x))`.

    Args:
        activation: one of relu, elu, tanh, sigmoid, gelu.
        heads: number of heads.
        curvature: initial value, one for all heads or one for each.
        learn_curvature: whether training changes the curvatures.
        share_curvature: one curvature for all heads.
    """

    def __init__(
        self,
        activation: str = "relu",
        *,
        heads: int = 1,
        curvature: float | Sequence[float] = 0.0,
        learn_curvature: bool = True,
        share_curvature: bool = False,
    ) -> None:
        super().__init__(
            heads, curvature=curvature, learn_curvature=learn_curvature, share_curvature=share_curvature
        )
        self.activation = activation_named(activation)

    def tangent(self, u: Tensor) -> Tensor:
        """Return the activation of tangent vectors."""
        return self.activation(u)
