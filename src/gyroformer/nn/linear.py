"""Linear maps, activations and normalisation of points."""

from jaxtyping import Float
from torch import Tensor, nn

from gyroformer.nn.curvature import PointLayer
from gyroformer.nn.tangent import ACTIVATIONS, TangentLinear
from gyroformer.options import takes
from gyroformer.options.layers import ActivationOptions, LayerNormOptions, LinearOptions


class StereographicLinear(PointLayer):
    r"""The stereographic linear layer, :math:`\exp_0(W \log_0 x + b)`; it mixes the heads."""

    @takes(LinearOptions)
    def __init__(self, options: LinearOptions) -> None:
        super().__init__(options.heads, options)
        self.linear = TangentLinear(
            options.in_features,
            options.out_features,
            bias=options.bias,
            weight_dropout=options.weight_dropout,
        )

    def tangent(self, u: Float[Tensor, "*B dim"]) -> Float[Tensor, "*B dim_out"]:
        """Return the linear map of tangent vectors."""
        return self.linear(u)


class StereographicActivation(PointLayer):
    r"""An activation of points, :math:`\exp_0(f(\log_0 x))`."""

    @takes(ActivationOptions)
    def __init__(self, options: ActivationOptions) -> None:
        super().__init__(options.heads, options)
        self.activation = ACTIVATIONS[options.activation]

    def tangent(self, u: Float[Tensor, "*B dim"]) -> Float[Tensor, "*B dim"]:
        """Return the activation of tangent vectors."""
        return self.activation(u)


class StereographicLayerNorm(PointLayer):
    r"""Layer normalisation, :math:`\exp_0(\mathrm{LN}(\log_0 x))`, over the joined tangent vector of all heads."""

    @takes(LayerNormOptions)
    def __init__(self, options: LayerNormOptions) -> None:
        super().__init__(options.heads, options)
        self.norm = nn.LayerNorm(options.dim)

    def tangent(self, u: Float[Tensor, "*B dim"]) -> Float[Tensor, "*B dim"]:
        """Return the normalised tangent vectors."""
        return self.norm(u)
