"""GEXF files, as Gephi and NetworkX write them, streamed."""

from pathlib import Path

from gyroformer.graphs.listing import Listing
from gyroformer.graphs.reading.names import MAX_NODES
from gyroformer.graphs.reading.xml import GraphXml


def read_gexf(path: Path, *, max_nodes: int = MAX_NODES) -> Listing:
    """Read nodes, edges and the edges' ``weight`` of a GEXF file with one graph.

    A node is named by its ``label`` if every node has one and all differ, else by its ``id``.

    Raises:
        DataError: if it is not well-formed, has a document type or several graphs, or an edge ends at a node that is
            not declared.
    """
    reader = _Reader(path, max_nodes)
    reader.read()
    names = [label for label in reader.labels if label is not None]
    distinct = len(names) == len(reader.labels) == len(set(names))
    return reader.graph.listing(names if distinct else None)


class _Reader(GraphXml):
    """Keeps nodes with their labels, and edges with their weights."""

    root = "gexf"

    def __init__(self, path: Path, max_nodes: int) -> None:
        super().__init__(path, max_nodes)
        self.labels: list[str | None] = []
        self._graphs = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take an element that begins."""
        line = self.parser.CurrentLineNumber
        if tag == "graph":
            self._graphs += 1
            if self._graphs > 1:
                raise self.error("a second graph: keep one graph per file")
        elif tag == "node":
            self.graph.add_node(self.attribute(tag, attributes, "id"), line)
            self.labels.append(attributes.get("label") or None)
        elif tag == "edge":
            source, target = (self.attribute(tag, attributes, end) for end in ("source", "target"))
            self.graph.add_edge(source, target, line)
            if "weight" in attributes:
                self.graph.set_weight(self.graph.number(attributes["weight"], line))
