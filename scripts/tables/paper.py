"""Tables of what `gyroformer reproduce` keeps."""

import json

from gyroformer.models import MODELS
from gyroformer.paper.costs import read_costs
from gyroformer.paper.printed import printed, published
from gyroformer.paper.summary import collected, differences
from gyroformer.paper.table import TWINS, Column
from gyroformer.paper.tables import POINTS_ONLY, SAMPLED, WIDTHS
from gyroformer.paper.tables import TABLES as PAPER_TABLES
from gyroformer.runs.rows import Rows, key_of, read_files
from tables.markdown import ROOT, markdown, mean_of, runs, spread, with_half


def paper_table(name: str) -> str:
    """Return a table of the paper, its rows so far: ours with the interval over seeds, and the printed one."""
    rows = []
    for row in collected(PAPER_TABLES[name].cells(), paper_rows()):
        paper = "–" if row["paper"] is None else f"{row['paper']:.2f} ± {row['paper_std']:.2f}"
        size = [str(row["seeds"]), str(row["width"]), f"{row['parameters']:,}"]
        rows.append([row["dataset"], f"`{row['model']}`", mean_of(row), paper, *size])
    if not rows:
        return "No runs yet."
    return markdown(["data set", "model", "ours", "paper", "seeds", "width", "parameters"], rows, text=2)


def paper_matrix(name: str) -> str:
    """Return a table of the paper at a glance, a column for each data set: ours, the paper's in brackets."""
    table = PAPER_TABLES[name]
    found = {(row["model"], row["dataset"]): row for row in collected(table.cells(), paper_rows())}
    columns = [column for column in table.columns if any(column.name == dataset for _, dataset in found)]

    def cell(model: str, column: Column) -> str:
        row, paper = found.get((model, column.name)), printed(name, column.dataset, model)
        return ("–" if row is None else mean_of(row)) + ("" if paper is None else f" [{paper[0]:.2f}]")

    rows = [
        [f"`{model}`", *(cell(model, column) for column in columns)]
        for model in table.models
        if any(model == of for of, _ in found)
    ]
    if name == "table2":
        alone = [
            spread([run for run in runs("trees.csv") if run["dataset"] == of.name], "test_f1")
            for of in columns
        ]
        rows.append(["trees on features, no graph", *alone])
    others = [published(name, column.name) for column in columns]
    if any(others):
        rows.append(["best published, any width", *(f"{one[0].value:.2f}" if one else "–" for one in others)])
    if not rows:
        return "No runs yet."
    below = [line for column in columns for line in published_lines(name, column)]
    shown = markdown(["model", *(column.name for column in columns)], rows)
    return shown + ("\n\nPublished by others:\n\n" + "\n".join(below) if below else "")


def published_lines(name: str, column: Column) -> list[str]:
    """Return a line for each figure by others: whose it is, its split, and ours where that is another."""
    lines = []
    for one in published(name, column.name):
        ours = "" if one.split == column.split_name else f"; ours: {column.split_name}"
        lines.append(f"- {column.name}: {one.value:.2f}, {one.source} (split: {one.split}{ours})")
    return lines


def table_runs(name: str, model: str) -> dict[str, list[dict[str, str]]]:
    """Return the runs of a row of a table that are done, by column."""
    known, found = paper_rows(), {}
    for cell in PAPER_TABLES[name].cells(models=[model]):
        found[cell.column.name] = [known[key] for job in cell.jobs() if (key := key_of(job)) in known]
    return {column: rows for column, rows in found.items() if rows}


def compared(name: str) -> str:
    """Return FPS-T beside its flat twin and what the paper prints for both, column by column."""
    runs, rows = {model: table_runs(name, model) for model in TWINS}, []
    for column in PAPER_TABLES[name].columns:
        sides = [runs[model].get(column.name, []) for model in TWINS]
        if not all(sides):
            continue
        first = sides[0][0]
        third = first["split"].split()[0] if column.split else first["curvatures"].strip("[]")
        paper = [printed(name, column.dataset, model) for model in TWINS]
        row = [column.name, str(min(len(side) for side in sides)), third]
        rows.append(
            [*row, *(spread(side, "value") for side in sides), *(f"{value[0]:.2f}" for value in paper)]
        )
    third = "split" if PAPER_TABLES[name].task == "classify" else "curvatures, first seed"
    return markdown(["graph", "pairs", third, "FPS-T", "TokenGT", "paper: FPS-T", "TokenGT"], rows)


def links() -> str:
    """Return FPS-T on held-out edges: its recipe, the metrics of the test, and validation."""
    rows = []
    for graph, some in table_runs("links", "fpst").items():
        more = [
            {**row, **{key: str(value) for key, value in json.loads(row["others"]).items()}} for row in some
        ]
        metrics = [spread(more, metric) for metric in ("value", "test_ap", "validation")]
        rows.append([graph, some[0]["recipe"], str(len(some)), *metrics])
    return markdown(["graph", "recipe", "runs", "test AUC", "test AP", "validation AUC"], rows, text=2)


def models() -> str:
    """Return every model by name, with its metrics on Cora and on Web-Edu."""
    rows = []
    for name, spec in MODELS.items():
        cora = {} if name in POINTS_ONLY else table_runs("table2", name)
        sides = cora.get("cora", []), table_runs("table1", name).get("web-edu", [])
        rows.append([f"`{name}`", spec.about, *(spread(side, "value") for side in sides)])
    return markdown(["model", "what it is", "Cora, test F1", "Web-Edu, mAP"], rows, text=2)


def sampled() -> str:
    """Return what sampled negatives cost on Web-Edu."""
    sides = {
        "all": table_runs("table1", "fpst").get("web-edu", []),
        "512, drawn anew in each step": table_runs("ablations", SAMPLED).get("web-edu", []),
    }
    rows = [[name, spread(some[:1], "value")] for name, some in sides.items()]
    return markdown(["non-neighbours in the loss (Web-Edu, seed 0, equal epochs)", "mAP"], rows)


def hierarchies() -> str:
    """Return MAP and mean rank over ancestors by width, model and score, beside the best published."""
    rows, known = [], paper_rows()
    for cell in PAPER_TABLES["hierarchies"].cells():
        found = collected([cell], known)
        if not found:
            continue
        row = found[0]
        done = [known[key] for job in cell.jobs() if (key := key_of(job)) in known]
        ranks = [json.loads(one["others"])["mean_rank"] for one in done]
        published = "–" if row["published"] is None else f"{row['published']:.1f}"
        numbers = [mean_of(row), f"{sum(ranks) / len(ranks):.2f}", published, str(row["seeds"])]
        rows.append([row["dataset"], row["model"], *numbers, f"{row['parameters']:,}"])
    if not rows:
        return "No runs yet."
    head = ["hierarchy", "model and score", "MAP", "mean rank", "published", "seeds", "parameters"]
    return markdown(head, rows, text=2)


def hierarchies_by_width(dataset: str) -> str:
    """Return the mean MAP over ancestors of each model and score, a column for each width."""
    columns = [column for column in PAPER_TABLES["hierarchies"].columns if column.dataset == dataset]
    found = collected(PAPER_TABLES["hierarchies"].cells([column.name for column in columns]), paper_rows())
    means = {(row["model"], row["dataset"]): f"{row['mean']:.2f}" for row in found}
    rows = [
        [model, *(means.get((model, column.name), "–") for column in columns)]
        for model in (one.name for one in PAPER_TABLES["hierarchies"].variants if not one.only)
        if any((model, column.name) in means for column in columns)
    ]
    return markdown(["model and score", *(f"width {column.width}" for column in columns)], rows, text=1)


def map_by_width() -> str:
    """Return the mean mAP of each model of the study of widths, a column for each width."""
    means: dict[str, dict[str, str]] = {}
    for row in collected(PAPER_TABLES["widths"].cells(), paper_rows()):
        model, width = row["model"].split(" width ")
        means.setdefault(model, {})[width] = f"{row['mean']:.2f}"
    rows = [[model, *(of.get(str(width), "–") for width in WIDTHS)] for model, of in means.items()]
    return markdown(["model", *(f"width {width}" for width in WIDTHS)], rows, text=1)


def paper_rows() -> Rows:
    """Return the rows of all tables: some runs belong to several."""
    return read_files(ROOT / "results" / f"{name}.csv" for name in PAPER_TABLES)


def paper_differences(name: str) -> str:
    """Return how FPS-T differs from the other rows of a table, paired by seed."""
    rows = []
    for row in differences(PAPER_TABLES[name].cells(), paper_rows()):
        tests = ["–" if p is None else f"{p:.2g}" for p in (row["t"], row["holm"], row["wilcoxon"])]
        rows.append(
            [
                row["dataset"],
                f"`{row['model']}`",
                with_half(f"{row['mean']:+.2f}", row["half"]),
                str(row["pairs"]),
                *tests,
            ]
        )
    if not rows:
        return "No pairs yet."
    head = ["data set", "FPS-T minus", "difference", "pairs", "t-test, p", "by Holm", "Wilcoxon, p"]
    return markdown(head, rows, text=2)


def paper_costs() -> str:
    """Return what a pass of each model costs."""
    rows = [
        [
            row["dataset"],
            f"`{row['model']}`",
            row["part"],
            str(row["threads"]),
            f"{row['milliseconds']:.1f}",
            "–" if row["ratio"] is None else f"{row['ratio']:.2f}",
            "–" if row["megabytes"] is None else f"{row['megabytes']:.0f}",
        ]
        for row in read_costs(ROOT / "results" / "costs.csv")
    ]
    if not rows:
        return "Not measured yet."
    return markdown(["data set", "model", "pass", "threads", "ms", "of `tokengt`'s", "MB"], rows, text=3)
