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
LAYOUT = {
    "graph": "hierarchy",
    "space": "plane",
    "radius": "radius",
    "weight_by_radius": "weight of the depth, by the radius",
    "map": "MAP",
    "map_float32": "in float32",
    "mean_rank": "mean rank",
    "drawn_nodes": "drawn nodes",
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
    keys = ("kind", "graph", "nodes", "degree")
    for kind, name, nodes, degree in sorted(
        dict.fromkeys(tuple(row[key] for key in keys) for row in found),
        key=lambda one: (one[0] != "lattice", one[2] != "800", int(one[2])),
    ):
        some = [row for row in found if tuple(row[key] for key in keys) == (kind, name, nodes, degree)]
        covered = sum(int(row["covered"]) for row in some)
        values = [f"{median(float(row[key]) for row in some):+.3f}" for key in ("truth", "curvature")]
        wide = [float(row["high"]) - float(row["low"]) for row in some if row["high"] and row["low"]]
        flat = sum(row["verdict"] == "flat" for row in some)
        label = [f"{name} lattice", ""] if kind == "lattice" else [name, f"{nodes}, {degree}"]
        width = f"{median(wide):.3f}" if wide else "–"
        rows.append(
            [*label, str(len(some)), *values, f"{covered} ({covered / len(some):.0%})", width, str(flat)]
        )
    head = ["space", "nodes, mean degree", "draws", "truth, median", "estimate, median"]
    head += ["truth in the interval", "its width, median", "called flat"]
    return markdown(head, rows, text=2)


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
