r"""Node features prepared for a model: entries rescaled, mixed over hops, rows brought to one size.

The size matters most. A Transformer adds identifiers of unit size to the features, and words that are
normalised to sum to 1 in each row are then fifty times smaller: the layer norm removes them.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from gyroformer.errors import UsageError
from gyroformer.graphs.hops import joined_hops, mix_hops, ppr_mix
from gyroformer.options.features import FeatureOptions

#: what a table of features holds: counts of words, a few measured numbers, or vectors of many
Kind = Literal["words", "numbers", "vectors"]
#: what ``"auto"`` is, and ``"suited"`` where steps are not for a table
AUTO: dict[Kind, str] = {"words": "row", "numbers": "zscore", "vectors": "zscore"}
#: columns up to which numbers are few
FEW = 64
#: columns that ``"quantile"`` makes of each; 16 to 256 do about as well on Airport (docs/log.md)
STEPS = 64
#: entries that ``"quantile"`` may make in all, a quarter of a gigabyte, which mixing side by side repeats
MOST = 2**26
#: entries up to which ``"suited"`` makes them: more take longer than the rest of a step, and are for who asks for them
UNASKED = 2**24


class Table(NamedTuple):
    """Features with the graph that they are mixed over.

    Attributes:
        x: the features, ``(N, F)``.
        edge_index: the edges.
        weight: positive weights of the edges; None for edges that count alike.
    """

    x: Tensor
    edge_index: Tensor
    weight: Tensor | None = None


def prepared_features(table: Table, options: FeatureOptions, *, like: Table | None = None) -> Tensor:
    """Return the features ``(N, F)`` prepared; ``"joined"`` mixing gives ``(N, (hops + 1) F)``.

    Args:
        table: the features.
        options: how.
        like: features whose statistics are taken (means, deviations, quantiles, the usual length) in the place of the
            table's own: those that a model was trained on. A row is then prepared alike in whatever company.
    """
    entries = _entries(table.x if like is None else like.x, options.entries)
    mixed = _mixed(entries(table.x), table, options)
    match options.size:
        case "none":
            return mixed
        case "l2":
            mixed = _near_one(mixed, dim=1)
            return options.scale * _divided(mixed, torch.linalg.vector_norm(mixed, dim=1, keepdim=True))
        case "rms":
            usual = mixed if like is None else _mixed(entries(like.x), like, options)
            unit = _unit(usual, dim=None)
            length = torch.linalg.vector_norm(_divided(usual, unit), dim=1).square().mean().sqrt()
            return options.scale * _divided(_divided(mixed, unit), length)


def _entries(like: Tensor, kind: str) -> Callable[[Tensor], Tensor]:
    """Return what rescales the entries of a table, by the statistics of ``like`` where it needs any."""
    match _chosen(like, kind):
        case "binary":
            return lambda x: (x != 0).to(x.dtype)
        case "row":
            return _by_sum
        case "l2":
            return _by_length
        case "zscore":
            return _Standard(like)
        case "quantile":
            return _Quantiles(like)
    return lambda x: x


def _chosen(x: Tensor, kind: str) -> str:
    """Return what is done to the entries of a table, where that is left to the table itself."""
    if kind not in ("auto", "suited"):
        return kind
    found = kind_of_features(x)
    # what has fewer nodes than steps is learned by heart (docs/log.md)
    enough = len(x) >= STEPS * x.size(1) and STEPS * x.numel() <= UNASKED
    return "quantile" if kind == "suited" and found == "numbers" and enough else AUTO[found]


def _by_sum(x: Tensor) -> Tensor:
    x = _near_one(x, dim=1)
    return _divided(x, x.abs().sum(1, keepdim=True))


def _by_length(x: Tensor) -> Tensor:
    x = _near_one(x, dim=1)
    return _divided(x, torch.linalg.vector_norm(x, dim=1, keepdim=True))


class _Standard:
    """Brings the columns of a table to mean 0 and deviation 1; a column without a deviation to mean 0."""

    def __init__(self, x: Tensor) -> None:
        self.unit = _unit(x, dim=0)
        x = _divided(x, self.unit)
        self.mean = x.mean(0)
        centred = x - self.mean
        self.spread = _unit(centred, dim=0)
        self.deviation = _divided(centred, self.spread).square().mean(0).sqrt()

    def __call__(self, x: Tensor) -> Tensor:
        centred = _divided(x, self.unit) - self.mean
        return _divided(_divided(centred, self.spread), self.deviation)


def kind_of_features(x: Tensor) -> Kind:
    """Return what a table looks like: most entries of words are 0, and none is negative; numbers are few and fit."""
    if bool((x >= 0).all()) and float((x == 0).double().mean()) > 0.5:
        return "words"
    return "numbers" if x.size(1) <= FEW and x.numel() * STEPS <= MOST else "vectors"


class _Quantiles:
    r"""Says how far each entry has come on each step between quantiles of its column, ``(N, F STEPS)``.

    With :math:`q_0 \le \ldots \le q_S` evenly spaced among a column's sorted entries, an entry :math:`x` becomes
    :math:`\min(\max((x - q_{s-1}) / (q_s - q_{s-1}), 0), 1)` for :math:`s = 1, \ldots, S`, and 0 on a step without
    length. A linear map of these is any piecewise linear function of the number, however sharp, where one of the
    number itself is a straight line (piecewise linear encoding: Gorishniy, Rubachev and Babenko, 2022).
    """

    def __init__(self, x: Tensor) -> None:
        self.unit = _unit(x, dim=0)
        ordered = _divided(x, self.unit).sort(dim=0).values if len(x) else x.new_zeros(1, x.size(1))
        places = torch.arange(STEPS + 1, device=x.device) * (len(ordered) - 1) // STEPS
        quantiles = ordered[places].T
        self.begin, self.length = quantiles[:, :-1], quantiles.diff(dim=1)

    def __call__(self, x: Tensor) -> Tensor:
        nodes, columns = x.shape
        if x.numel() * STEPS > MOST:
            raise UsageError(
                f"entries quantile makes {STEPS} columns of each, a table of {nodes:,} x {columns * STEPS:,} here; it "
                "is for a few measured numbers: choose zscore, or row or binary for words"
            )
        come = _divided(x, self.unit)[:, :, None] - self.begin
        come = come.div_(torch.where(self.length > 0, self.length, 1.0)).clamp_(0, 1)
        return come.mul_(self.length > 0).flatten(1)


def _mixed(x: Tensor, table: Table, options: FeatureOptions) -> Tensor:
    """Return features ``(N, F)``, rescaled already, mixed over the edges of their table."""
    matrix = {"norm": options.norm, "loops": options.loops, "weight": table.weight}
    edges, hops = table.edge_index, options.hops
    match options.mixing:
        case "power":
            return mix_hops(x, edges, hops, **matrix)  # type: ignore[arg-type]
        case "ppr":
            return ppr_mix(x, edges, options.alpha, hops, **matrix)  # type: ignore[arg-type]
        case "joined":
            return torch.cat(joined_hops(x, edges, hops, **matrix), dim=-1)  # type: ignore[arg-type]
    return x


def _near_one(x: Tensor, dim: int | None) -> Tensor:
    """Return ``x`` with its largest entry along ``dim`` (None: of all) brought to [1, 2) by a power of two."""
    return _divided(x, _unit(x, dim))


def _unit(x: Tensor, dim: int | None) -> Tensor:
    """Return the power of two that brings the largest entry along ``dim`` (None: of all) to [1, 2); 1 for nothing.

    Squares of entries beyond 1e19 and below 1e-19 are not in float32. A power of two is divided out without rounding:
    ordinary features keep their bits.
    """
    if not x.numel():
        return x.new_ones(())
    largest = x.abs().amax() if dim is None else x.abs().amax(dim, keepdim=True)
    mantissa, _ = torch.frexp(largest)
    return largest / (2 * mantissa)


def _divided(x: Tensor, by: Tensor) -> Tensor:
    """Return ``x / by``; what has no size stays as it is."""
    return x / torch.where(by > 0, by, 1.0)
