"""Tables of runs that `scripts/run_table.py` made, and of measurements on graphs."""

from gyroformer.models import MODELS
from tables.markdown import markdown, runs, spread
from tables.paper import network_runs

#: what the paper prints for FPS-T and for TokenGT, in percent (its tables 1 and 2)
PAPER = {
    "embed": {
        "web-edu": (99.00, 89.56),
        "power": (99.18, 99.08),
        "facebook": (86.06, 84.62),
        "bio-worm": (97.90, 97.75),
    },
    "classify": {
        "texas": (89.19, 88.65),
        "cornell": (72.16, 71.62),
        "wisconsin": (83.60, 83.00),
        "actor": (39.61, 36.59),
        "airport": (96.01, 95.90),
        "citeseer": (70.03, 71.23),
        "pubmed": (78.52, 78.93),
        "cora": (82.32, 81.42),
    },
}


def compared(task: str, runs_of: dict[str, dict[str, list[dict[str, str]]]], metric: str) -> str:
    """Return the table of FPS-T and its flat twin on the paper's graphs, with what the paper prints."""
    rows = []
    for graph, paper in PAPER[task].items():
        sides = [runs_of[model].get(graph, []) for model in ("fpst", "tokengt")]
        if not any(sides):
            continue
        split = (sides[0] or sides[1])[0].get("split") or ""
        curved = ", ".join(sorted({row["curvatures"].strip("[]") for row in sides[0][:1]}))
        row = [graph, str(max(len(side) for side in sides))]
        row += [split.split()[0]] if task == "classify" else [curved]
        rows.append([*row, *(spread(side, metric) for side in sides), *(f"{value:.2f}" for value in paper)])
    third = "split" if task == "classify" else "curvatures, first seed"
    return markdown(["graph", "runs", third, "FPS-T", "TokenGT", "paper: FPS-T", "TokenGT"], rows)


def by_graph(file: str, model: str) -> dict[str, list[dict[str, str]]]:
    """Return the runs of a model in a file by graph."""
    found = runs(file)
    graphs = dict.fromkeys(row["graph"] for row in found)
    return {
        graph: [row for row in found if (row["graph"], row["model"]) == (graph, model)] for graph in graphs
    }


def embed() -> str:
    """Return the table of reconstruction."""
    return compared("embed", {model: network_runs(model) for model in ("fpst", "tokengt")}, "map")


def sampled() -> str:
    """Return what sampled negatives cost on Web-Edu."""
    whole = network_runs("fpst")["web-edu"]
    drawn = runs("embed_sampled.csv")
    rows = [["all", spread(whole[:1], "map")], ["512, drawn anew in each step", spread(drawn[:1], "map")]]
    return markdown(["non-neighbours in the loss (Web-Edu, seed 0, equal epochs)", "mAP"], rows)


def large() -> str:
    """Return runs on large graphs with near negatives: how good, how long, how much memory."""
    rows = []
    for row in runs("large.csv"):
        hierarchy = row["hierarchy_map"] != ""
        value, half = (row[("hierarchy_" if hierarchy else "") + key] for key in ("map", "map_interval"))
        words = row["words"].split(" --eval-every")[0].removesuffix("--threads 1").strip()
        metric = "MAP over ancestors" if hierarchy else "mAP"
        rank = f"{float(row['mean_rank']):.2f}" if hierarchy else "–"
        size = [f"{int(row[key]):,}" for key in ("nodes", "edges")]
        numbers = [f"{float(value):.2f} ± {float(half):.2f}", rank, f"{float(row['pairs_share']):.2f} %"]
        cost = [row["epochs"], f"{float(row['cpu_seconds']) / 60:.0f}", row["peak_gb"]]
        rows.append(
            [row["graph"], f"`{words}`" if words else "the usual ones", metric, *size, *numbers, *cost]
        )
    head = ["graph", "options", "metric", "nodes", "edges", "percent", "mean rank", "pairs", "epochs"]
    return markdown([*head, "CPU minutes", "peak GB"], rows, text=3)


def near() -> str:
    """Return near negatives beside all pairs, graph by graph, over the seeds that both have."""
    found, rows = runs("near.csv"), []
    for graph, epochs in dict.fromkeys((row["graph"], row["epochs"]) for row in found):
        some = [row for row in found if (row["graph"], row["epochs"]) == (graph, epochs)]
        of = {kind: {r["seed"]: r for r in some if r["negatives"] == kind} for kind in ("near", "all")}
        both = sorted(of["near"].keys() & of["all"].keys())
        if not both:
            continue
        near_runs, all_runs = ([of[kind][seed] for seed in both] for kind in ("near", "all"))
        first = near_runs[0]
        cells = [graph, first["nodes"], epochs, str(len(both)), f"{float(first['pairs_share']):.1f} %"]
        errors = [float(row["loss_error"]) for row in near_runs]
        rows.append([*cells, spread(near_runs, "map"), spread(all_runs, "map"), f"{max(errors):.3f} %"])
    headers = ["graph", "nodes", "epochs", "seeds", "pairs", "mAP, near", "mAP, all pairs", "loss off by"]
    return markdown(headers, rows)


def classify() -> str:
    """Return the table of node classification."""
    found = {model: by_graph("classify.csv", model) for model in ("fpst", "tokengt")}
    return compared("classify", found, "test_f1")


def link() -> str:
    """Return the table of link prediction."""
    found, rows = runs("link.csv"), []
    for graph in dict.fromkeys(row["graph"] for row in found):
        some = [row for row in found if row["graph"] == graph]
        metrics = [spread(some, metric) for metric in ("test_auc", "test_ap", "val_auc")]
        rows.append([graph, some[0]["recipe"], str(len(some)), *metrics])
    return markdown(["graph", "recipe", "runs", "test AUC", "test AP", "validation AUC"], rows, text=2)


def models() -> str:
    """Return every model by name, with its metrics on Cora and on Web-Edu."""
    cora, web = runs("models_cora.csv"), runs("models_web_edu.csv")
    rows = []
    for name, spec in MODELS.items():
        sides = [[row for row in found if row["model"] == name] for found in (cora, web)]
        rows.append([f"`{name}`", spec.about, spread(sides[0], "test_f1"), spread(sides[1], "map")])
    return markdown(["model", "what it is", "Cora, test F1", "Web-Edu, mAP"], rows, text=2)


def curvature_rows(*, seconds: bool) -> str:
    """Return how curved the graphs are, or what it took to find out."""
    rows = []
    for row in runs("curvature.csv"):
        name = f"{row['graph']}, {row['samples']} nodes drawn" if row["samples"] else row["graph"]
        error = f" ± {row['standard_error']}" if row["standard_error"] else ""
        triples = f"{int(row['triples']):,}"
        if seconds:
            size = [f"{int(row[key]):,}" for key in ("nodes", "edges")]
            rows.append([name, *size, triples, row["processor_seconds"], f"{row['curvature']}{error}"])
        elif not row["samples"]:
            rows.append([name, row["reading"], row["curvature"], triples, f"{row['negative_percent']} %"])
    if seconds:
        return markdown(["graph", "nodes", "edges", "triples", "seconds", "curvature"], rows)
    return markdown(["graph", "", "curvature", "triples", "negative"], rows, text=2)


READER = {
    "file": "file",
    "megabytes": "size, MB",
    "processor_seconds": "processor seconds",
    "peak_megabytes": "peak memory, MB",
    "before_megabytes": "before reading, MB",
}


NEW_NODES = {
    "graph": "graph",
    "nodes": "nodes",
    "hidden": "hidden",
    "epochs": "epochs",
    "way": "way",
    "map_new": "hidden nodes",
    "map_neighbours": "their neighbours",
    "seconds": "CPU seconds",
}


def graph_level() -> str:
    """Return the accuracies on whole graphs, a row for each model."""
    rows = runs("graph_level.csv")
    head = ["model", "seeds", "accuracy", "parameters", "CPU seconds"]
    lines = []
    for model in dict.fromkeys(row["model"] for row in rows):
        some = [row for row in rows if row["model"] == model]
        seconds = sum(float(row["cpu_seconds"]) for row in some) / len(some)
        lines.append(
            [model, str(len(some)), spread(some, "accuracy"), some[0]["parameters"] or "–", f"{seconds:.0f}"]
        )
    return markdown(head, lines)


LAPLACIAN = {
    "graph": "graph",
    "scope": "scope",
    "methods": "methods",
    "nodes": "nodes",
    "edges": "edges",
    "processor_seconds": "seconds",
    "residual": "largest residual",
}
