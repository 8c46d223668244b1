"""Tables of measurements on graphs."""

from tables.markdown import markdown, runs, spread


def parts() -> str:
    """Return where the processor time of whole jobs goes."""
    found = runs("jobs.csv")
    names = list(dict.fromkeys(row["part"] for row in found))
    jobs = dict.fromkeys(row["job"] for row in found)
    seconds = {(row["job"], row["part"]): float(row["seconds"]) for row in found}
    rows = [[f"`{job}`", *(f"{seconds[job, name]:.1f}" for name in names)] for job in jobs]
    return markdown(["seconds of processor time", *names], rows)


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
        numbers = [f"{float(value):.2f} ± {float(half):.2f}", rank, f"{float(row['pairs_share']):.2g} %"]
        cost = [row["epochs"], f"{float(row['cpu_seconds']) / 60:.0f}", row["peak_gb"]]
        rows.append(
            [row["graph"], f"`{words}`" if words else "the usual ones", metric, *size, *numbers, *cost]
        )
    head = ["graph", "options", "metric", "nodes", "edges", "percent", "mean rank", "pairs", "epochs"]
    return markdown([*head, "CPU minutes", "peak GB"], rows, text=3)


def near() -> str:
    """Return near negatives beside all pairs, by graph and length of the lists, over the seeds that both have."""
    found, rows = runs("near.csv"), []
    exact = {(row["graph"], row["epochs"], row["seed"]): row for row in found if row["negatives"] == "all"}
    lists = [row for row in found if row["negatives"] == "near"]
    for graph, epochs, length in dict.fromkeys((row["graph"], row["epochs"], row["near"]) for row in lists):
        mine = (row for row in lists if (row["graph"], row["epochs"], row["near"]) == (graph, epochs, length))
        near_runs = [row for row in mine if (graph, epochs, row["seed"]) in exact]
        if not near_runs:
            continue
        all_runs = [exact[graph, epochs, row["seed"]] for row in near_runs]
        first = near_runs[0]
        cells = [graph, first["nodes"], length, epochs, str(len(near_runs))]
        means = [f"{float(first['pairs_share']):.1f} %", spread(near_runs, "map"), spread(all_runs, "map")]
        rows.append([*cells, *means, f"{max(float(row['loss_error']) for row in near_runs):.3f} %"])
    headers = ["graph", "nodes", "on a list", "epochs", "seeds", "pairs", "mAP, near", "mAP, all pairs"]
    return markdown([*headers, "loss off by"], rows)


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


FEATURES = {
    "model": "model",
    "dense_ms": "dense table, ms",
    "sparse_ms": "sparse rows, ms",
    "difference": "scores differ by",
}
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
