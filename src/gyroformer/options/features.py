"""Options of the preparation of node features."""

from typing import Literal

from gyroformer.options.declare import Options, option

Norm = Literal["sym", "row"]


class FeatureOptions(Options):
    r"""How node features are prepared: entries rescaled, mixed over hops, rows brought to one length.

    ``entries``: ``"raw"``; ``"binary"``: 1 where there is something; ``"row"``: each row divided by its sum of
    absolute values; ``"l2"``: by its length; ``"zscore"``: each column to mean 0 and deviation 1; ``"quantile"``: each
    column as 64 steps between its quantiles, for numbers whose exact value counts; ``"auto"``: ``"row"`` for a table
    of counts (most are 0, none negative), else ``"zscore"``; ``"suited"``: the same, but ``"quantile"`` for a few
    numbers of many nodes (at most 64 columns; at least as many nodes as there are steps in all, and at most 2**18
    numbers in all).

    ``mixing``: ``"none"``; ``"power"``: the paper's :math:`\hat A^K X`; ``"ppr"``: personalised PageRank;
    ``"joined"``: :math:`[X, \hat A X, \ldots, \hat A^K X]` side by side.

    ``size``: ``"rms"``: one factor for the whole table, so that the rows' root-mean-square length is ``scale``;
    ``"l2"``: every row gets the length ``scale``; ``"none"``: left as it is.
    """

    entries: Literal["auto", "suited", "raw", "binary", "row", "l2", "zscore", "quantile"] = option(
        "how the entries of the features are rescaled; suited: by what the table looks like", default="auto"
    )
    mixing: Literal["none", "power", "ppr", "joined"] = option(
        "how features are mixed over the graph: power is the paper's, ppr PageRank, joined side by side",
        default="none",
    )
    hops: int = option("number of steps over which features are mixed", default=10, at_least=0, at_most=1_000)
    alpha: float = option("restart probability of PageRank", default=0.1, above=0, at_most=1)
    norm: Norm = option("normalisation of the adjacency matrix", default="sym", flag="mixing-norm")
    loops: bool = option("whether the adjacency matrix has self-loops", default=True, flag="mixing-loops")
    size: Literal["rms", "l2", "none"] = option(
        "how rows are brought to one length: rms on average, l2 each", default="rms"
    )
    scale: float = option("length of the rows", default=2.0, above=0, at_most=1e6)
