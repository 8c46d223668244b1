"""What the paper's tables come to: FPS-T beside its printed figure, and what its curvature alone gives."""

from gyroformer.paper.summary import collected
from gyroformer.paper.tables import TABLES
from gyroformer.tasks.task import metric_title
from tables.alone import gains, shown
from tables.markdown import markdown, mean_of
from tables.paper import paper_rows


def reached() -> str:
    """Return a row for each network of the paper."""
    names = "table1", "table2"
    known, alone, rows = paper_rows(), gains(*names), []
    for name in names:
        for cell in TABLES[name].cells(models=["fpst"]):
            for row in collected([cell], known):
                paper = row["paper"]
                numbers = [mean_of(row), f"{paper:.2f}", f"{row['mean'] - paper:+.2f}"]
                gain = shown(alone.get((name, cell.column.name)))
                rows.append([cell.column.name, metric_title(cell.metric), *numbers, gain])
    head = ["data set", "metric", "FPS-T", "paper", "FPS-T minus paper", "FPS-T minus itself, flat"]
    return markdown(head, rows, text=2)
