"""Rewrite the tables of the README and the pages of docs/ from the files in results/ and from the declared options.

python scripts/make_tables.py [--check]

A table, or several with their headings, stands between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``. ``--check``
changes nothing and fails if a page differs from what the results and the options give.
"""

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

from tables.choice import curved_or_flat, how_long
from tables.geometry import MARGINS, cost, exactness, pairs, speed, summary
from tables.jobs import (
    FEATURES,
    LAPLACIAN,
    NEW_NODES,
    READER,
    curvature_rows,
    graph_level,
    large,
    near,
    parts,
)
from tables.markdown import ROOT, measured
from tables.options import (
    graph_options,
    network_options,
    objective_options,
    option_table,
    run_options,
    transformer_options,
)
from tables.paper import (
    compared,
    hierarchies,
    hierarchies_by_width,
    links,
    map_by_width,
    models,
    paper_costs,
    paper_differences,
    paper_matrix,
    paper_table,
    sampled,
)
from tables.paragraphs import model_paragraphs
from tables.reached import reached
from tables.scaling import LISTS, START, TOKENS, estimated, processes
from tables.spaces import LAYOUT, NEAREST, RERANK, coverage, fitted
from tables.splits import by_class

from gyroformer.options import options_of
from gyroformer.options.features import FeatureOptions
from gyroformer.options.training import TrainOptions
from gyroformer.paper.tables import SHOWN

#: every page that may have tables
PAGES = [ROOT / "README.md", ROOT / "RESULTS.md", *sorted((ROOT / "docs").rglob("*.md"))]


EXPLORER = {
    "nodes": "nodes",
    "edges": "edges",
    "megabytes": "MB",
    "first_picture_seconds": "first picture, s",
    "head": "head",
    "frames_per_second": "frames a second",
    "edges_in_motion": "edges in motion",
    "load": "load",
}


TABLES: dict[str, Callable[[], str]] = {
    "summary": summary,
    "exactness": exactness,
    "cost": cost,
    "explorer": lambda: measured("explorer.csv", EXPLORER, text=0),
    "speed": speed,
    "reached": reached,
    "by_class": by_class,
    "embed": lambda: compared("table1"),
    "sampled": sampled,
    "classify": lambda: compared("table2"),
    "link": links,
    "curved_or_flat": curved_or_flat,
    "curvature_coverage": coverage,
    "curvature_fitted": fitted,
    "nearest": lambda: measured("nearest.csv", NEAREST, text=0),
    "nearest_rerank": lambda: measured("nearest_rerank.csv", RERANK, text=1),
    "layout": lambda: measured("layout.csv", LAYOUT, text=2),
    "how_long": how_long,
    "models": models,
    "model_paragraphs": model_paragraphs,
    "pairs": pairs,
    **{name: lambda name=name: paper_table(name) for name in SHOWN if name != "hierarchies"},
    "widths": lambda: paper_table("widths"),
    "hierarchies": hierarchies,
    "map_by_width": map_by_width,
    "hierarchies_by_width": lambda: hierarchies_by_width("mammals"),
    "nouns_by_width": lambda: hierarchies_by_width("nouns"),
    **{f"{name}_differences": lambda name=name: paper_differences(name) for name in SHOWN},
    **{f"{name}_matrix": lambda name=name: paper_matrix(name) for name in ("table1", "table2")},
    "costs": paper_costs,
    "curvature": lambda: curvature_rows(seconds=False),
    "curvature_seconds": lambda: curvature_rows(seconds=True),
    "reader": lambda: measured("reader.csv", READER),
    "graph_level": graph_level,
    "near": near,
    "parts": parts,
    "large": large,
    "near_lists": lambda: measured("near_lists.csv", LISTS, text=1),
    "start": lambda: measured("start.csv", START, text=3),
    "features": lambda: measured("features.csv", FEATURES),
    "tokens": lambda: measured("tokens.csv", TOKENS, text=0),
    "processes": processes,
    "estimated": estimated,
    "new_nodes": lambda: measured("new_nodes.csv", NEW_NODES, text=1),
    "laplacian": lambda: measured("laplacian.csv", LAPLACIAN, text=3),
    "project_margins": lambda: measured("project_margins.csv", MARGINS),
    "graph_options": graph_options,
    "transformer_options": transformer_options,
    "network_options": network_options,
    "feature_options": lambda: option_table(options_of(FeatureOptions)),
    "training_options": lambda: option_table(options_of(TrainOptions)),
    "objective_options": objective_options,
    "run_options": run_options,
}


def filled(page: Path) -> str:
    """Return a page's text with its tables made anew."""

    def table(match: re.Match[str]) -> str:
        name = match[1]
        if name not in TABLES:
            sys.exit(
                f"{page.relative_to(ROOT)}: no table is called {name!r}: what nothing fills is not marked"
            )
        return f"<!-- begin {name} -->\n\n{TABLES[name]()}\n\n<!-- end {name} -->"

    text = page.read_text(encoding="utf-8")
    return re.sub(r"<!-- begin (\w+) -->.*?<!-- end \1 -->", table, text, flags=re.S)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing, fail if a page differs")
    check = parser.parse_args().check
    for page in PAGES:
        old, new = page.read_text(encoding="utf-8"), filled(page)
        if check and old != new:
            sys.exit(
                f"{page.relative_to(ROOT)}: a table is not what results/ or the options give; run python "
                "scripts/make_tables.py"
            )
        if old != new:
            page.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
