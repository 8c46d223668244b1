"""GraphML files, streamed."""

from pathlib import Path

from gyroformer.graphs.listing import Listing
from gyroformer.graphs.reading.names import MAX_NODES
from gyroformer.graphs.reading.xml import GraphXml


def read_graphml(path: Path, *, max_nodes: int = MAX_NODES) -> Listing:
    """Read nodes, edges and the edge attribute called ``weight`` of a GraphML file with one graph.

    Raises:
        DataError: if it is not well-formed, has a document type, hyperedges or several graphs, or an edge
            ends at a node that is not declared.
    """
    reader = _Reader(path, max_nodes)
    reader.read()
    return reader.graph.listing()


class _Reader(GraphXml):
    """Keeps what a graph needs."""

    root = "graphml"

    def __init__(self, path: Path, max_nodes: int) -> None:
        super().__init__(path, max_nodes)
        self._graphs_open = 0
        self._graphs = 0
        self._weight_key: str | None = None
        self._key_open: str | None = None
        self._in_edge = False
        self._text: list[str] | None = None

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take an element that begins."""
        if tag == "graph":
            self._graphs += self._graphs_open == 0
            self._graphs_open += 1
            if self._graphs > 1:
                raise self.error("a second graph: keep one graph per file")
        elif (
            tag == "key"
            and attributes.get("attr.name") == "weight"
            and attributes.get("for") in {"edge", "all"}
        ):
            self._weight_key = self._key_open = attributes.get("id")
        elif tag == "node":
            self.graph.add_node(self.attribute(tag, attributes, "id"), self.parser.CurrentLineNumber)
        elif tag == "edge":
            source, target = (self.attribute(tag, attributes, end) for end in ("source", "target"))
            self.graph.add_edge(source, target, self.parser.CurrentLineNumber)
            self._in_edge = True
        elif tag == "hyperedge":
            raise self.error("a hyperedge: only edges between two nodes can be read")
        elif (tag == "data" and self._in_edge and attributes.get("key") == self._weight_key) or (
            tag == "default" and self._key_open is not None
        ):
            self._text = []

    def end(self, tag: str) -> None:
        """Take the end of an element."""
        if tag == "graph":
            self._graphs_open -= 1
        elif tag == "edge":
            self._in_edge = False
        elif tag == "key":
            self._key_open = None
        elif tag in {"data", "default"} and self._text is not None:
            value = self.graph.number("".join(self._text), self.parser.CurrentLineNumber)
            if tag == "data":
                self.graph.set_weight(value)
            else:
                self.graph.default_weight = value
            self._text = None

    def characters(self, text: str) -> None:
        """Take text between elements."""
        if self._text is not None:
            self._text.append(text)
