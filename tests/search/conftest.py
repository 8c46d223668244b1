"""What the tests of searches share."""

import pytest
from small_graphs import write_tree


@pytest.fixture
def files(tmp_path):
    """Return a small labelled graph with features, as files."""
    edges, _ = write_tree(tmp_path / "tree.csv")
    nodes = sorted({word for line in edges.read_text().split() for word in line.split(",")})
    labels, features = tmp_path / "labels.csv", tmp_path / "features.csv"
    labels.write_text("".join(f"{node},{i % 2}\n" for i, node in enumerate(nodes)))
    features.write_text("".join(f"{node},{i % 2},{1 - i % 2},1\n" for i, node in enumerate(nodes)))
    return edges, {"graph": {"labels": str(labels), "features": str(features)}}
