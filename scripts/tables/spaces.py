"""Tables of fitted spaces and of nearest nodes."""

from statistics import median

from tables.markdown import markdown, runs

NEAREST = {
    "nodes": "nodes",
    "width": "width",
    "curvature": "curvature",
    "build_seconds": "building, s",
    "index_queries_per_second": "queries a second, index",
    "all_queries_per_second": "comparing with all",
    "left_to_all": "left to comparing",
}
RERANK = {
    "graph": "graph",
    "nodes": "nodes",
    "columns": "columns",
    "candidates": "candidates",
    "recall_at_10": "recall at 10, %",
}


def coverage() -> str:
    """Return how often the interval covers the truth, for each space, and how often each verdict was given."""
    rows, found = [], [row for row in runs("curvature_fit.csv") if row["kind"] != "data"]
    for kind, name in dict.fromkeys((row["kind"], row["graph"]) for row in found):
        some = [row for row in found if (row["kind"], row["graph"]) == (kind, name)]
        covered = sum(int(row["covered"]) for row in some)
        values = [f"{median(float(row[key]) for row in some):+.3f}" for key in ("truth", "curvature")]
        flat = sum(row["verdict"] == "flat" for row in some)
        label = f"{name} lattice" if kind == "lattice" else name
        rows.append([label, str(len(some)), *values, f"{covered} ({covered / len(some):.0%})", str(flat)])
    head = ["space", "draws", "truth, median", "estimate, median", "truth in the interval", "called flat"]
    return markdown(head, rows)


def fitted() -> str:
    """Return the spaces of data sets."""
    rows = []
    for row in runs("curvature_fit.csv"):
        if row["kind"] == "data":
            ends = " to ".join(row[end] or "–" for end in ("low", "high"))
            errors = [row["error_flat"], row["error_best"]]
            rows.append([row["graph"], row["verdict"], row["curvature"], ends, row["p_flat"], *errors])
    return markdown(
        ["graph", "", "curvature", "95 % interval", "p of flat", "error, flat", "best"], rows, text=2
    )
