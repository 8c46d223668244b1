"""Tables for those who choose: where curvature helped, and how long a run takes."""

from collections.abc import Mapping, Sequence
from statistics import median

from gyroformer.data.registry import DATASETS
from gyroformer.paper.tables import TABLES as PAPER
from gyroformer.runs.statistics import paired_difference
from tables.alone import gains, shown
from tables.markdown import markdown, runs, spread
from tables.paper import table_runs

#: by task: the table with its runs, and what its metric is called in print
TABLES = {"embed": ("table1", "mAP"), "classify": ("table2", "F1"), "link": ("links", "AUC")}


def curved_or_flat() -> str:
    """Return FPS-T beside its flat twin on every graph; where curvature alone gives most comes first."""
    bent = {row["graph"]: row["curvature"] for row in runs("curvature.csv") if not row["samples"]}
    alone, rows = gains(*(name for name, _ in TABLES.values())), []
    for task, (table, title) in TABLES.items():
        flat = table_runs(table, "tokengt")
        overlaps = {column.name: column.overlap for column in PAPER[table].columns}
        for graph, some in table_runs(table, "fpst").items():
            ours, twins = (by_seed(part) for part in (some, flat.get(graph, [])))
            one = paired_difference(ours, twins, overlap=overlaps[graph])
            if one is None:
                continue
            gain, said = alone.get((table, graph)), shown({"mean": one.mean, "half": one.half})
            sides = [spread(some, "value"), spread(flat[graph], "value"), said, str(one.pairs), shown(gain)]
            place = (gain is None, -(one.mean if gain is None else gain["mean"]))
            rows.append((place, [task, graph, bent.get(graph, "–"), title, *sides]))
    rows.sort()
    head = ["task", "graph", "its curvature", "metric", "FPS-T", "flat twin", "difference", "pairs"]
    return markdown([*head, "of it curvature's"], [row for _, row in rows], text=2)


def by_seed(rows: Sequence[Mapping[str, str]]) -> dict[int, float]:
    """Return the metric of rows by their seeds."""
    return {int(row["seed"]): float(row["value"]) for row in rows}


def how_long() -> str:
    """Return the median seconds of a run of FPS-T by task and graph, the smallest graph first."""
    rows = []
    for place, (task, (table, _)) in enumerate(TABLES.items()):
        for graph, some in table_runs(table, "fpst").items():
            if graph not in DATASETS:  # the second column of a data set
                continue
            size = DATASETS[graph]
            epochs, seconds = (median(float(row[key]) for row in some) for key in ("epochs", "seconds"))
            counts = [f"{size.nodes:,}", f"{size.edges:,}", str(size.features or "–")]
            numbers = [*counts, f"{epochs:.0f}", f"{seconds:.0f}"]
            rows.append((place, size.nodes, [task, graph, *numbers]))
    head = ["command", "graph", "nodes", "edges", "features", "epochs", "seconds"]
    return markdown(head, [row for *_, row in sorted(rows)], text=2)
