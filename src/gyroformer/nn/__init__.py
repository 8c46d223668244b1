"""Layers on products of stereographic spaces. Points are ``(..., heads, dim // heads)``.

Every layer can be used alone: it takes points and returns points of one space, whose curvature it owns. Inside
a block the same layers work on tangent vectors at the origin (their method ``tangent``), so that a chain of
them costs one logarithm and one exponential in all.
"""

from gyroformer.nn import functional
from gyroformer.nn.attention import StereographicAttention
from gyroformer.nn.encoder import StereographicEncoder
from gyroformer.nn.linear import StereographicActivation, StereographicLayerNorm, StereographicLinear
from gyroformer.nn.logits import StereographicLogits
from gyroformer.nn.transformer import StereographicBlock, StereographicTransformer

__all__ = [
    "StereographicActivation",
    "StereographicAttention",
    "StereographicBlock",
    "StereographicEncoder",
    "StereographicLayerNorm",
    "StereographicLinear",
    "StereographicLogits",
    "StereographicTransformer",
    "functional",
]
