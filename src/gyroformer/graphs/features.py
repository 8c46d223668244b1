r"""Node features made ready for a model: entries rescaled, mixed over hops, rows brought to one size.

The size matters most. A Transformer adds identifiers of unit size to the features, and words that are
normalised to sum to 1 in each row are then fifty times smaller: the layer norm removes them.
"""

import dataclasses as dc
import math
from typing import Literal

import torch
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.graphs.hops import Norm, joined_hops, mix_hops, ppr_mix


@dc.dataclass(frozen=True, kw_only=True)
class FeatureSettings:
    r"""How node features are made ready.

    Attributes:
        entries: ``"raw"``; ``"binary"``: 1 where there is something; ``"row"``: each row divided by its sum of
            absolute values; ``"l2"``: by its length; ``"zscore"``: each column to mean 0 and deviation 1;
            ``"auto"``: ``"row"`` for a table of counts (most are 0, none negative), else ``"zscore"``.
        mixing: ``"none"``; ``"power"``: the paper's :math:`\hat A^K X`; ``"ppr"``: personalised PageRank;
            ``"joined"``: :math:`[X, \hat A X, \ldots, \hat A^K X]` side by side.
        hops: K, and the number of PageRank steps.
        alpha: the restart probability of PageRank.
        norm: ``"sym"`` or ``"row"`` normalised adjacency.
        loops: whether the adjacency has self-loops.
        size: ``"rms"``: one factor for the whole table, so that the rows' root-mean-square length is ``scale``;
            ``"l2"``: every row gets the length ``scale``; ``"none"``: left as it is.
        scale: the length.
    """

    entries: Literal["auto", "raw", "binary", "row", "l2", "zscore"] = "auto"
    mixing: Literal["none", "power", "ppr", "joined"] = "none"
    hops: int = 10
    alpha: float = 0.1
    norm: Norm = "sym"
    loops: bool = True
    size: Literal["rms", "l2", "none"] = "rms"
    scale: float = 2.0

    def __post_init__(self) -> None:
        if self.hops < 0:
            raise UsageError(f"features.hops cannot be negative, got {self.hops}")
        if not 0 < self.alpha <= 1:
            raise UsageError(f"features.alpha must lie in (0, 1], got {self.alpha}")
        if not (self.scale > 0 and math.isfinite(self.scale)):
            raise UsageError(f"features.scale must be a positive number, got {self.scale}")


def ready_features(x: Tensor, edge_index: Tensor, settings: FeatureSettings) -> Tensor:
    """Return the features ``(N, F)`` made ready; ``"joined"`` mixing gives ``(N, (hops + 1) F)``."""
    return _sized(_mixed(_entries(x, settings.entries), edge_index, settings), settings)


def _entries(x: Tensor, kind: str) -> Tensor:
    match _counts_or_measures(x) if kind == "auto" else kind:
        case "binary":
            return (x != 0).to(x.dtype)
        case "row":
            return _divided(x, x.abs().sum(1, keepdim=True))
        case "l2":
            return _divided(x, torch.linalg.vector_norm(x, dim=1, keepdim=True))
        case "zscore":
            centred = x - x.mean(0)
            return _divided(centred, centred.square().mean(0).sqrt())
    return x


def _counts_or_measures(x: Tensor) -> str:
    """Return ``"row"`` for a table that looks like counts of words, else ``"zscore"``."""
    return "row" if bool((x >= 0).all()) and float((x == 0).double().mean()) > 0.5 else "zscore"


def _mixed(x: Tensor, edge_index: Tensor, settings: FeatureSettings) -> Tensor:
    options = {"norm": settings.norm, "loops": settings.loops}
    match settings.mixing:
        case "power":
            return mix_hops(x, edge_index, settings.hops, **options)  # type: ignore[arg-type]
        case "ppr":
            return ppr_mix(x, edge_index, settings.alpha, settings.hops, **options)  # type: ignore[arg-type]
        case "joined":
            return torch.cat(joined_hops(x, edge_index, settings.hops, **options), dim=-1)  # type: ignore[arg-type]
    return x


def _sized(x: Tensor, settings: FeatureSettings) -> Tensor:
    if settings.size == "none":
        return x
    length = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    if settings.size == "rms":
        length = length.square().mean().sqrt()
    return settings.scale * _divided(x, length)


def _divided(x: Tensor, by: Tensor) -> Tensor:
    """Return ``x / by``; what has no size stays as it is."""
    return x / torch.where(by > 0, by, 1.0)
