"""The feature map of linear attention."""

import math

import torch
from torch import Tensor


def feature_floor(dtype: torch.dtype) -> float:
    """Return the x below which ELU(x) + 1 = exp(x) counts as at it: products of four features stay normal."""
    return math.log(torch.finfo(dtype).tiny) / 4


def feature_map(x: Tensor) -> Tensor:
    """Return ELU(x) + 1, the positive feature map of linear attention, without the cancellation of exp(x) - 1 + 1.

    Its floor (about 3e-10 in float32) keeps every weight positive, so that no row of attention is empty.
    """
    return torch.where(x > 0, x + 1, x.clamp(feature_floor(x.dtype), 0).exp())
