"""What ``embed`` is asked for: its options, of graphs and of hierarchies."""

from typing import TYPE_CHECKING, Literal

from gyroformer.errors import UsageError
from gyroformer.options import Options, option, options_of

if TYPE_CHECKING:
    from gyroformer.tasks.scores import ScoreKind

#: nodes up to which "auto" takes all pairs: fifty million, half a second a step on one core (docs/scaling.md)
ALL_PAIRS_NODES = 10_000
#: nodes on a near list, and nodes that are drawn for all others, beyond that
NEAR, FAR = 48, 128
#: nodes up to which mAP is exact by default
EXACT_MAP_NODES = 20_000


class EmbedObjective(Options):
    """What ``embed`` is to reach."""

    negatives: Literal["all", "near", "auto"] | int = option(
        "non-neighbours in the loss: all, near ones exactly and the rest by a sample, a number of sampled ones, or "
        f"auto: all up to {ALL_PAIRS_NODES:,} nodes, else near",
        default="auto",
        at_least=1,
    )
    near: int = option("with near negatives: nodes on a list", default=NEAR, at_least=1, neutral=NEAR)
    far: int = option(
        "with near negatives: nodes drawn for all that are not listed", default=FAR, at_least=2, neutral=FAR
    )
    squared: bool = option(
        "whether the loss holds squared distances; plain ones train worse",
        default=True,
        flag="squared/--plain-distance",
    )
    map_nodes: int | None = option(
        f"take mAP over so many drawn nodes; none for all, up to {EXACT_MAP_NODES:,} nodes",
        default=None,
        at_least=1,
    )
    use_features: bool = option(
        "whether the graph's features are used; else each node has a vector of its own", default=False
    )
    hierarchy: bool = option(
        "read the graph as a hierarchy: a node's ancestors come before all others",
        default=False,
        neutral=False,
    )
    closure: bool = option(
        "of a hierarchy: count the ancestors of ancestors too", default=False, neutral=False
    )
    break_cycles: bool = option(
        "of a hierarchy: leave out edges that close cycles", default=False, neutral=False
    )
    ancestor: Literal["auto", "source", "target"] = option(
        "of a hierarchy: which end of an edge is the ancestor; found by default",
        default="auto",
        neutral="auto",
    )
    rank_by: Literal["auto", "depth", "distance", "dot"] = option(
        "what others are ranked by: distance and depth (of a hierarchy), distance alone, or the inner product; auto is "
        "depth in a hierarchy, else distance",
        default="auto",
        neutral="auto",
    )
    start: Literal["random", "tree"] = option(
        "where nodes start: in disorder near the centre, or each a step from its parent in a tree of the graph; a "
        "hierarchy is drawn as a tree around its roots, in two dimensions (models fpst, tokengt and points)",
        default="random",
        neutral="random",
    )
    hold_out: float = option(
        "of a hierarchy: share of the pairs that follow from others to hold out for a test",
        default=0.0,
        at_least=0,
        below=1,
        neutral=0.0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        idle = [
            one.name
            for one in options_of(type(self))
            if one.help.startswith("of a hierarchy") and getattr(self, one.name) != one.default
        ]
        if idle and not self.hierarchy:
            flag = idle[0].replace("_", "-")
            raise UsageError(f"--{flag} has no effect without --hierarchy: add it, or leave --{flag} out")
        unused = [name for name, usual in (("near", NEAR), ("far", FAR)) if getattr(self, name) != usual]
        if unused and self.negatives not in ("near", "auto"):
            raise UsageError(f"--{unused[0]} has no effect without --negatives near: add it, or leave it out")
        if self.rank_by == "depth" and not self.hierarchy:
            raise UsageError("--rank-by depth is for a hierarchy: add --hierarchy, or leave it out")
        if (self.hierarchy or self.score == "dot") and not self.squared:
            other = "--hierarchy" if self.hierarchy else "--rank-by dot"
            raise UsageError(f"--plain-distance has no effect with {other}: leave it out")

    @property
    def score(self) -> "ScoreKind":
        """What others are ranked by."""
        if self.rank_by == "auto":
            return "depth" if self.hierarchy else "distance"
        return self.rank_by
