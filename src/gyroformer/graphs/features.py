r"""Node features prepared for a model: entries rescaled, mixed over hops, rows brought to one size.

The size matters most. A Transformer adds identifiers of unit size to the features, and words that are
normalised to sum to 1 in each row are then fifty times smaller: the layer norm removes them.
"""

from typing import Literal

import torch
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.graphs.hops import joined_hops, mix_hops, ppr_mix
from gyroformer.options.features import FeatureOptions

#: what a table of features holds: counts of words, a few measured numbers, or vectors of many
Kind = Literal["words", "numbers", "vectors"]
#: what ``"auto"`` is
AUTO: dict[Kind, str] = {"words": "row", "numbers": "zscore", "vectors": "zscore"}
#: columns up to which numbers are few
FEW = 64
#: columns that ``"quantile"`` makes of each; 16 to 256 do about as well on Airport (docs/log.md)
STEPS = 64
#: entries that ``"quantile"`` may make in all, a quarter of a gigabyte, which mixing side by side repeats
MOST = 2**26


def prepared_features(
    x: Tensor, edge_index: Tensor, options: FeatureOptions, weight: Tensor | None = None
) -> Tensor:
    """Return the features ``(N, F)`` prepared; ``"joined"`` mixing gives ``(N, (hops + 1) F)``.

    Args:
        x: features.
        edge_index: the edges that they are mixed over.
        options: how.
        weight: positive weights of the edges.
    """
    return _sized(_mixed(_entries(x, options.entries), edge_index, options, weight), options)


def _entries(x: Tensor, kind: str) -> Tensor:
    match AUTO[kind_of_features(x)] if kind == "auto" else kind:
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
        case "quantile":
            return _along_quantiles(_near_one(x, dim=0))
    return x


def kind_of_features(x: Tensor) -> Kind:
    """Return what a table looks like: most entries of words are 0, and none is negative; numbers are few and fit."""
    if bool((x >= 0).all()) and float((x == 0).double().mean()) > 0.5:
        return "words"
    return "numbers" if x.size(1) <= FEW and x.numel() * STEPS <= MOST else "vectors"


def _along_quantiles(x: Tensor) -> Tensor:
    r"""Return how far each entry has come on each step between quantiles of its column, ``(N, F STEPS)``.

    With :math:`q_0 \le \ldots \le q_S` evenly spaced among a column's sorted entries, an entry :math:`x` becomes
    :math:`\min(\max((x - q_{s-1}) / (q_s - q_{s-1}), 0), 1)` for :math:`s = 1, \ldots, S`, and 0 on a step without
    length. A linear map of these is any piecewise linear function of the number, however sharp, where one of the
    number itself is a straight line (piecewise linear encoding: Gorishniy, Rubachev and Babenko, 2022).
    """
    nodes, columns = x.shape
    if x.numel() * STEPS > MOST:
        raise UsageError(
            f"entries quantile makes {STEPS} columns of each, a table of {nodes:,} x {columns * STEPS:,} here; it is "
            "for a few measured numbers: choose zscore, or row or binary for words"
        )
    if not nodes:
        return x.new_zeros(0, columns * STEPS)
    places = torch.arange(STEPS + 1, device=x.device) * (nodes - 1) // STEPS
    quantiles = x.sort(dim=0).values[places].T
    begin, length = quantiles[:, :-1], quantiles.diff(dim=1)
    come = (x[:, :, None] - begin).div_(torch.where(length > 0, length, 1.0)).clamp_(0, 1)
    return come.mul_(length > 0).flatten(1)


def _mixed(x: Tensor, edge_index: Tensor, options: FeatureOptions, weight: Tensor | None) -> Tensor:
    matrix = {"norm": options.norm, "loops": options.loops, "weight": weight}
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
