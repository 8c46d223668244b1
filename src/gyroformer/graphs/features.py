r"""Node features prepared for a model: entries rescaled, mixed over hops, rows brought to one size.

The size matters most. A Transformer adds identifiers of unit size to the features, and words that are
normalised to sum to 1 in each row are then fifty times smaller: the layer norm removes them.
"""

import torch
from torch import Tensor

from gyroformer.graphs.hops import joined_hops, mix_hops, ppr_mix
from gyroformer.options.features import FeatureOptions


def prepared_features(x: Tensor, edge_index: Tensor, options: FeatureOptions) -> Tensor:
    """Return the features ``(N, F)`` prepared; ``"joined"`` mixing gives ``(N, (hops + 1) F)``."""
    return _sized(_mixed(_entries(x, options.entries), edge_index, options), options)


def _entries(x: Tensor, kind: str) -> Tensor:
    match _counts_or_measures(x) if kind == "auto" else kind:
        case "binary":
            return (x != 0).to(x.dtype)
        case "row":
            x = _near_one(x, dim=1)
            return _divided(x, x.abs().sum(1, keepdim=True))
        case "l2":
            x = _near_one(x, dim=1)
            return _divided(x, torch.linalg.vector_norm(x, dim=1, keepdim=True))
        case "zscore":
            x = _near_one(x, dim=0)
            centred = _near_one(x - x.mean(0), dim=0)
            return _divided(centred, centred.square().mean(0).sqrt())
    return x


def _counts_or_measures(x: Tensor) -> str:
    """Return ``"row"`` for a table that looks like counts of words, else ``"zscore"``."""
    return "row" if bool((x >= 0).all()) and float((x == 0).double().mean()) > 0.5 else "zscore"


def _mixed(x: Tensor, edge_index: Tensor, options: FeatureOptions) -> Tensor:
    matrix = {"norm": options.norm, "loops": options.loops}
    match options.mixing:
        case "power":
            return mix_hops(x, edge_index, options.hops, **matrix)  # type: ignore[arg-type]
        case "ppr":
            return ppr_mix(x, edge_index, options.alpha, options.hops, **matrix)  # type: ignore[arg-type]
        case "joined":
            return torch.cat(joined_hops(x, edge_index, options.hops, **matrix), dim=-1)  # type: ignore[arg-type]
    return x


def _sized(x: Tensor, options: FeatureOptions) -> Tensor:
    if options.size == "none":
        return x
    x = _near_one(x, dim=None if options.size == "rms" else 1)
    length = torch.linalg.vector_norm(x, dim=1, keepdim=True)
    if options.size == "rms":
        length = length.square().mean().sqrt()
    return options.scale * _divided(x, length)


def _near_one(x: Tensor, dim: int | None) -> Tensor:
    """Return ``x`` with its largest entry along ``dim`` (None: of all) brought to [1, 2) by a power of two.

    Squares of entries beyond 1e19 and below 1e-19 are not in float32. A power of two is divided out without rounding:
    ordinary features keep their bits.
    """
    if not x.numel():
        return x
    largest = x.abs().amax() if dim is None else x.abs().amax(dim, keepdim=True)
    mantissa, _ = torch.frexp(largest)
    return _divided(x, largest / (2 * mantissa))


def _divided(x: Tensor, by: Tensor) -> Tensor:
    """Return ``x / by``; what has no size stays as it is."""
    return x / torch.where(by > 0, by, 1.0)
