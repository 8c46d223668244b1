"""The figures of others: by table and column, with their names and splits."""

from pathlib import Path

import pytest

from gyroformer.paper import printed
from gyroformer.paper.printed import published
from gyroformer.paper.tables import TABLES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["table2", "hierarchies"])
def test_published_figures_belong_to_columns_and_the_best_is_first(name):
    known = printed._printed()["published"]
    assert set(known) == {"table2", "hierarchies"}
    assert set(known[name]) <= set(TABLES[name].datasets)
    for column in known[name]:
        values = [one.value for one in published(name, column)]
        assert values == sorted(values, reverse=True)


def test_every_figure_has_a_line_with_its_source_and_its_split(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from tables.paper import paper_matrix

    matrix = paper_matrix("table2")
    assert "- actor: 37.81, O(d)-NSD (split: 48/32/20; ours: 60/20/20)" in matrix
    for column, value in (("cora", "85.10"), ("citeseer", "73.14"), ("pubmed", "81.12")):
        [line] = [one for one in matrix.splitlines() if one.startswith(f"- {column}: {value}, a tuned GCN")]
        assert line.endswith("(split: 20 labels of each class, drawn; ours: public)")
    assert "Published" not in paper_matrix("table1")
    assert "ours" not in same_split(monkeypatch)


def same_split(monkeypatch):
    """Return the line of a figure on our own split."""
    from tables import paper

    monkeypatch.setattr(paper, "published", lambda *cell: [printed.Published(80.0, "somebody", "public")])
    column = next(one for one in TABLES["table2"].columns if one.name == "cora")
    [line] = paper.published_lines("table2", column)
    return line
