"""Tables for those who choose: where curvature helped, and how long a run takes."""

from statistics import median

from gyroformer.data.registry import DATASETS
from gyroformer.runs.spread import interval
from tables.jobs import by_graph
from tables.markdown import markdown, runs, spread
from tables.paper import network_runs

#: the metric that counts by task, as it is called in rows and in print
METRICS = {"embed": ("map", "mAP"), "classify": ("test_f1", "F1"), "link": ("test_auc", "AUC")}


def runs_of(task: str, model: str) -> dict[str, list[dict[str, str]]]:
    """Return the runs of a model by graph."""
    return network_runs(model) if task == "embed" else by_graph(f"{task}.csv", model)


def curved_or_flat() -> str:
    """Return FPS-T beside its flat twin on every graph, the largest difference first."""
    bent = {row["graph"]: row["curvature"] for row in runs("curvature.csv") if not row["samples"]}
    rows = []
    for task in ("embed", "classify"):
        key, title = METRICS[task]
        flat = runs_of(task, "tokengt")
        for graph, some in runs_of(task, "fpst").items():
            twins = {row["seed"]: float(row[key]) for row in flat[graph]}
            pairs = [float(row[key]) - twins[row["seed"]] for row in some if row["seed"] in twins]
            if not pairs:
                continue
            gain, half = interval(pairs)
            said = f"{gain:+.2f}" + ("" if half is None else f" ± {half:.2f}")
            sides = [spread(some, key), spread(flat[graph], key)]
            rows.append((gain, [task, graph, bent.get(graph, "–"), title, *sides, said, str(len(pairs))]))
    rows.sort(key=lambda row: -row[0])
    head = ["task", "graph", "its curvature", "metric", "FPS-T", "flat twin", "difference", "seeds"]
    return markdown(head, [row for _, row in rows], text=2)


def how_long() -> str:
    """Return the median seconds of a run of FPS-T by task and graph, the smallest graph first."""
    rows = []
    for task in METRICS:
        for graph, some in runs_of(task, "fpst").items():
            size = DATASETS[graph]
            epochs, seconds = (median(float(row[key]) for row in some) for key in ("epochs", "seconds"))
            counts = [f"{size.nodes:,}", f"{size.edges:,}", str(size.features or "–")]
            numbers = [*counts, f"{epochs:.0f}", f"{seconds:.0f}"]
            rows.append((list(METRICS).index(task), size.nodes, [task, graph, *numbers]))
    head = ["command", "graph", "nodes", "edges", "features", "epochs", "seconds"]
    return markdown(head, [row for *_, row in sorted(rows)], text=2)
